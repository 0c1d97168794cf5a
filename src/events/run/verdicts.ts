import { type ApiError, problemOf, type RejectionKind } from "../../api/errors.ts";
import type { EventAnswer, SandboxApi } from "../../api/events.ts";
import { isJsonObject } from "../../platform/json.ts";
import { amount } from "../../platform/text.ts";
import type { Reason } from "../../runs/outcome.ts";
import type { Prediction } from "../../runs/report.ts";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import {
  FINDINGS_KEPT,
  type Finding,
  type RuleBasis,
  type Validation,
  type Verdict,
  verdictOfRule,
} from "../catalogue.ts";
import { type Uncorrected, whyUncorrected } from "../spelling.ts";

export interface EventVerdict {
  readonly predicted: Verdict;
  readonly basis: RuleBasis;
  readonly observed?: Verdict;
  readonly findings: readonly Finding[];
  /** How many further findings there are about the event. */
  readonly omitted?: number;
}

/** Events with the same verdict because of the same rules. The messages are about the first of these events. */
export interface VerdictGroup extends EventVerdict {
  readonly count: number;
  readonly objects: readonly number[];
  /** Whether the messages do not fit all of these events, because some break the rules in other ways. */
  readonly isOfFirst: boolean;
}

interface VerdictKind {
  readonly verdict: EventVerdict;
  readonly prediction: Prediction | undefined;
  isOfFirst: boolean;
}

/** How many different combinations of findings are stored. After that, events are grouped only by their first rule. */
const MAX_VERDICT_KINDS = 200;
const OBJECTS_NAMED = 10;

const PLAINLY_RECORDED: EventVerdict = { predicted: "recorded", basis: "documented", findings: [] };

/** Stores the verdicts on events. To save memory, it stores each combination of findings only once. */
export class VerdictKinds {
  readonly #kinds: VerdictKind[] = [];
  readonly #byKey = new Map<string, number>();
  /** For each event, the number of its verdict: its position in `#kinds` plus 1. 0 if the event has no verdict yet. */
  readonly #kindOf: number[] = [];
  #plain = 0;

  begin(items: number): void {
    for (let object = 0; object < items; object += 1) this.#kindOf.push(0);
  }

  /** Stores the verdict on an event. An undefined verdict means "recorded without findings". */
  keep(object: number, verdict: EventVerdict | undefined): void {
    if (verdict === undefined && this.#plain === 0) this.#plain = this.#numberOf(PLAINLY_RECORDED);
    this.#kindOf[object] = verdict === undefined ? this.#plain : this.#numberOf(verdict);
  }

  /** Returns the predicted verdict on an event. Undefined if there is none, or if it is `recorded` without findings. */
  predictionOf(object: number): Prediction | undefined {
    return this.#kinds[(this.#kindOf[object] ?? 0) - 1]?.prediction;
  }

  /** Returns groups of events with the same verdict: uncertain ones, those not sent, then recorded ones. */
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
    const isRoom = this.#kinds.length < MAX_VERDICT_KINDS;
    const key = isRoom || this.#byKey.has(exact) ? exact : [predicted, observed, findings[0]?.rule].join(" ");
    const known = this.#byKey.get(key);
    if (known !== undefined) {
      const kind = this.#kinds[known - 1];
      if (kind !== undefined && !kind.isOfFirst) kind.isOfFirst = !haveEqualMessages(kind.verdict.findings, findings);
      return known;
    }
    const rule = key === exact ? rules[0] : findings[0]?.rule;
    const prediction = { predicted, ...(rule !== undefined && { rule }), ...(observed !== undefined && { observed }) };
    const isPlain = predicted === "recorded" && rule === undefined;
    this.#kinds.push({ verdict, prediction: isPlain ? undefined : prediction, isOfFirst: false });
    this.#byKey.set(key, this.#kinds.length);
    return this.#kinds.length;
  }
}

function haveEqualMessages(one: readonly Finding[], other: readonly Finding[]): boolean {
  const isEqual = ({ message, fix }: Finding, at: number) => message === other[at]?.message && fix === other[at]?.fix;
  return one === other || (one.length === other.length && one.every(isEqual));
}

function weightOf({ predicted, findings }: EventVerdict): number {
  if (predicted === "uncertain") return 0;
  if (predicted !== "recorded") return 1;
  return findings.length > 0 ? 2 : 3;
}

/** Returns the verdict on an event. Undefined if `recorded` without findings was predicted and none observed. */
export function verdictOf(predicted: Validation, observed: EventSettlement["observed"]): EventVerdict | undefined {
  const { verdict, basis, findings } = predicted;
  const isPlain = verdict === "recorded" && basis === "documented" && findings.length === 0 && observed === undefined;
  if (isPlain) return undefined;
  const omitted = findings.length - FINDINGS_KEPT;
  const about = { ...(observed !== undefined && { observed }), ...(omitted > 0 && { omitted }) };
  return { predicted: verdict, basis, ...about, findings: findings.slice(0, FINDINGS_KEPT) };
}

/** The outcome of an event. `unknown`: perhaps recorded. `notApplied`: not recorded; sent if the run resumes. */
type EventOutcome = "succeeded" | "failed" | "unknown" | "notApplied";

/**
 * Why an event has its outcome. `refused`: it was not sent, because the service would drop or refuse it. `notSent`,
 * `busy`: no attempt succeeded before the time or the run was over. `runEnded`: an error of all events ended the run.
 */
type SettlementReason = "refused" | keyof typeof CODES;

export interface EventSettlement {
  readonly outcome: EventOutcome;
  readonly predicted: Validation;
  /** The verdict that the answer proves. Absent after `ok`, which ignored events get as well. */
  readonly observed?: Verdict;
  readonly reason?: SettlementReason;
  readonly statusCode?: number;
  readonly problem?: Readonly<Record<string, unknown>>;
  /** Why autocorrect did not correct a refused event. Absent without autocorrect. */
  readonly uncorrected?: Uncorrected;
  /** How many requests were sent for the event. If an answer was lost, more than one of them may have been recorded. */
  readonly attempts: number;
  /** Set if an answer was lost, so that the service may have recorded the event twice. */
  readonly maybeTwice?: true;
}

export interface RunEnd {
  readonly kind: RejectionKind | "unreachable" | "rateLimited";
  readonly statusCode?: number | undefined;
  readonly problem: Readonly<Record<string, unknown>>;
}

export interface Attempts {
  readonly predicted: Validation;
  count: number;
  /** Whether an answer was lost, so that the service may have recorded an earlier attempt. */
  lost: boolean;
}

/** Returns the outcome of an event after an answer of the service (event-tracking-api 4, 7). */
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

/** Returns the outcome of an event whose error ended the run. A resumed run sends it, before later ones of its user. */
export function settleByEnd({ predicted, count }: Attempts, { kind, statusCode, problem }: RunEnd): EventSettlement {
  const answered = { problem: { ...problem, kind }, ...(statusCode !== undefined && { statusCode }) };
  return { outcome: "notApplied", reason: "runEnded", predicted, attempts: count, ...answered };
}

const RUN_ENDING_KINDS: readonly RejectionKind[] = ["unauthorized", "forbidden", "wrongRoute", "redirect", "foreign"];

/** Returns the end of the run if an error concerns all events, such as an invalid key. Otherwise undefined. */
export function runEndOf(error: ApiError): RunEnd | undefined {
  if (error.effect !== "rejected" || !RUN_ENDING_KINDS.includes(error.kind)) return undefined;
  return { kind: error.kind, statusCode: error.statusCode, problem: problemOf(error) };
}

/** Returns the end of a run. The run ends because the service answered no event in the time allowed for retries. */
export function noAnswerEnd(error: ApiError): RunEnd {
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
} as const;

export type EventCode = (typeof CODES)[keyof typeof CODES] | "EVENT_IGNORED" | "EVENT_REJECTED";

/**
 * Returns the reason for the outcome of an event. `detail` has the fields of the error, and of the findings that decide
 * the verdict, or else of the first: the rules with paths, the section of the first, messages (`finding`) and fixes.
 */
export function eventReason({
  reason,
  predicted,
  statusCode,
  problem,
  uncorrected,
}: EventSettlement): Reason | undefined {
  if (reason === undefined) return undefined;
  const [first] = predicted.findings;
  const dropped = predicted.verdict === "ignored" ? "EVENT_IGNORED" : "EVENT_REJECTED";
  const code: EventCode = reason === "refused" ? dropped : CODES[reason];
  const why = uncorrected === undefined ? {} : { uncorrected };
  const all = decidingOf(predicted.findings);
  const deciding = all.slice(0, DECIDING_SHOWN);
  const more = all.length > deciding.length ? `; ${amount(all.length - deciding.length, "more finding")}` : "";
  const found = first && {
    rule: deciding.map(ruleAt).join(", "),
    section: first.section,
    finding: deciding.map(({ message }) => message).join("; ") + more,
    fix: deciding.map(({ fix }) => fix).join("; "),
    ...why,
  };
  const detail = (found ?? problem) && { ...found, ...problem };
  return { code, ...(statusCode !== undefined && { statusCode }), ...(detail && { detail }) };
}

/** Returns the findings because of which an event is not recorded, one of each kind, or else the first finding. */
function decidingOf(findings: readonly Finding[]): readonly Finding[] {
  const kinds = new Map<string, Finding>();
  for (const found of findings) {
    const verdict = verdictOfRule(found.rule);
    const isDropped = verdict === "ignored" || verdict === "rejected";
    if (kinds.size === 0 || (isDropped && !kinds.has(ruleAt(found)))) kinds.set(ruleAt(found), found);
  }
  return [...kinds.values()];
}

/** The maximum number of causes that are shown for an event. */
const DECIDING_SHOWN = 10;

/** Adds to the outcome of a refused event why autocorrect did not correct the event. */
export function withUncorrected(settlement: EventSettlement, event: unknown): EventSettlement {
  const [first] = settlement.predicted.findings;
  if (settlement.reason !== "refused" || first === undefined) return settlement;
  return { ...settlement, uncorrected: whyUncorrected(event, first) };
}

/** Returns the reason for events that were not sent because the run ended early. */
export function endReason({ kind, statusCode, problem }: RunEnd): Reason {
  const code: EventCode = "EVENTS_ENDED";
  const detail = { ...problem, kind };
  return { code, detail, ...(statusCode !== undefined && { statusCode }) };
}

/** Returns a rule with its path without indexes, so that equal mistakes in different items get the same text. */
function ruleAt({ rule, path }: { readonly rule: string; readonly path: string }): string {
  return `${rule} ${path.replaceAll(/\[\d+\]/g, "[]")}`.trim();
}

/** How many of the sandbox's newest events are searched for a sent event. Others may have arrived after it. */
const LOOKED_AT = 50;
/** The longest `uid` in an address. Servers may refuse longer addresses. */
const LONGEST_UID = 512;

/** Returns a function that looks up the sandbox's verdict on an event that was just sent. */
export function observerOf(sandbox: SandboxApi): (event: unknown) => Promise<Verdict | undefined> {
  return async (event) => {
    const uid = isJsonObject(event) ? event.uid : undefined;
    const known = typeof uid === "string" && uid !== "" && uid.length <= LONGEST_UID;
    const { events } = await sandbox.events({ limit: LOOKED_AT, ...(known && { uid }) });
    const sent = JSON.stringify(event);
    return events.findLast(({ body }) => JSON.stringify(body) === sent)?.verdict;
  };
}
