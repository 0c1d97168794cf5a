import { type ApiError, problemOf, type RejectionKind } from "../../api/errors.ts";
import type { EventAnswer } from "../../api/events.ts";
import type { Reason } from "../../runs/outcome.ts";
import type { Prediction } from "../../runs/report.ts";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import type { Finding, RuleBasis, Validation, Verdict } from "../catalogue.ts";

/** What was predicted of an event, and observed. */
export interface EventVerdict {
  readonly predicted: Verdict;
  readonly basis: RuleBasis;
  readonly observed?: Verdict;
  readonly findings: readonly Finding[];
}

/** Events with the same verdict for the same rules; what the findings say is said of the first one. */
export interface VerdictGroup extends EventVerdict {
  readonly count: number;
  /** The first of the events. */
  readonly objects: readonly number[];
  /** Whether what the findings say holds for the first event only: others break the same rules in another way. */
  readonly isOfFirst: boolean;
}

/** One kind of verdict; results name its first finding as the rule. */
interface VerdictKind {
  readonly verdict: EventVerdict;
  readonly prediction: Prediction | undefined;
  isOfFirst: boolean;
}

/** The most kinds that are distinguished by all their findings; further ones are distinguished by their first rule. */
const MOST_KINDS = 200;
const OBJECTS_NAMED = 20;
const FINDINGS_KEPT = 5;

const NOTHING_TO_SAY: EventVerdict = { predicted: "recorded", basis: "documented", findings: [] };

/** The verdicts of all events of a run: a number for each event, and the findings once for each kind of verdict. */
export class VerdictKinds {
  readonly #kinds: VerdictKind[] = [];
  readonly #byKey = new Map<string, number>();
  /** By event: the position of its kind in the list, counted from 1; 0 where it has none yet. */
  readonly #kindOf: number[] = [];
  #plain = 0;

  /** Makes room for the next events. */
  begin(items: number): void {
    for (let object = 0; object < items; object += 1) this.#kindOf.push(0);
  }

  /** Keeps the verdict of an event in place of an earlier one; undefined where it is plainly recorded. */
  keep(object: number, verdict: EventVerdict | undefined): void {
    if (verdict === undefined) {
      if (this.#plain === 0) this.#plain = this.#numberOf(NOTHING_TO_SAY);
      this.#kindOf[object] = this.#plain;
    } else {
      this.#kindOf[object] = this.#numberOf(verdict);
    }
  }

  /** What results say of an event: its verdict, where that is not `recorded`. */
  predictionOf(object: number): Prediction | undefined {
    return this.#kinds[(this.#kindOf[object] ?? 0) - 1]?.prediction;
  }

  /** All kinds with their events: uncertain ones first, then those that are not sent, and recorded ones last. */
  groups(): readonly VerdictGroup[] {
    const groups = this.#kinds.map(({ verdict, isOfFirst }) => {
      const objects: number[] = [];
      return { verdict, isOfFirst, count: 0, objects };
    });
    for (const [object, kind] of this.#kindOf.entries()) {
      const group = groups[kind - 1];
      if (group === undefined) continue;
      group.count += 1;
      if (group.objects.length < OBJECTS_NAMED) group.objects.push(object);
    }
    return groups
      .filter(({ count }) => count > 0)
      .sort((one, other) => weightOf(one.verdict) - weightOf(other.verdict) || other.count - one.count)
      .map(({ verdict, ...group }) => ({ ...verdict, ...group }));
  }

  #numberOf(verdict: EventVerdict): number {
    const { predicted, observed, findings } = verdict;
    const rules = findings.map(ruleAt);
    const exact = [predicted, observed, ...rules].join(" ");
    const isRoom = this.#kinds.length < MOST_KINDS;
    const key = isRoom || this.#byKey.has(exact) ? exact : [predicted, observed, findings[0]?.rule].join(" ");
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      const kind = this.#kinds[known - 1];
      if (kind !== undefined && !kind.isOfFirst) kind.isOfFirst = !saysTheSame(kind.verdict.findings, findings);
      return known;
    }
    const rule = key === exact ? rules[0] : findings[0]?.rule;
    const prediction = { predicted, ...(rule !== undefined && { rule }), ...(observed !== undefined && { observed }) };
    const told = predicted === "recorded" ? undefined : prediction;
    this.#kinds.push({ verdict, prediction: told, isOfFirst: false });
    this.#byKey.set(key, this.#kinds.length);
    return this.#kinds.length;
  }
}

function saysTheSame(one: readonly Finding[], other: readonly Finding[]): boolean {
  if (one === other) return true;
  return (
    one.length === other.length &&
    one.every(({ message, fix }, at) => message === other[at]?.message && fix === other[at]?.fix)
  );
}

function weightOf({ predicted, findings }: EventVerdict): number {
  if (predicted === "uncertain") return 0;
  if (predicted !== "recorded") return 1;
  return findings.length > 0 ? 2 : 3;
}

/** The verdict on an event as a run keeps it; undefined where it is plainly recorded. */
export function verdictOf(predicted: Validation, observed: EventSettlement["observed"]): EventVerdict | undefined {
  const { verdict, basis, findings } = predicted;
  if (verdict === "recorded" && basis === "documented" && findings.length === 0 && observed === undefined)
    return undefined;
  return {
    predicted: verdict,
    basis,
    ...(observed !== undefined && { observed }),
    findings: findings.slice(0, FINDINGS_KEPT),
  };
}

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
type SettlementReason =
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
function ruleAt({ rule, path }: { readonly rule: string; readonly path: string }): string {
  return `${rule} ${path.replaceAll(/\[\d+\]/g, "[]")}`.trim();
}
