import type { StaleField } from "../../changes/rows/entries.ts";
import { thousands } from "../../platform/text.ts";
import type { Reason } from "../../runs/outcome.ts";
import { isUlid } from "../../spec/ulid.ts";
import { shown } from "../fence.ts";
import type { Message } from "../message.ts";

/** What a reason holds besides its code. */
export type Detail = Readonly<Record<string, unknown>>;
/** Makes the message of a reason. */
export type Sentence = (detail: Detail, reason: Reason) => Message;

/** What finishes a run. */
export const RESUME = "Call resume_run with this runId.";
/** What makes a run wait longer for others. */
export const MORE_PATIENT = "TARGETING_MCP_RETRY_BUDGET_MS makes it more patient.";

/** Where people set what this server needs. */
export const WHERE_SET = "It is set where this server is started: the env of its entry in the host's configuration.";

/** A number for people. */
export const number = (value: unknown, fallback: number | string = "?"): string =>
  typeof value === "number" ? thousands(value) : String(fallback);

/** So many of something, as a sentence counts it. */
export const many = (value: unknown, one: string): string => `${number(value)} ${one}${value === 1 ? "" : "s"}`;
/** A foreign text, quoted. */
export const text = (value: unknown): string => (typeof value === "string" ? shown(value) : "?");

/** Up to three entries of a list, as text; what is left out is counted. */
export function list(value: unknown, most = 3): string {
  const entries = Array.isArray(value) ? value.filter((entry) => typeof entry === "string") : [];
  const more = entries.length > most ? ` and ${entries.length - most} more` : "";
  return entries.slice(0, most).map(plainOrShown).join(", ") + more;
}

/** IDs stand as they are; anything else from outside is shown with care. */
function plainOrShown(entry: string): string {
  return isUlid(entry) ? entry : shown(entry);
}

/** An earlier item of the same call, as a person counts: its line in a file, else its number. */
export function earlierItem({ duplicateOfIndex, duplicateOfLine }: Detail): string {
  if (typeof duplicateOfLine === "number") return `line ${duplicateOfLine}`;
  return `item ${typeof duplicateOfIndex === "number" ? duplicateOfIndex + 1 : "?"}`;
}

/** How much is there already, and how much more fits, where that was read before. */
export function there({ there, limit }: Detail): string {
  if (typeof there !== "number") return "";
  const left = typeof limit === "number" ? Math.max(0, limit - there) : undefined;
  const fits = left === undefined ? "" : `, so ${number(left)} more ${left === 1 ? "fits" : "fit"}`;
  return `; there are ${number(there)} already${fits}`;
}

/** Why it is so, in brackets. */
export function because({ because, reason }: Detail): string {
  const why = typeof reason === "string" ? reason : because;
  return typeof why === "string" ? ` (${plainWords(why)})` : "";
}

/** Our own codes and reasons are plain words; anything else is shown with care. */
function plainWords(why: string): string {
  return /^[A-Za-z0-9_ ,.:'-]{1,120}$/.test(why) ? why : shown(why);
}

/** What the service said. */
export function saying({ messages }: Detail): string {
  return Array.isArray(messages) && messages.length > 0 ? `, saying ${list(messages, 2)}` : "";
}

/** How something differs from what was planned. */
export function staleWords({ field, planned, service }: Detail): string {
  if (field === "deleted") return "it is no longer there";
  if (field === "contexts") return plannedAndThere(planned, "Context ID", service);
  if (field === "subOptions") return plannedAndThere(planned, "sub-option", service);
  if (field === "name" && planned === undefined) return "another option has its name";
  const value = (side: unknown): string => (side === null ? "the top level" : text(String(side)));
  const now = service === undefined ? "" : `, ${value(service)} is there`;
  return `of its ${field === "parent" ? "group" : String(field)} ${value(planned)} was planned for${now}`;
}

function plannedAndThere(planned: unknown, one: string, there: unknown): string {
  const [were, are] = [planned === 1 ? "was" : "were", there === 1 ? "is" : "are"];
  return `${many(planned, one)} ${were} planned for, ${number(there)} ${are} there`;
}

const MOST_STALE = 5;

/** What no longer is as it was planned for, object by object; names are escaped. */
export function staleText(fields: readonly StaleField[]): string {
  const told = fields.slice(0, MOST_STALE).map((field) => `${shown(field.name)}: ${staleWords({ ...field })}`);
  return told.join("; ") + (fields.length > told.length ? `; and ${fields.length - told.length} more` : "");
}
