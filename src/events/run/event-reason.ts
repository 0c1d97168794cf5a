import type { Reason } from "../../runs/outcome.ts";
import type { EventSettlement, RunEnd, SettlementReason } from "./event-settlement.ts";

const CODES = {
  invalid: "EVENT_INVALID",
  rejected: "EVENT_REQUEST_REJECTED",
  answerLost: "EVENT_ANSWER_LOST",
  answerNotUnderstood: "EVENT_ANSWER_NOT_UNDERSTOOD",
  notSent: "EVENT_NOT_SENT",
  busy: "EVENT_BUSY",
  runEnded: "EVENTS_ENDED",
  stopped: "EVENT_STOPPED",
} as const satisfies Record<Exclude<SettlementReason, "refused">, string>;

/** A code under which an event's outcome is reported. */
export type EventCode = (typeof CODES)[keyof typeof CODES] | "EVENT_IGNORED" | "EVENT_REJECTED";

/**
 * Why an event did not succeed, as reports and journals keep it; undefined where it did. `detail` holds the rule that
 * decides with its place, its section, and what the validator says of it (`finding`, `fix`).
 */
export function eventReason({ reason, predicted, statusCode, problem }: EventSettlement): Reason | undefined {
  if (reason === undefined) return undefined;
  const [first] = predicted.findings;
  const dropped = predicted.verdict === "ignored" ? "EVENT_IGNORED" : "EVENT_REJECTED";
  const code: EventCode = reason === "refused" ? dropped : CODES[reason];
  const found = first && { rule: ruleAt(first), section: first.section, finding: first.message, fix: first.fix };
  const detail = (found ?? problem) && { ...found, ...problem };
  return { code, ...(statusCode !== undefined && { statusCode }), ...(detail && { detail }) };
}

/** The reason of events that were not sent since another event ended the run. */
export function endReason({ kind, statusCode, problem }: RunEnd): Reason {
  const code: EventCode = "EVENTS_ENDED";
  const detail = { ...problem, kind };
  return { code, detail, ...(statusCode !== undefined && { statusCode }) };
}

/** A rule with its place, the positions within `items` left out: the same for all events with the same mistake. */
export function ruleAt({ rule, path }: { readonly rule: string; readonly path: string }): string {
  return `${rule} ${path.replaceAll(/\[\d+\]/g, "[]")}`.trim();
}
