import { isApiError, orError, type RejectedError } from "../../api/errors.ts";
import { aroundReads } from "../../api/management.ts";
import { folded, NameIndex } from "../../platform/by-key.ts";
import {
  findOptions,
  isMissing,
  mapConcurrently,
  type OptionContents,
  readOptionContents,
} from "../../reads/option-contents.ts";
import { readOptions } from "../../reads/option-lists.ts";
import { type KnownChange, type MatchedName, ownReason, type Reason, type ReportedObject } from "../../runs/outcome.ts";
import { isUlid, nearContextIds, separatorsIn, trimContextId } from "../../spec/names-and-contexts.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { NamedTargeting } from "../call.ts";
import { type Step, targetOf } from "../rows/entries.ts";
import type { Plan, PlanningContext } from "./plan.ts";

/** Finds an option by name. Returns a reason if not exactly one matches. `field`: the input field with the name. */
export type FindOption = (name: string, field: string) => OptionRecord | Reason;

/**
 * Finds options by name. `known`: all options that were read. `takenFor`: the first names that did not match exactly,
 * and the options that were used for them.
 */
interface OptionFinder extends FindOption {
  readonly takenFor: readonly MatchedName[];
  readonly known: ReadonlyMap<string, OptionRecord>;
}

const MAX_MATCHED_NAMES = 20;

/**
 * Returns a function that finds the options of a targeting by name. `isNeeded`: whether there are names to find; if
 * not, the options are not read. Throws the ApiError of a failed read.
 */
export async function optionFinder(
  targetingId: string | undefined,
  isNeeded: boolean,
  { api, signal }: PlanningContext,
): Promise<OptionFinder> {
  const takenFor: MatchedName[] = [];
  const known = new Map<string, OptionRecord>();
  const index = new NameIndex<OptionRecord>();
  if (isNeeded && targetingId !== undefined) {
    for await (const option of readOptions(api, targetingId, signal)) {
      const record = { targeting: targetingId, ...option };
      index.add(record);
      known.set(record._id, record);
    }
  }
  const find: FindOption = (given, field) => {
    if (targetingId === undefined) return ownReason("INVALID_ITEM", { problem: "nameWithoutTargeting", value: given });
    const option = found(index, given, field, known);
    const isTaken = isOption(option) && option.name !== given && !takenFor.some((taken) => taken.given === given);
    if (isTaken && takenFor.length < MAX_MATCHED_NAMES) takenFor.push({ given, name: option.name });
    return option;
  };
  return Object.assign(find, { takenFor, known });
}

/** Returns the option with a name, or why there is not exactly one. `known`: options by ID, to name their groups. */
export function found(
  index: NameIndex<OptionRecord>,
  name: string,
  field: string,
  known?: ReadonlyMap<string, OptionRecord>,
): OptionRecord | Reason {
  const match = index.find(name);
  if (match.kind === "one") return match.thing;
  const about = { field, value: name };
  if (match.kind === "ambiguous") {
    const { candidates } = match;
    const groups = candidates.map(({ parent }) => known?.get(parent ?? "")?.name ?? "");
    const each = { ids: candidates.map(({ _id }) => _id), names: candidates.map((one) => one.name), groups };
    return ownReason("NAME_AMBIGUOUS", { ...about, ...each });
  }
  const isMeant = ({ type }: OptionRecord): boolean => field !== "parentName" || type === "collection";
  const near = match.candidates.filter(isMeant).map((candidate) => candidate.name);
  return ownReason("NAME_NOT_FOUND", near.length === 0 ? about : { ...about, near });
}

/** Removes from the suggestions in a reason the names of options that the same call deletes. */
export function withoutNames(reason: Reason, gone: ReadonlySet<string>): Reason {
  const { near, ...detail } = reason.detail ?? {};
  if (!Array.isArray(near)) return reason;
  const left = near.filter((name) => !gone.has(String(name)));
  return { ...reason, detail: left.length === 0 ? detail : { ...detail, near: left } };
}

export function isOption(option: OptionRecord | Reason): option is OptionRecord {
  return "_id" in option;
}

/** Returns the reason why a targeting's name was not found or is ambiguous. */
export function unnamed({ currentName: value, ids = [], near = [] }: NamedTargeting): Reason {
  const about = { field: "currentName", of: "targetings", value };
  if (ids.length > 0) return ownReason("NAME_AMBIGUOUS", { ...about, ids });
  return ownReason("NAME_NOT_FOUND", near.length === 0 ? about : { ...about, near });
}

export type CurrentNames = ReadonlyMap<string, string | RejectedError>;

/** Reads the names of targetings. Throws the ApiError of a failed read, unless the targeting does not exist. */
export async function readCurrentNames(ids: Iterable<string>, { api, signal }: PlanningContext): Promise<CurrentNames> {
  const read = await mapConcurrently([...new Set(ids)], async (_id) => {
    const there = await orError(isMissing, api.getTargeting(_id, { signal }));
    return [_id, there instanceof Error ? there : there.name] as const;
  });
  return new Map(read);
}

/**
 * Returns a reason if a targeting has another name now than the caller used for it. Undefined if it has the same name,
 * or if the caller used only its ID.
 */
export function reasonIfRenamed(currentName: string | undefined, now: string): Reason | undefined {
  if (currentName === undefined || folded(now) === folded(currentName)) return undefined;
  return ownReason("NAME_NOT_FOUND", { field: "currentName", of: "targetings", value: currentName, now });
}

type ChangingStep = { readonly step: Step; readonly id: string };

/**
 * Records the values of each option, and the name of each targeting, before the run changes it, and what the report
 * says about these changes. Records the targeting, too, if all options are in the same one. What cannot be read is
 * omitted.
 */
export async function notePreviousValues(plan: Plan, context: PlanningContext): Promise<void> {
  const changes = [...changesIn(plan)];
  const reads = optionalReads(context);
  const unread = (await noteTargetings(plan, changes, reads)) + (await noteOptions(plan, changes, reads));
  // An object that does not exist cannot be changed. So the count matters only if a read failed.
  if (reads.fails.one) noteUnread(plan, unread);
  await noteAdded(plan, changes, reads);
  // Many options may be known, and the plan is held for as long as the run lasts.
  plan.known = new Map();
}

function* changesIn({ steps }: Plan): Generator<ChangingStep> {
  for (let id = 0; id < steps.length; id += 1) {
    const operation = steps.partAt(id)?.operation;
    if (operation !== "updateOptions" && operation !== "renameTargetings") continue;
    const step = steps.at(id);
    const target = step && targetOf(step);
    if (step !== undefined && target !== undefined && isUlid(target)) yield { step, id: target };
  }
}

/** Records the names of targetings before they are renamed. Returns how many of these targetings were not read. */
async function noteTargetings(plan: Plan, changes: readonly ChangingStep[], reads: OptionalReads): Promise<number> {
  const renames = changes.filter(({ step }) => step.operation === "renameTargetings");
  if (renames.length === 0) return 0;
  const there = await reads.targetings(renames.map(({ id }) => id));
  for (const { step, id } of renames) {
    const from = there.get(id)?.name;
    const to = step.item?.name;
    if (from !== undefined) plan.former.targeting(id, from);
    if (from !== undefined && to !== undefined) amend(plan, step, { from, to });
  }
  return renames.filter(({ id }) => !there.has(id)).length;
}

/** Records the values of options before they change, but not their Context IDs. Returns how many were not read. */
async function noteOptions(plan: Plan, changes: readonly ChangingStep[], reads: OptionalReads): Promise<number> {
  const updates = changes.flatMap(({ step, id }) =>
    step.operation === "updateOptions" && step.item.contexts === undefined ? [{ step, item: step.item, id }] : [],
  );
  if (updates.length === 0) return 0;
  const there = new Map(plan.known);
  const isUnread = (id: string): boolean => !there.has(id);
  for (const [id, record] of await reads.records(updates.map(({ id }) => id).filter(isUnread))) there.set(id, record);
  const parents = updates.flatMap(({ item, id }) =>
    item.parent === undefined
      ? []
      : [item.parent, there.get(id)?.parent].filter((parent) => typeof parent === "string"),
  );
  for (const [id, record] of await reads.records(parents.filter(isUnread))) there.set(id, record);
  const place = (parent: string | null) => ({
    parent,
    parentName: parent === null ? null : (there.get(parent)?.name ?? null),
  });
  // A group that the same call renames is shown with its new name.
  const renamed = new Map(updates.flatMap(({ item: { name }, id }) => (name === undefined ? [] : [[id, name]])));
  const placeAfter = (parent: string | null) => {
    const name = parent === null ? undefined : renamed.get(parent);
    return name === undefined ? place(parent) : { parent, parentName: name };
  };
  for (const { step, item, id } of updates) {
    const record = there.get(id);
    if (record === undefined) continue;
    plan.former.record(record);
    const { name, parent, exposeChildren: isShown } = item;
    for (const object of step.objects) {
      const optionKind = parent === undefined ? {} : { optionKind: kindOf(record) };
      plan.objects.amend(object, {
        ...(name === undefined && { name: record.name }),
        ...groupMark(record),
        ...optionKind,
      });
    }
    const [from, to] = parent === undefined ? [{}, {}] : [place(record.parent ?? null), placeAfter(parent)];
    const sides =
      name === undefined
        ? parent !== undefined && { from, to }
        : parent === undefined
          ? { from: record.name, to: name }
          : { from: { name: record.name, ...from }, to: { name, ...to } };
    const shown = isShown !== undefined && {
      exposeChildren: { from: record.exposeChildren ?? false, to: isShown },
    };
    if (sides !== false || shown !== false) amend(plan, step, { ...sides, ...shown });
  }
  const targetings = updates.map(({ id }) => there.get(id)?.targeting);
  noteCommonTargeting(plan, targetings);
  return updates.filter(({ id }) => isUnread(id)).length;
}

function kindOf({ type, parent, childCount }: OptionRecord): NonNullable<ReportedObject["optionKind"]> {
  if (type === "collection" || (type === undefined && childCount !== undefined)) return "group";
  return typeof parent === "string" ? "subOption" : "topLevel";
}

async function noteAdded(plan: Plan, changes: readonly ChangingStep[], reads: OptionalReads): Promise<void> {
  // Steps whose options the planner itself has read are omitted, because it has already recorded them.
  const adds = changes.flatMap(({ step, id }) => {
    const contexts = step.operation === "updateOptions" ? step.item.contexts : undefined;
    const isNoted = step.objects.some((object) => plan.objects.at(object)?.change !== undefined);
    return contexts?.add === undefined || isNoted ? [] : [{ step, id, add: contexts.add }];
  });
  if (adds.length === 0) return;
  const there = await reads.contents(adds.map(({ id }) => id));
  noteUnread(plan, new Set(adds.map(({ id }) => id)).size - there.size - reads.missing.size);
  const change = new Map<number, { added: number; alreadyThere: number }>();
  for (const { step, id, add } of adds) {
    const contents = there.get(id);
    if (contents === undefined) continue;
    const held = new Set(contents.contexts);
    const alreadyThere = add.filter((contextId) => held.has(contextId)).length;
    for (const object of step.objects) {
      const sum = change.get(object) ?? { added: 0, alreadyThere: 0 };
      change.set(object, {
        added: sum.added + add.length - alreadyThere,
        alreadyThere: sum.alreadyThere + alreadyThere,
      });
    }
  }
  for (const [object, counts] of change) plan.objects.amend(object, { change: counts });
  for (const [id, contents] of there) {
    const ofOption = adds.filter((one) => one.id === id);
    const added = new Set(ofOption.flatMap(({ add }) => add));
    notePreviousContents(plan, contents, added);
    noteSimilarIds(plan, added, contents.contexts);
    const [object, ...others] = new Set(ofOption.flatMap(({ step }) => step.objects));
    if (object === undefined || others.length > 0) continue;
    const contextCount = contents.contexts.length + (change.get(object)?.added ?? 0);
    plan.objects.amend(object, { contextCount });
  }
}

export function groupMark({ type }: Pick<OptionRecord, "type">): Pick<ReportedObject, "kind"> {
  return type === "collection" ? { kind: "group" } : {};
}

function amend(plan: Plan, { objects }: Step, change: KnownChange): void {
  for (const object of objects) plan.objects.amend(object, { change });
}

/** Records the previous values of an option, and which of the changed Context IDs it had. */
export function notePreviousContents(
  plan: Plan,
  { option, contexts }: OptionContents,
  changed: ReadonlySet<string>,
): void {
  plan.former.record(option);
  const held = contexts.filter((id) => changed.has(id));
  plan.former.option({ _id: option._id, held, contextCount: contexts.length });
}

const MAX_NEAR = 3;

/** Records those given Context IDs that equal one of the option's except for case, width or Unicode composition. */
export function noteSimilarIds(plan: Plan, given: Iterable<string>, held: readonly string[]): void {
  const near = nearContextIds([...given], held);
  if (near.length === 0) return;
  const { count = 0, first = [] } = plan.facts.nearIds ?? {};
  plan.note({ nearIds: { count: count + near.length, first: [...first, ...near].slice(0, MAX_NEAR) } });
}

/**
 * Records given Context IDs that contain separators, because each may really be several IDs. Those that the option
 * already has (`held`) are fine.
 */
export function noteJoinedIds(plan: Plan, given: readonly string[], held: readonly string[] = []): void {
  const joined = given.map(trimContextId).filter((id) => separatorsIn(id) !== "");
  const known = joined.length === 0 ? undefined : new Set(held);
  for (const id of joined) {
    if (known?.has(id)) continue;
    const { count = 0, first = id.slice(0, LONGEST_JOINED), separators = "" } = plan.facts.joinedIds ?? {};
    const all = separatorsIn(separators + separatorsIn(id));
    plan.note({ joinedIds: { count: count + 1, separators: all, first } });
  }
}

const LONGEST_JOINED = 60;

export function noteUnread(plan: Plan, unread: number): void {
  if (unread > 0) plan.note({ unread });
}

/** Records the targeting of all changed options, if it is a single one. */
export function noteCommonTargeting(plan: Plan, targetings: readonly (string | undefined)[]): void {
  const [within, ...others] = new Set(targetings);
  if (within !== undefined && others.length === 0) plan.note({ within });
}

const MAX_LETTERS = 300;

/** Records the name and size of the targeting that the run changes, if it can be read. */
export async function noteTargetingFacts(plan: Plan, context: PlanningContext): Promise<void> {
  const { within } = plan.facts;
  if (within === undefined) return;
  const { name, optionCount } = (await optionalReads(context).targetings([within])).get(within) ?? {};
  if (name !== undefined) plan.note({ withinName: name.slice(0, MAX_LETTERS) });
  if (optionCount !== undefined) plan.note({ optionsThere: optionCount });
}

/** The maximum number of objects to read: one by one (`alone`), or from lists (`listed`). If more, none are read. */
const MAX_READ = { alone: 500, listed: 5000 } as const;
/** Limits for reads whose failure does not stop the change: two attempts and a short time limit. */
const OPTIONAL_READ_LIMITS = { mostTries: 2, timeoutMs: 5000 } as const;

/**
 * Returns reads that throw no ApiError, because the change can be made without their results. After a read that failed
 * but was not rejected, for example after a time-out, nothing more is read.
 */
export function optionalReads({ api, signal }: PlanningContext) {
  const gently = aroundReads(api, (read, options) => read({ ...options, ...OPTIONAL_READ_LIMITS }));
  const fails = { one: false };
  // Options whose contents were to be read but which do not exist.
  const missing = new Set<string>();
  const each = async <Value>(ids: readonly string[], read: (id: string) => Promise<Value>) => {
    if (ids.length > MAX_READ.alone) return new Map<string, Value>();
    const known = await mapConcurrently([...new Set(ids)], async (id) => {
      const value = fails.one ? undefined : await undefinedIfFailed(() => read(id), fails);
      return value === undefined ? undefined : ([id, value] as const);
    });
    return new Map(known);
  };
  return {
    fails,
    missing,
    contents: (ids: readonly string[]) =>
      each(ids, async (id) => {
        try {
          return await readOptionContents(gently, id, signal);
        } catch (thrown) {
          if (isMissing(thrown)) missing.add(id);
          throw thrown;
        }
      }),
    targetings: (ids: readonly string[]) => each(ids, (id) => gently.getTargeting(id, { signal })),
    async records(ids: readonly string[]): Promise<ReadonlyMap<string, OptionRecord>> {
      if (ids.length === 0 || ids.length > MAX_READ.listed || fails.one) return new Map();
      const search = await undefinedIfFailed(() => findOptions(gently, [...new Set(ids)], signal), fails);
      return search?.found ?? new Map();
    },
  };
}

export type OptionalReads = ReturnType<typeof optionalReads>;

async function undefinedIfFailed<Value>(
  read: () => Promise<Value>,
  fails: { one: boolean },
): Promise<Value | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (!isApiError(thrown)) throw thrown;
    fails.one ||= thrown.effect !== "rejected";
    return undefined;
  }
}
