import { validateEvent } from "../../events/check/validate.ts";
import { plain } from "../fence.ts";

/** What a sandbox says of the headers that an event came with, in words. */
const OF_HEADERS: Readonly<Record<string, string>> = {
  "headers.authorization": "the header Authorization holds no app key that is known here; send the key of the app",
  "headers.content-type": "the header Content-Type does not say JSON; send application/json",
};

const MOST_SENTENCES = 5;

/**
 * What is wrong with an event that arrived at a sandbox, and what mends it, one sentence each, what decides first;
 * `body` is undefined where what was sent is no JSON.
 */
export function arrivedSentences(findings: readonly { readonly path: string }[], body: unknown): readonly string[] {
  const ofHeaders = findings.flatMap(({ path }) => OF_HEADERS[path] ?? []);
  const ofBody =
    body === undefined
      ? ["the body is no JSON; send an object with uid and eventName"]
      : validateEvent(body).findings.map(({ message, fix }) => plain(`${message}; ${fix}`));
  return [...ofHeaders, ...ofBody].slice(0, MOST_SENTENCES);
}

/** One line for an event that arrived, with the reason where it would be thrown away. */
export function arrivalLine(
  event: {
    readonly at: string;
    readonly verdict: string;
    readonly uid: string | null;
    readonly eventName: string | null;
    readonly findings: readonly { readonly path: string }[];
  },
  body: unknown,
): string {
  const { at, verdict, uid, eventName, findings } = event;
  const why = verdict === "recorded" ? [] : arrivedSentences(findings, body).slice(0, 1);
  const named = [eventName ?? "(no name)", `uid ${uid ?? "(none)"}`].map(plain);
  return [`${at.slice(11, 19)} ${verdict}`, ...named, ...why].join("  ");
}
