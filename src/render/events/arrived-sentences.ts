import { arrivedFindings } from "../../events/watch/findings.ts";
import { plain } from "../fence.ts";

const MOST_SENTENCES = 5;

/** What a sandbox knows of an event: its findings, and its body, which is undefined where what was sent is no JSON. */
type Findings = Parameters<typeof arrivedFindings>[0]["findings"];

/** What is wrong with an event that arrived at a sandbox, and how to fix it, one sentence each, what decides first. */
export function arrivedSentences(findings: Findings, body: unknown): readonly string[] {
  return arrivedFindings({ body, findings, ...(body === undefined && { text: "" }) })
    .slice(0, MOST_SENTENCES)
    .map(({ message, fix }) => plain(`${message}; ${fix}`));
}

/** One line for an event that arrived, with the reason where it would be thrown away. */
export function arrivalLine(
  event: {
    readonly at: string;
    readonly verdict: string;
    readonly uid: string | null;
    readonly eventName: string | null;
    readonly findings: Findings;
  },
  body: unknown,
): string {
  const { at, verdict, uid, eventName, findings } = event;
  const why = verdict === "recorded" ? [] : arrivedSentences(findings, body).slice(0, 1);
  const named = [eventName ?? "(no name)", `uid ${uid ?? "(none)"}`].map(plain);
  return [`${at.slice(11, 19)} ${verdict}`, ...named, ...why].join("  ");
}
