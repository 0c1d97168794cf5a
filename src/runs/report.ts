import type { RunRecord, Status } from "./lifecycle.ts";
import {
  type Counts,
  changedAt,
  type Did,
  type DidCounts,
  type KnownChange,
  type Outcome,
  type Reason,
  type ReportedObject,
  type RowCounts,
  type Standing,
  type StopCause,
} from "./outcome.ts";
import type { RunHeader, RunSummary } from "./store.ts";

/** The status of a whole run, in the result of a writing tool. */
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

/** The prediction for one object if it says more than the outcome, and what was observed. */
export interface Prediction {
  readonly predicted: string;
  /** The deciding rule, with its section of the API document. */
  readonly rule?: string;
  readonly observed?: string;
}

/** The part of a run's state that reports read. It is the same for all kinds of runs. */
export interface ReportedState {
  readonly objects: { readonly length: number; at(object: number): ReportedObject | undefined };
  readonly requests: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  readonly stopped: { readonly cause: StopCause; readonly reason?: Reason | undefined } | undefined;
  /** Milliseconds since 1970. */
  readonly updatedAt: number;
  /**
   * The only targeting whose objects the run changes, and its name. The tool to report, if it is not the tool of the
   * call. The counts of the rows of its file. When a person approved the run, who and where.
   */
  readonly facts?: {
    readonly within?: string;
    readonly withinName?: string;
    readonly tool?: string;
    readonly rows?: RowCounts;
    readonly decided?: { readonly at: number; readonly who: string; readonly where: string };
  };
  counts(): Counts;
  standing(object: number): Standing;
  reason(object: number): Reason | undefined;
  idOf(object: number): string | undefined;
  /** Returns what the run did with an object whose outcome is resolved. Absent if runs of this kind create nothing. */
  didOf?(object: number): Did | undefined;
  /** Only for a resumed run: the counts when it was resumed. */
  readonly resumed?: { readonly counts: Counts } | undefined;
  /** Absent if runs of this kind predict nothing. */
  predictionOf?(object: number): Prediction | undefined;
}

/** The counts as results name them. They add up to `items`. */
export type ReportCounts = Counts & { readonly items: number };

/** One object of a run with its outcome. */
export interface ObjectResult
  extends Partial<Prediction>,
    KnownChange,
    Omit<ReportedObject, "change" | "contextCount"> {
  readonly outcome: Standing;
  readonly did?: Did;
  readonly reason?: Reason;
}

/** Objects that did not succeed for the same reason. */
export interface FailureGroup {
  readonly outcome: Outcome;
  readonly reason: Reason;
  readonly count: number;
  /** The caller's indexes of the first objects. */
  readonly indexes: readonly number[];
  /** The locations of all objects: lines of a file, or items counted from 1. The number of ranges is limited. */
  readonly places: readonly PlaceRange[];
  readonly placesOmitted: boolean;
  /** Whether the locations are lines of a file. */
  readonly byLine: boolean;
  /** Whether the objects are sub-options of new groups, or options of new targetings. */
  readonly isInside?: true;
  /** How many Context IDs the objects have in total, if the reason has a number for each object. */
  readonly contextIds?: number;
  /** Name or ID of the first object. */
  readonly ref?: string;
  /** The names of the first objects that have one, with their IDs. */
  readonly examples: readonly { readonly name: string; readonly _id?: string | undefined }[];
  /**
   * Present if the details differ: the details of the first objects, each with its position, in the order of `indexes`.
   */
  readonly details?: readonly FailureDetail[];
}

/** A range of consecutive locations. Both ends are included. */
export type PlaceRange = readonly [from: number, to: number];

/** The reason of one object with its details, and the object's position. */
export interface FailureDetail extends Pick<ReportedObject, "index" | "line" | "child" | "grandchild"> {
  readonly reason: Reason;
}

const INDEXES_SHOWN = 20;
const RANGES_KEPT = 20;
const EXAMPLES_KEPT = 3;

/** Returns the counts of a run's state. */
export function countsOf(state: ReportedState): ReportCounts {
  const counts = state.counts();
  return { items: state.objects.length, ...counts };
}

/** How many objects of a run are within another one, such as the options of new targetings. */
export type WithinCounts = Pick<ReportCounts, "items" | "succeeded" | "pending">;

/** Counts the objects of a run that are within another one. */
export function countsWithin(state: ReportedState): WithinCounts {
  const counts = { items: 0, succeeded: 0, pending: 0 };
  for (let object = 0; object < state.objects.length; object += 1) {
    if (state.objects.at(object)?.child === undefined) continue;
    counts.items += 1;
    const is = state.standing(object);
    if (is === "succeeded" || is === "pending") counts[is] += 1;
  }
  return counts;
}

/** Returns the status of a run that is no longer executed, by its counts. */
function settledStatus(counts: ReportCounts): "succeeded" | "partial" | "failed" | "unknown" {
  const good = counts.succeeded + counts.alreadyDone + (counts.skipped ?? 0);
  if (good === counts.items) return "succeeded";
  if (good > 0) return "partial";
  return counts.unknown > 0 ? "unknown" : "failed";
}

/** Returns the status of a run that no process executes now. */
export function restingStatus(state: ReportedState): RunStatus {
  const counts = countsOf(state);
  if (state.stopped === undefined) return "interrupted";
  const { cause } = state.stopped;
  const open = counts.notApplied + counts.unknown + counts.pending > 0;
  // A run without objects was stopped before it was planned.
  if ((cause === "cancelled" || cause === "interrupted") && (open || counts.items === 0)) return cause;
  return settledStatus(counts);
}

/** Returns the status to store for a run that came to rest with this state. */
export function statusAtRest(state: ReportedState): Status {
  const status = restingStatus(state);
  return status === "interrupted" || status === "cancelled" ? status : "finished";
}

/**
 * Returns the status of a run that no process executes now. Until the run starts, its record decides; after that, its
 * journal does. So a journal that ends with a stop overrules the record's `running`.
 */
export function reportedStatus({ status }: Pick<RunRecord, "status">, state: ReportedState): RunStatus {
  if (status === "planned") return "planned";
  if (status === "waiting") return "needs_confirmation";
  return status === "planning" ? "interrupted" : restingStatus(state);
}

/** Returns one object as reports and NDJSON show it. */
export function objectResult(state: ReportedState, object: number): ObjectResult {
  const about: ReportedObject = state.objects.at(object) ?? { index: object };
  const _id = state.idOf(object);
  const reason = state.reason(object);
  const outcome = state.standing(object);
  const did = state.didOf?.(object);
  // The planned change is shown only if it was certainly made, or is still planned.
  const isKnown = outcome === "succeeded" || outcome === "alreadyDone" || outcome === "pending";
  return {
    ...placeOf(about),
    outcome,
    ...(did === undefined ? {} : { did }),
    ...(_id === undefined ? {} : { _id }),
    ...(about.name === undefined ? {} : { name: about.name }),
    ...(isKnown ? about.change : {}),
    ...(about.uid === undefined ? {} : { uid: about.uid }),
    ...(about.mended === undefined ? {} : { mended: about.mended }),
    ...state.predictionOf?.(object),
    ...(reason === undefined ? {} : { reason }),
  };
}

/**
 * Returns up to `most` objects of a run: first those that failed or are unknown, last those that were as wanted already,
 * each in their order.
 */
export function failuresFirst(state: ReportedState, most: number): readonly ObjectResult[] {
  const rankOf = (object: number): number => {
    const standing = state.standing(object);
    if (standing === "failed" || standing === "unknown") return 0;
    return standing === "alreadyDone" || state.didOf?.(object) === "same" ? 2 : 1;
  };
  const wanted: number[] = [];
  for (const rank of [0, 1, 2]) {
    for (let object = 0; wanted.length < most && object < state.objects.length; object += 1) {
      if (rankOf(object) === rank) wanted.push(object);
    }
  }
  return wanted.map((object) => objectResult(state, object));
}

/** Returns what a run did, as counts, or undefined if its kind creates nothing. */
export function didCounts(state: ReportedState): DidCounts | undefined {
  if (state.didOf === undefined) return undefined;
  const counts = { created: 0, changed: 0, deleted: 0, same: 0, gone: 0 };
  for (let object = 0; object < state.objects.length; object += 1) {
    const standing = state.standing(object);
    if (standing !== "succeeded" && standing !== "alreadyDone") continue;
    const did = state.didOf(object);
    if (standing === "alreadyDone") counts.gone += did === "deleted" ? 1 : 0;
    else if (did !== undefined) counts[did] += 1;
  }
  return counts;
}

/** A group while it is collected. */
interface Collected extends Pick<FailureGroup, "outcome" | "reason" | "byLine" | "ref" | "isInside"> {
  count: number;
  readonly indexes: number[];
  readonly places: [from: number, to: number][];
  readonly examples: FailureGroup["examples"][number][];
  placesOmitted: boolean;
  contextIds?: number;
  readonly details: FailureDetail[];
}

/**
 * Groups the objects that did not succeed by outcome and reason, the largest groups first. `remedyOf` returns the
 * remedy of a reason: failures with different remedies are never in one group.
 */
export function failureGroups(
  state: ReportedState,
  remedyOf: (reason: Reason) => string = () => "",
): readonly FailureGroup[] {
  const groups = new Map<string, Collected>();
  const keys = new Map<Reason, string>();
  const counts = state.counts();
  if (counts.failed + counts.notApplied + counts.unknown + (counts.skipped ?? 0) === 0) return [];
  for (let object = 0; object < state.objects.length; object += 1) {
    const reason = state.reason(object);
    const outcome = state.standing(object);
    if (reason === undefined || outcome === "pending" || outcome === "succeeded" || outcome === "alreadyDone") continue;
    const about = state.objects.at(object);
    if (about === undefined) continue;
    // The key is cached, because many objects often share one reason.
    const mark = keys.get(reason) ?? markOf(reason, remedyOf);
    keys.set(reason, mark);
    // Failures inside new objects are sent again in another way.
    const isInside = outcome === "failed" && about.child !== undefined;
    const key = `${outcome} ${mark} ${isInside}`;
    const group = groups.get(key) ?? collect(outcome, reason, about, { id: state.idOf(object), isInside });
    groups.set(key, group);
    group.count += 1;
    const { name } = about;
    if (name !== undefined && group.examples.length < EXAMPLES_KEPT) {
      group.examples.push({ name, _id: state.idOf(object) });
    }
    addPlace(group, about.line ?? about.index + 1);
    const contextIds = reason.detail?.contextIds;
    if (typeof contextIds === "number") group.contextIds = (group.contextIds ?? 0) + contextIds;
    if (group.details.length < INDEXES_SHOWN) group.details.push({ ...placeOf(about), reason });
    if (group.indexes.length >= INDEXES_SHOWN || group.indexes.at(-1) === about.index) continue;
    group.indexes.push(about.index);
  }
  return [...groups.values()]
    .sort((a, b) => b.count - a.count)
    .map(({ details, ...group }) => (isTheSame(details) ? group : { ...group, details }));
}

function collect(
  outcome: Outcome,
  reason: Reason,
  about: ReportedObject,
  { id, isInside }: { readonly id: string | undefined; readonly isInside: boolean },
): Collected {
  const ref = about.name ?? id;
  return {
    outcome,
    reason,
    count: 0,
    indexes: [],
    details: [],
    examples: [],
    places: [],
    placesOmitted: false,
    byLine: about.line !== undefined,
    ...(isInside && { isInside }),
    ...(ref !== undefined && { ref }),
  };
}

function addPlace(group: Collected, place: number): void {
  const last = group.places.at(-1);
  if (last !== undefined && place >= last[0] && place <= last[1] + 1) last[1] = Math.max(last[1], place);
  else if (group.places.length < RANGES_KEPT) group.places.push([place, place]);
  else group.placesOmitted = true;
}

/** Returns the key by which reasons are grouped. */
function markOf(reason: Reason, remedyOf: (reason: Reason) => string): string {
  const { code, statusCode, detail, operation, sent } = reason;
  const [rule] = Array.isArray(detail?.rules) ? detail.rules : [detail?.rule];
  return JSON.stringify([code, statusCode, detail?.problem ?? rule, operation, sent, remedyOf(reason)]);
}

function isTheSame(details: readonly FailureDetail[]): boolean {
  return new Set(details.map(({ reason }) => JSON.stringify(reason.detail ?? {}))).size <= 1;
}

function placeOf({ index, line, child, grandchild }: ReportedObject): Omit<FailureDetail, "reason"> {
  return {
    index,
    ...(line === undefined ? {} : { line }),
    ...(child === undefined ? {} : { child }),
    ...(grandchild === undefined ? {} : { grandchild }),
  };
}

/** Returns the summary of a run. */
export function summaryOf(
  header: RunHeader<{ readonly tool: string }>,
  state: ReportedState,
  status: RunStatus,
): RunSummary {
  const counts = countsOf(state);
  const targetingId = state.facts?.within ?? targetingIn(header.call);
  return {
    ...(targetingId !== undefined && { targetingId }),
    tool: state.facts?.tool ?? header.call.tool,
    caller: header.caller,
    fingerprint: header.fingerprint,
    status,
    counts,
    startedAt: header.createdAt,
    updatedAt: changedAt(header, state),
    open: status === "running" || counts.unknown + counts.notApplied + counts.pending > 0,
    about: aboutOf(header, state),
  };
}

/** The maximum length of a name in a summary. */
const MAX_LETTERS = 120;

/** Returns what lists show about a run besides its counts. */
function aboutOf(
  { call, client, fileName }: RunHeader<{ readonly tool: string }>,
  state: ReportedState,
): NonNullable<RunSummary["about"]> {
  const { same: _, gone = 0, ...did } = didCounts(state) ?? { same: 0 };
  const { name, change } = (state.objects.length === 1 ? state.objects.at(0) : undefined) ?? {};
  const { from, to } = change ?? {};
  const isRenamed = typeof from === "string" && typeof to === "string";
  const only = isRenamed ? from : name;
  const plannedBy = inputText(call, "plannedBy");
  return {
    // An undo restores what was found deleted, too.
    ...("created" in did && { did: { ...did, deleted: did.deleted + gone } }),
    ...(only !== undefined && { only: only.slice(0, MAX_LETTERS) }),
    ...(isRenamed && { to: to.slice(0, MAX_LETTERS) }),
    ...(client !== undefined && { client }),
    ...(fileName !== undefined && { fileName }),
    ...(state.facts?.rows !== undefined && state.facts.rows.merged > 0 && { mergesRows: true }),
    ...(plannedBy !== undefined && { plannedBy }),
    ...(state.facts?.decided !== undefined && { beganAt: state.facts.decided.at }),
    ...(state.facts?.withinName !== undefined && { within: state.facts.withinName.slice(0, MAX_LETTERS) }),
    ...decisionIn(state),
  };
}

/** Reasons after which a run neither continues nor can be undone. */
const FINAL_REASON_CODES: ReadonlySet<string> = new Set(["WITHDRAWN", "NOT_DECIDED", "DECLINED", "UNDONE"]);

/** Returns who approved or declined a run, in which channel, and whether the run can no longer continue. */
function decisionIn({ facts, stopped }: ReportedState): Pick<NonNullable<RunSummary["about"]>, "decided" | "isOver"> {
  const { code = "", detail: { who, where } = {} } = stopped?.reason ?? {};
  const approved = facts?.decided && { is: "approved" as const, who: facts.decided.who, where: facts.decided.where };
  const decided = code === "DECLINED" ? { is: "declined" as const, who: String(who), where: String(where) } : approved;
  return { ...(decided && { decided }), ...(FINAL_REASON_CODES.has(code) && { isOver: true as const }) };
}

/** Returns the only targeting that a call of any kind names. */
function targetingIn(call: object): string | undefined {
  return inputText(call, "targetingId");
}

/** Returns a text of the input of a call. */
function inputText(call: object, name: string): string | undefined {
  const input = "input" in call ? call.input : undefined;
  if (typeof input !== "object" || input === null) return undefined;
  const text = new Map<string, unknown>(Object.entries(input)).get(name);
  return typeof text === "string" ? text : undefined;
}
