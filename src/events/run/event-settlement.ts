import { type ApiError, problemOf, type RejectionKind } from "../../api/errors.ts";
import type { EventAnswer } from "../../api/events.ts";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import type { Validation, Verdict } from "../check/rules.ts";

/**
 * How an event of a batch ended. `succeeded`: the service said `ok` and nothing in the event speaks against it;
 * `failed`: not recorded, and known so; `unknown`: sent, and no answer proves its effect; `notApplied`: never
 * reached the service.
 */
export type EventOutcome = "succeeded" | "failed" | "unknown" | "notApplied";

/**
 * Why an event did not succeed. `refused`: the prediction was `ignored` or `rejected`, so it was never sent; `invalid`:
 * the service answered `!invalid`; `rejected`: the service refused the request; `answerLost`: no answer came;
 * `answerNotUnderstood`: an answer of another kind; `notSent` and `busy`: still so when the retry budget was spent;
 * `runEnded`: another event showed that none can be sent; `stopped`: the caller gave up before it was sent.
 */
export type SettlementReason =
  | "refused"
  | "invalid"
  | "rejected"
  | "answerLost"
  | "answerNotUnderstood"
  | "notSent"
  | "busy"
  | "runEnded"
  | "stopped";

/** How one event of a batch ended. */
export interface EventSettlement {
  readonly outcome: EventOutcome;
  readonly predicted: Validation;
  /**
   * The verdict that the answer of the service proves; absent where it proves none, since ignored events get `ok`, too.
   */
  readonly observed?: Verdict;
  readonly reason?: SettlementReason;
  readonly statusCode?: number;
  /** What the failed request said about itself (`problemOf`). */
  readonly problem?: Readonly<Record<string, unknown>>;
  /** How often a request for it was begun; more than once after `answerLost` means that it may be recorded twice. */
  readonly attempts: number;
  /** An answer was lost on the way, so that an earlier attempt may have been recorded as well. */
  readonly maybeTwice?: true;
}

/** Why a whole run ended early. */
export interface RunEnd {
  readonly kind: RejectionKind | "unreachable" | "rateLimited";
  readonly statusCode?: number | undefined;
  /** What the failed request said about itself (`problemOf`). */
  readonly problem: Readonly<Record<string, unknown>>;
}

/** What is known about the attempts to send one event so far. */
export interface Attempts {
  readonly predicted: Validation;
  count: number;
  /** Whether an answer was lost, so that an earlier attempt may have been recorded. */
  lost: boolean;
}

/** Settles an event by the service's answer (event-tracking-api 4, 7). */
export function settleByAnswer(attempts: Attempts, { statusCode, message }: EventAnswer): EventSettlement {
  const { predicted, count, lost } = attempts;
  if (message === EVENT_MESSAGES.invalid) {
    return { outcome: "failed", reason: "invalid", observed: "rejected", predicted, statusCode, attempts: count };
  }
  if (message !== EVENT_MESSAGES.ok) {
    return { outcome: "unknown", reason: "answerNotUnderstood", predicted, statusCode, attempts: count };
  }
  const settlement = { outcome: "succeeded", predicted, statusCode, attempts: count } as const;
  return lost ? { ...settlement, maybeTwice: true } : settlement;
}

/** Settles an event by the error that its last attempt ended in. */
export function settleByError({ predicted, count, lost }: Attempts, error: ApiError): EventSettlement {
  const { statusCode } = error;
  const settled = { predicted, attempts: count, problem: problemOf(error), ...(statusCode && { statusCode }) };
  if (lost) return { ...settled, outcome: "unknown", reason: "answerLost" };
  switch (error.effect) {
    case "rejected":
      return { ...settled, outcome: "failed", reason: "rejected" };
    case "ambiguous":
      return { ...settled, outcome: "unknown", reason: "answerLost" };
    default:
      return { ...settled, outcome: "notApplied", reason: error.effect };
  }
}

const ENDS_THE_RUN: ReadonlySet<RejectionKind> = new Set([
  ...(["unauthorized", "forbidden", "wrongRoute", "redirect", "foreign"] as const),
]);

/** The end of the run, where an error shows that no event at all can be sent. */
export function runEndOf(error: ApiError): RunEnd | undefined {
  if (error.effect !== "rejected" || !ENDS_THE_RUN.has(error.kind)) return undefined;
  return { kind: error.kind, statusCode: error.statusCode, problem: problemOf(error) };
}

/** The end of a run in which nothing was answered for a whole retry budget. */
export function silentEnd(error: ApiError): RunEnd {
  const kind = error.effect === "busy" ? "rateLimited" : "unreachable";
  return { kind, statusCode: error.statusCode, problem: problemOf(error) };
}
