import { defined } from "../platform/by-key.ts";
import { isJsonObject } from "../platform/json.ts";
import { deletedTargetings } from "./deleted-targetings.ts";
import {
  type Counts,
  changedAt,
  changesNothing,
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
import type { ChangeKinds, RunHeader, RunRecord, RunSummary, Status } from "./store.ts";

export const RUN_STATUSES = [
  ...(["succeeded", "partial", "failed", "unknown", "running"] as const),
  ...(["interrupted", "cancelled", "planned", "needs_confirmation"] as const),
];
export type RunStatus = (typeof RUN_STATUSES)[number];

/** What was predicted for an object before sending, and the deciding rule. `observed`: the actual result, if known. */
export interface Prediction {
  readonly predicted: string;
  readonly rule?: string;
  readonly observed?: string;
}

/** The part of a run's state that reports read. The states of all kinds of runs have it. */
export interface ReportedState {
  readonly objects: {
    readonly length: number;
    at(object: number): ReportedObject | undefined;
    /** Absent for runs that change only options. */
    kindOf?(object: number): ReportedObject["kind"];
  };
  readonly requests: Readonly<Record<"planned" | "sent" | "resent" | "waitedMs", number>>;
  readonly stopped: { readonly cause: StopCause; readonly reason?: Reason | undefined } | undefined;
  readonly updatedAt: number;
  readonly endedAt?: number | undefined;
  /** `within`: the ID of the only targeting that the run changes. `tool`: replaces the tool of the call in reports. */
  readonly facts?: {
    readonly within?: string;
    readonly withinName?: string;
    readonly tool?: string;
    readonly rows?: RowCounts;
    readonly decided?: { readonly at: number; readonly who: string; readonly where: string };
    readonly inside?: readonly { readonly _id: string; readonly options: number; readonly groups: number }[];
  };
  counts(): Counts;
  standing(object: number): Standing;
  reason(object: number): Reason | undefined;
  idOf(object: number): string | undefined;
  /** Returns what the run did to an object. Undefined if that is unknown. Absent for runs that change no objects. */
  didOf?(object: number): Did | undefined;
  readonly resumed?: { readonly counts: Counts } | undefined;
  predictionOf?(object: number): Prediction | undefined;
}

export type ReportCounts = Counts & { readonly items: number };

export interface ObjectResult
  extends Partial<Prediction>,
    KnownChange,
    Omit<ReportedObject, "change" | "contextCount"> {
  readonly outcome: Standing;
  readonly did?: Did;
  readonly reason?: Reason;
}

export interface FailureGroup {
  readonly outcome: Outcome;
  readonly reason: Reason;
  readonly count: number;
  /** The positions of the group's first objects in the caller's input, counted from 0. */
  readonly indexes: readonly number[];
  /** Where the objects are in the input, as a few ranges of line numbers of the file or of item numbers from 1. */
  readonly places: readonly PlaceRange[];
  readonly placesOmitted: boolean;
  readonly byLine: boolean;
  /** Set if the objects have failed and are sub-options of new groups or options of new targetings. */
  readonly isInside?: true;
  readonly contextIds?: number;
  readonly ref?: string;
  readonly examples: readonly { readonly name: string; readonly _id?: string | undefined }[];
  /** The reasons of the first objects, if they differ in their details. */
  readonly details?: readonly FailureDetail[];
  /** The different messages in the group, the most frequent first. Absent if all are the same. */
  readonly kinds?: readonly FailureKind[];
}

export interface FailureKind {
  readonly reason: Reason;
  readonly count: number;
  readonly places: readonly PlaceRange[];
  readonly placesOmitted: boolean;
}

export type PlaceRange = readonly [from: number, to: number];

export interface FailureDetail extends Pick<ReportedObject, "index" | "line" | "child" | "grandchild"> {
  readonly reason: Reason;
}

const INDEXES_SHOWN = 20;
/** The maximum number of ranges in a group of failures: for agents, and for people. */
export const MOST_RANGES = { agent: 20, person: 60 } as const;
const EXAMPLES_KEPT = 3;
/** The maximum number of different messages in a group, and of ranges for each. */
const KINDS_KEPT = 100;
const RANGES_OF_A_KIND = 3;

export function countsOf(state: ReportedState): ReportCounts {
  return { items: state.objects.length, ...state.counts() };
}

export type WithinCounts = Pick<ReportCounts, "items" | "succeeded" | "pending">;

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

function settledStatus(counts: ReportCounts): "succeeded" | "partial" | "failed" | "unknown" {
  const good = counts.succeeded + counts.alreadyDone + (counts.skipped ?? 0);
  if (good === counts.items) return "succeeded";
  if (good > 0) return "partial";
  return counts.unknown > 0 ? "unknown" : "failed";
}

export function restingStatus(state: ReportedState): RunStatus {
  const counts = countsOf(state);
  if (state.stopped === undefined) return "interrupted";
  const { cause } = state.stopped;
  const open = counts.notApplied + counts.unknown + counts.pending > 0;
  // A run that was stopped before it was planned has no objects, so its counts do not show that it was stopped.
  if ((cause === "cancelled" || cause === "interrupted") && (open || counts.items === 0)) return cause;
  return settledStatus(counts);
}

export function statusAtRest(state: ReportedState): Status {
  const status = restingStatus(state);
  return status === "interrupted" || status === "cancelled" ? status : "finished";
}

/** Returns the status of a run. Once it is started, its journal decides: a crash leaves `running` in the record. */
export function reportedStatus({ status }: Pick<RunRecord, "status">, state: ReportedState): RunStatus {
  if (status === "planned") return "planned";
  if (status === "waiting") return "needs_confirmation";
  return status === "planning" ? "interrupted" : restingStatus(state);
}

export function objectResult(state: ReportedState, object: number): ObjectResult {
  const about: ReportedObject = state.objects.at(object) ?? { index: object };
  const _id = state.idOf(object);
  const reason = state.reason(object);
  const outcome = state.standing(object);
  const did = state.didOf?.(object);
  // The change is reported only if it was certainly made or is still to be made.
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

/** Returns at most `most` objects of a run: failed and unknown ones first, those that were not changed last. */
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

/** How many options a run changed, left as they were or has yet to change. `objects`: the items about these options. */
export type OptionCounts = Readonly<Record<"changed" | "same" | "pending" | "objects", number>>;

/** Counts options, not objects: each at most once as changed, once as pending, or as the same if it is neither. */
export function optionCounts(state: ReportedState): OptionCounts {
  const kinds = { changed: new Set<string>(), same: new Set<string>(), pending: new Set<string>() };
  let objects = 0;
  for (let object = 0; object < state.objects.length; object += 1) {
    const standing = state.standing(object);
    const isPlannedSame = standing === "pending" && changesNothing(state.objects.at(object)?.change);
    const kind = standing === "succeeded" ? state.didOf?.(object) : isPlannedSame ? "same" : standing;
    if (kind !== "changed" && kind !== "same" && kind !== "pending") continue;
    objects += 1;
    kinds[kind].add(state.idOf(object) ?? String(object));
  }
  const { changed, same, pending } = kinds;
  for (const id of changed) same.delete(id);
  for (const id of pending) same.delete(id);
  return { changed: changed.size, same: same.size, pending: pending.size, objects };
}

interface Collected extends Pick<FailureGroup, "outcome" | "reason" | "byLine" | "ref" | "isInside"> {
  count: number;
  readonly indexes: number[];
  readonly places: [from: number, to: number][];
  readonly examples: FailureGroup["examples"][number][];
  placesOmitted: boolean;
  contextIds?: number;
  readonly details: FailureDetail[];
  readonly kinds: Map<string, Kind>;
}

type Kind = Pick<Collected, "reason" | "count" | "places" | "placesOmitted">;

/** Returns the remedy for a reason. `kind`: a text that is equal for reasons described in the same words. */
type WordsOf = (reason: Reason) => { readonly remedy: string; readonly kind: string };

/** Groups skipped and unsuccessful objects, mainly by outcome, reason and remedy. The largest groups come first. */
export function failureGroups(
  state: ReportedState,
  wordsOf: WordsOf = () => ({ remedy: "", kind: "" }),
  mostRanges: number = MOST_RANGES.agent,
  reasonOf: ReportedState["reason"] = (object) => state.reason(object),
): readonly FailureGroup[] {
  const groups = new Map<string, Collected>();
  const keys = new Map<Reason, { readonly mark: string; readonly kind: string }>();
  const counts = state.counts();
  if (counts.failed + counts.notApplied + counts.unknown + (counts.skipped ?? 0) === 0) return [];
  for (let object = 0; object < state.objects.length; object += 1) {
    const reason = reasonOf(object);
    const outcome = state.standing(object);
    if (reason === undefined || outcome === "pending" || outcome === "succeeded" || outcome === "alreadyDone") continue;
    const about = state.objects.at(object);
    if (about === undefined) continue;
    // Many objects can share one reason, so its key is computed only once.
    const words = keys.get(reason) ?? markOf(reason, wordsOf);
    keys.set(reason, words);
    // Failed parts of new objects form their own group, because another call is needed to send them again.
    const isInside = outcome === "failed" && about.child !== undefined;
    const key = `${outcome} ${words.mark} ${isInside} ${about.line === undefined}`;
    const group = groups.get(key) ?? collect(outcome, reason, about, { id: state.idOf(object), isInside });
    groups.set(key, group);
    group.count += 1;
    const { name } = about;
    if (name !== undefined && group.examples.length < EXAMPLES_KEPT) {
      group.examples.push({ name, _id: state.idOf(object) });
    }
    const place = about.line ?? about.index + 1;
    addPlace(group, place, mostRanges);
    addToKind(group.kinds, { kind: words.kind, reason, place });
    const contextIds = reason.detail?.contextIds;
    if (typeof contextIds === "number") group.contextIds = (group.contextIds ?? 0) + contextIds;
    if (group.details.length < INDEXES_SHOWN) group.details.push({ ...placeOf(about), reason });
    if (group.indexes.length >= INDEXES_SHOWN || group.indexes.at(-1) === about.index) continue;
    group.indexes.push(about.index);
  }
  return [...groups.values()]
    .sort((a, b) => b.count - a.count)
    .map(({ details, kinds, ...group }) => ({
      ...group,
      ...(!isTheSame(details) && { details }),
      ...(kinds.size > 1 && { kinds: [...kinds.values()].sort((a, b) => b.count - a.count) }),
    }));
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
    kinds: new Map(),
    examples: [],
    places: [],
    placesOmitted: false,
    byLine: about.line !== undefined,
    ...(isInside && { isInside }),
    ...(ref !== undefined && { ref }),
  };
}

function addToKind(
  kinds: Collected["kinds"],
  { kind, reason, place }: { readonly kind: string; readonly reason: Reason; readonly place: number },
): void {
  const of = kinds.get(kind) ?? { reason, count: 0, places: [], placesOmitted: false };
  if (of.count === 0 && kinds.size === KINDS_KEPT) return;
  kinds.set(kind, of);
  of.count += 1;
  addPlace(of, place, RANGES_OF_A_KIND);
}

function addPlace(group: Pick<Collected, "places" | "placesOmitted">, place: number, most: number): void {
  const last = group.places.at(-1);
  if (last !== undefined && place >= last[0] && place <= last[1] + 1) last[1] = Math.max(last[1], place);
  else if (group.places.length < most) group.places.push([place, place]);
  else group.placesOmitted = true;
}

function markOf(reason: Reason, wordsOf: WordsOf): { readonly mark: string; readonly kind: string } {
  const { code, statusCode, detail, operation, sent } = reason;
  const [rule] = Array.isArray(detail?.rules) ? detail.rules : [detail?.rule];
  // Names that are too short form a group for each length, so that many empty names cannot hide the few others.
  const length = rule === "tooShort" ? detail?.length : undefined;
  const { remedy, kind } = wordsOf(reason);
  return { mark: JSON.stringify([code, statusCode, detail?.problem ?? rule, length, operation, sent, remedy]), kind };
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

export function summaryOf(
  header: RunHeader<{ readonly tool: string }>,
  state: ReportedState,
  status: RunStatus,
): RunSummary {
  const counts = countsOf(state);
  const targetingId = state.facts?.within ?? inputText(header.call, "targetingId");
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

const MAX_NAME_CHARACTERS = 120;
const MAX_NAMES = 2;

function aboutOf(
  { call, client, person, fileName }: RunHeader<{ readonly tool: string }>,
  state: ReportedState,
): NonNullable<RunSummary["about"]> {
  const { same: _, gone = 0, ...did } = didCounts(state) ?? { same: 0 };
  const { name, change } = (state.objects.length === 1 ? state.objects.at(0) : undefined) ?? {};
  const { only = name, to } = renamedIn(change);
  const plannedBy = inputText(call, "plannedBy");
  const how = "created" in did && did.changed > 0 ? changeKindsOf(state) : undefined;
  const undoes = inputText(call, "undoes");
  const inside = call.tool === "create_targetings" ? countsWithin(state) : { items: 0, succeeded: 0 };
  return {
    // Objects that were already gone when their deletion was sent again count as deleted: an undo restores them, too.
    ...("created" in did && { did: { ...did, deleted: did.deleted + gone } }),
    ...(inside.items > 0 && { inside: { items: inside.items, succeeded: inside.succeeded } }),
    ...defined({ only: only?.slice(0, MAX_NAME_CHARACTERS), to: to?.slice(0, MAX_NAME_CHARACTERS) }),
    ...defined({ client, person, fileName }),
    ...(state.facts?.rows !== undefined && state.facts.rows.merged > 0 && { mergesRows: true }),
    ...defined({ plannedBy, undoes }),
    ...kindsAndNames(state),
    ...("deleted" in did && did.deleted > 0 && defined({ deletedTargetings: deletedTargetings(call, state) })),
    ...defined({ how, beganAt: state.facts?.decided?.at }),
    ...defined({ within: state.facts?.withinName?.slice(0, MAX_NAME_CHARACTERS) }),
    ...decisionIn(state),
    ...(state.stopped?.reason?.code === "NOT_DECIDED" && { isExpired: true as const }),
    ...(state.endedAt !== undefined && { endedAt: state.endedAt }),
  };
}

const NO_OBJECTS = { items: 0, created: 0, changed: 0, deleted: 0 };

/** Counts a run's groups and targetings by what was done to them, and returns the names of its first objects. */
function kindsAndNames(state: ReportedState) {
  const counts = { group: { ...NO_OBJECTS }, targeting: { ...NO_OBJECTS } };
  const names: Partial<Record<Did, string[]>> = {};
  for (let object = 0; object < state.objects.length; object += 1) {
    const kind = state.objects.kindOf?.(object);
    if (kind !== undefined) counts[kind].items += 1;
    const did = state.didOf?.(object);
    if (did === undefined || did === "same") continue;
    if (kind !== undefined) counts[kind][did] += 1;
    if (names[did]?.length === MAX_NAMES) continue;
    const { name, change } = state.objects.at(object) ?? {};
    const { to = name } = renamedIn(change);
    if (to !== undefined) names[did] = [...(names[did] ?? []), to.slice(0, MAX_NAME_CHARACTERS)];
  }
  const { group, targeting } = counts;
  return { ...(group.items > 0 && { groups: group }), ...(targeting.items > 0 && { targetings: targeting }), names };
}

/** Counts changed objects, and those to change, by kind of change. Undefined if none, or if a change is unknown. */
export function changeKindsOf(state: ReportedState): ChangeKinds | undefined {
  const kinds = { renamed: 0, moved: 0, exposed: 0, extended: 0, added: 0, reduced: 0, removed: 0 };
  const groups = new Set<string | null | undefined>();
  for (let object = 0; object < state.objects.length; object += 1) {
    const standing = state.standing(object);
    const { change } = state.objects.at(object) ?? {};
    const isAhead = standing === "pending" && change !== undefined && !changesNothing(change);
    if (!isAhead && (standing !== "succeeded" || state.didOf?.(object) !== "changed")) continue;
    const { from, to, exposeChildren: shown, added = 0, removed = 0 } = change ?? {};
    const [before, after] = [sideOf(from), sideOf(to)];
    const isMoved = before.parent !== after.parent || before.parentName !== after.parentName;
    const found = [before.name !== after.name, isMoved, shown?.from !== shown?.to, added > 0, removed > 0] as const;
    if (!found.includes(true)) return undefined;
    for (const [at, kind] of KINDS_OF_CHANGES.entries()) kinds[kind] += Number(found[at]);
    kinds.added += added;
    kinds.removed += removed;
    if (isMoved) groups.add(after.parent === null ? null : (after.parentName ?? undefined));
  }
  const [into, ...others] = groups;
  if (KINDS_OF_CHANGES.every((kind) => kinds[kind] === 0)) return undefined;
  if (into === undefined || others.length > 0) return kinds;
  return { ...kinds, into: into === null ? null : into.slice(0, MAX_NAME_CHARACTERS) };
}

const KINDS_OF_CHANGES = ["renamed", "moved", "exposed", "extended", "reduced"] as const;

function renamedIn(change: KnownChange | undefined): { readonly only?: string; readonly to?: string } {
  const [{ name: only }, { name: to }] = [sideOf(change?.from), sideOf(change?.to)];
  return only === undefined || to === undefined ? {} : { only, to };
}

function sideOf(side: KnownChange["from"]): Exclude<KnownChange["from"], string | undefined> {
  return typeof side === "object" ? side : side === undefined ? {} : { name: side };
}

const FINAL_REASON_CODES: ReadonlySet<string> = new Set(["WITHDRAWN", "NOT_DECIDED", "DECLINED", "UNDONE"]);

function decisionIn({ facts, stopped }: ReportedState): Pick<NonNullable<RunSummary["about"]>, "decided" | "isOver"> {
  const { code = "", detail: { who, where } = {} } = stopped?.reason ?? {};
  const approved = facts?.decided && { is: "approved" as const, who: facts.decided.who, where: facts.decided.where };
  const decided = code === "DECLINED" ? { is: "declined" as const, who: String(who), where: String(where) } : approved;
  return { ...(decided && { decided }), ...(FINAL_REASON_CODES.has(code) && { isOver: true as const }) };
}

function inputText(call: object, name: string): string | undefined {
  const input = "input" in call ? call.input : undefined;
  const text = isJsonObject(input) ? input[name] : undefined;
  return typeof text === "string" ? text : undefined;
}
