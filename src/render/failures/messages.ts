import type { Outcome, Reason } from "../../runs/outcome.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import { EVENT_SENTENCES } from "../events/event-messages.ts";
import { shown, shownBriefly } from "../fence.ts";
import type { Message } from "../message.ts";
import { OWN_SENTENCES } from "./own-messages.ts";
import { SERVICE_SENTENCES } from "./service-messages.ts";
import { type Sentence, saying } from "./words.ts";

const SENTENCES: Readonly<Record<string, Sentence>> = { ...EVENT_SENTENCES, ...SERVICE_SENTENCES, ...OWN_SENTENCES };

/**
 * What to tell an agent about one reason: a sentence of ours with the values of `detail`, and a remedy that names the
 * tool, the setting or the place in the console (management-api 7). Foreign text in it is quoted and escaped.
 */
export function messageFor(reason: Reason): Message {
  const sentence = Object.hasOwn(SENTENCES, reason.code) ? SENTENCES[reason.code] : undefined;
  if (sentence !== undefined) return sentence(reason.detail ?? {}, reason);
  const status = reason.statusCode === undefined ? "" : ` (status ${reason.statusCode})`;
  return {
    message: `the service refused it with ${shown(reason.code)}${status}${saying(reason.detail ?? {})}`,
    remedy: "This code is not in the documents of the API: look at the item in the web console.",
  };
}

/** A code for a line of text: one that we know as it is, any other like all foreign text. */
export function codeWords(code: string): string {
  return Object.hasOwn(SENTENCES, code) ? code : shownBriefly(code);
}

/** A reason in one line, as reject files have it. */
export function reasonWords(reason: Reason): string {
  const { message, remedy } = messageFor(reason);
  return `${codeWords(reason.code)}: ${message}. ${remedy}`;
}

/** Words for what a bulk request does, for plans. */
export const OPERATION_WORDS: Readonly<Record<BulkOperation, string>> = {
  createTargetings: "create targetings",
  renameTargetings: "rename targetings",
  deleteTargetings: "delete targetings",
  addOptions: "add options",
  updateOptions: "update options",
  deleteOptions: "delete options",
};

/** Words for outcomes, for counts. */
export const OUTCOME_WORDS: Readonly<Record<Outcome | "pending", string>> = {
  succeeded: "succeeded",
  alreadyDone: "already done",
  skipped: "skipped",
  failed: "failed",
  notApplied: "not applied",
  unknown: "unknown",
  pending: "pending",
};
