import { type Counts, OUTCOMES } from "./outcomes.ts";
import type { RunHeader, RunSummary } from "./store.ts";
import type { Outcome, Reason, ReportedObject, Standing, StopCause } from "./work.ts";

/** Where a run as a whole stands (contract, "The result of a tool that writes"). */
export type RunStatus =
  | "succeeded"
  | "partial"
  | "failed"
  | "unknown"
  | "running"
  | "interrupted"
  | "cancelled"
  | "planned"
  | "needs_confirmation";

/** What was foretold of one object, where that says more than its outcome does, and what was seen of it. */
export interface Prediction {
  readonly predicted: string;
  /** The rule that decides, with its place. */
  readonly rule?: string;
  readonly observed?: string;
}

/** What reports read of a run's state, whatever the run sends. */
export interface ReportedState {
  readonly objects: { readonly length: number; at(object: number): ReportedObject | undefined };
  readonly requests: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  readonly stopped: { readonly cause: StopCause } | undefined;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  counts(): Counts;
  standing(object: number): Standing;
  reason(object: number): Reason | undefined;
  idOf(object: number): string | undefined;
  /** Absent where a run foretells nothing. */
  predictionOf?(object: number): Prediction | undefined;
}

/** Counts as the contract names them; they add up to `items`. */
export type ReportCounts = Readonly<Record<Outcome | "pending" | "items", number>>;

/** One object of a run with how it ended. */
export interface ObjectResult extends Partial<Prediction> {
  readonly index: number;
  readonly line?: number;
  readonly child?: number;
  readonly grandchild?: number;
  readonly outcome: Standing;
  readonly _id?: string;
  readonly name?: string;
  /** Of an event: the SHA-256 hash of its `uid`. */
  readonly uid?: string;
  readonly reason?: Reason;
}

/** Objects that did not succeed for the same reason. */
export interface FailureGroup {
  readonly outcome: Outcome;
  readonly reason: Reason;
  readonly count: number;
  /** The caller's indexes of the first ones. */
  readonly indexes: readonly number[];
  /** Where they come from a file: the lines of the first ones. */
  readonly lines?: readonly number[];
  /** Name or ID of the first. */
  readonly ref?: string;
}

const INDEXES_SHOWN = 20;

/** Counts of a run's state. */
export function countsOf(state: ReportedState): ReportCounts {
  const counts = state.counts();
  return { items: state.objects.length, ...counts };
}

/** The status that the counts of a run give, once nothing is being driven any more (contract, Status). */
export function settledStatus(counts: ReportCounts): "succeeded" | "partial" | "failed" | "unknown" {
  const good = counts.succeeded + counts.alreadyDone;
  if (good === counts.items) return "succeeded";
  if (good > 0) return "partial";
  return counts.unknown > 0 ? "unknown" : "failed";
}

/** The status of a run that nobody drives at the moment. */
export function restingStatus(state: ReportedState): RunStatus {
  const counts = countsOf(state);
  if (state.stopped === undefined) return "interrupted";
  const { cause } = state.stopped;
  const open = counts.unattempted + counts.unknown + counts.pending > 0;
  // Without an object it was stopped before it was planned.
  if ((cause === "cancelled" || cause === "interrupted") && (open || counts.items === 0)) return cause;
  return settledStatus(counts);
}

/** One object as reports and NDJSON name it. */
export function objectResult(state: ReportedState, object: number): ObjectResult {
  const about: ReportedObject = state.objects.at(object) ?? { index: object };
  const _id = state.idOf(object);
  const reason = state.reason(object);
  return {
    index: about.index,
    ...(about.line === undefined ? {} : { line: about.line }),
    ...(about.child === undefined ? {} : { child: about.child }),
    ...(about.grandchild === undefined ? {} : { grandchild: about.grandchild }),
    outcome: state.standing(object),
    ...(_id === undefined ? {} : { _id }),
    ...(about.name === undefined ? {} : { name: about.name }),
    ...(about.uid === undefined ? {} : { uid: about.uid }),
    ...state.predictionOf?.(object),
    ...(reason === undefined ? {} : { reason }),
  };
}

/** Objects of a run in their order, from one on, as many as there are up to `most`. */
export function objectResults(
  state: ReportedState,
  from = 0,
  most = Number.POSITIVE_INFINITY,
): readonly ObjectResult[] {
  const count = Math.max(0, Math.min(most, state.objects.length - from));
  return Array.from({ length: count }, (_, at) => objectResult(state, from + at));
}

/** What did not succeed, grouped by outcome and reason, the largest groups first. */
export function failureGroups(state: ReportedState): readonly FailureGroup[] {
  const groups = new Map<
    string,
    { outcome: Outcome; reason: Reason; count: number; indexes: number[]; lines?: number[]; ref?: string }
  >();
  const counts = state.counts();
  if (counts.failed + counts.unattempted + counts.unknown === 0) return [];
  for (let object = 0; object < state.objects.length; object += 1) {
    const reason = state.reason(object);
    const outcome = OUTCOMES.find((candidate) => candidate === state.standing(object));
    if (reason === undefined || outcome === undefined || outcome === "succeeded" || outcome === "alreadyDone") continue;
    const key = `${outcome} ${reason.code} ${reason.statusCode ?? ""} ${String(reason.detail?.problem ?? reason.detail?.rule ?? "")} ${(reason.sent ?? []).join()}`;
    const group = groups.get(key);
    const about = state.objects.at(object);
    if (about === undefined) continue;
    if (group === undefined) {
      const ref = about.name ?? state.idOf(object);
      const lines = about.line === undefined ? {} : { lines: [about.line] };
      const named = ref === undefined ? {} : { ref };
      groups.set(key, { outcome, reason, count: 1, indexes: [about.index], ...lines, ...named });
      continue;
    }
    group.count += 1;
    if (group.indexes.length >= INDEXES_SHOWN || group.indexes.at(-1) === about.index) continue;
    group.indexes.push(about.index);
    if (about.line !== undefined) group.lines?.push(about.line);
  }
  return [...groups.values()].sort((a, b) => b.count - a.count);
}

/** A run in short. */
export function summaryOf(
  header: RunHeader<{ readonly tool: string }>,
  state: ReportedState,
  status: RunStatus,
): RunSummary {
  const counts = countsOf(state);
  return {
    tool: header.call.tool,
    caller: header.caller,
    fingerprint: header.fingerprint,
    status,
    counts,
    startedAt: header.createdAt,
    updatedAt: Math.max(header.createdAt, state.updatedAt),
    open: status === "running" || counts.unknown + counts.unattempted + counts.pending > 0,
  };
}
