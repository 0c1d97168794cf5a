import type { Reading } from "../../api/management.ts";
import { digestOfContexts } from "../../plans/base.ts";
import { addTo } from "../../platform/by-key.ts";
import { undefinedIf } from "../../platform/files.ts";
import { findOptions, isMissing, mapConcurrently, readOptionContents } from "../../reads/option-contents.ts";
import { placedOptions } from "../../reads/saved-options.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { comparedFields, type OptionRecord, type TargetingRecord } from "../../spec/records.ts";
import type { RunState } from "../change-state.ts";
import { readPreviousValues } from "../done.ts";
import {
  isCreate,
  isDeletion,
  type PreviousValue,
  type SameFields,
  type Step,
  type StepChange,
  targetOf,
} from "../rows/entries.ts";
import type { ComparedRun, Comparison } from "./evidence.ts";

type Previous = ReadonlyMap<string, PreviousValue>;

/** Replaces the Context IDs by their number, because millions of them would need too much memory. */
function counted(value: PreviousValue): PreviousValue {
  if (value.kind !== "option" || value.held === undefined) return value;
  const { held, contextCount = held.length, ...rest } = value;
  return { ...rest, contextCount };
}

/**
 * Compares the objects that a run will still change with their previous values, its part `former`. Returns an end for
 * each open step that would delete or overwrite changes by others: `unknown` if an earlier request may have applied the
 * step, otherwise `failed`. If others already made the same change as a step that was never sent, stores the current
 * values as the previous ones, so that the run does not claim that change. Undefined if no open step needs a
 * comparison. `isFull`: reads the Context IDs of every option with a change of Context IDs that was never sent or was
 * refused. Otherwise reads them only if their number has changed. The caller must have the write lock, so that this
 * server sends no other request meanwhile. Throws the ApiError of a failed read.
 */
export async function changedSince(
  run: ComparedRun,
  isFull: boolean,
  { api, signal }: Reading,
): Promise<Comparison | undefined> {
  const { state } = run;
  const changes = openChanges(state);
  const open = changes.filter(overwrites);
  const unsent = unsentContexts(state, changes);
  if (open.length + unsent.size === 0) return undefined;
  const sets = new Set(isFull ? open.flatMap((step) => (isUnsentSet(state, step) ? (targetOf(step) ?? []) : [])) : []);
  const known = new Set<string>();
  const digests = new Map<string, string>();
  const previous = await readPreviousValues(run.part("former")(), (value) => {
    if (value.kind === "option" && value.held !== undefined) {
      known.add(value._id);
      if (sets.has(value._id)) digests.set(value._id, digestOfContexts(value.held));
    }
    return counted(value);
  });
  // For an option without stored Context IDs, there is nothing to replace by the current ones.
  for (const id of unsent.keys()) if (!known.has(id)) unsent.delete(id);
  if (open.length + unsent.size === 0) return undefined;
  const ofTargetings = open.filter(({ operation }) => TARGETING_OPERATIONS.has(operation));
  const ofOptions = open.filter(({ operation }) => !TARGETING_OPERATIONS.has(operation));
  const counting = isFull ? [] : [...unsent.keys()].filter((id) => sentSteps(state, id).length === 0);
  const { found } = await findOptions(
    api,
    [...new Set([...ofOptions.flatMap((step) => targetOf(step) ?? []), ...counting])],
    signal,
  );
  const stale = new Map<string, Stale>();
  const same = new Map<string, SameFields>();
  for (const step of ofOptions) {
    const id = targetOf(step) ?? "";
    const option = found.get(id);
    const before = previous.get(id);
    const change = option && staleOption(before, option, replacedBy(state, step, before));
    if (change !== undefined) stale.set(id, change);
    const fields = option && sameFields(state, step, before, comparedFields(option));
    if (fields !== undefined) same.set(id, { ...same.get(id), ...fields });
  }
  await mapConcurrently(
    [...digests].filter(([id]) => !stale.has(id)),
    async ([id, digest]) => {
      const { contexts = [] } = (await undefinedIf(isMissing, readOptionContents(api, id, signal))) ?? {};
      const before = previous.get(id);
      if (before?.kind !== "option" || digestOfContexts(contexts) === digest || !found.has(id)) return;
      stale.set(id, { field: "contexts", planned: before.contextCount, service: contexts.length });
    },
  );
  await mapConcurrently(ofTargetings, async (step) => {
    const id = targetOf(step) ?? "";
    const { names = [] } = replacedBy(state, step, previous.get(id));
    const targeting = await undefinedIf(isMissing, api.getTargeting(id, { signal }));
    const about = { previous, names, isDeleted: isDeletion(step) };
    const change = targeting && (await staleTargeting(targeting, about, { api, signal }));
    if (change !== undefined) stale.set(id, change);
    const fields = targeting && sameFields(state, step, previous.get(id), targeting);
    if (fields !== undefined) same.set(id, fields);
  });
  for (const step of open) {
    const id = targetOf(step) ?? "";
    const before = previous.get(id);
    const subOptions = before?.kind === "option" ? (before.subOptions ?? []) : [];
    // A group is not deleted if one of its sub-options stays.
    if (!stale.has(id) && subOptions.some((one) => stale.has(one))) stale.set(id, { field: "subOption" });
  }
  const ends = open.flatMap((step): readonly StepChange[] => {
    const change = stale.get(targetOf(step) ?? "");
    if (change === undefined) return [];
    // An unanswered update may have been applied before others changed the object. An unanswered deletion may still be
    // applied.
    const isInDoubt = state.isSuspect(step.id);
    const reason: Reason = ownReason("PLAN_STALE", { ...change, isLeft: true, ...(isInDoubt && { isInDoubt }) });
    return [{ step: step.id, to: isInDoubt ? "unknown" : "failed", reason }];
  });
  const isOtherCount = (id: string): boolean => {
    const [before, now] = [previous.get(id), found.get(id)?.contextCount];
    return before?.kind === "option" && now !== undefined && now !== before.contextCount;
  };
  const read = isFull ? [...unsent.keys()] : counting.filter(isOtherCount);
  const partOf = (id: string) => ({ unsent: unsent.get(id) ?? [], sent: sentSteps(state, id) });
  const contexts = new Map(read.filter((id) => !stale.has(id)).map((id) => [id, partOf(id)]));
  for (const id of stale.keys()) same.delete(id);
  if (contexts.size + same.size === 0) return { ends, amended: [] };
  // Imported only when needed, because many runs never have to store current values.
  const { refreshPreviousValues } = await import("./refresh-previous.ts");
  return { ends, amended: await refreshPreviousValues(run, { contexts, same }, { api, signal }) };
}

/**
 * Returns the fields that a step will set and that already have its values, because others have set them. Fields that
 * this run may have set itself are omitted. Undefined if there are none.
 */
function sameFields(
  state: RunState,
  step: Step,
  before: PreviousValue | undefined,
  now: SameFields,
): SameFields | undefined {
  if (step.operation !== "updateOptions" && step.operation !== "renameTargetings") return undefined;
  if (before === undefined || step.prepares || state.isSuspect(step.id)) return undefined;
  const sent = sentSteps(state, before._id);
  const wanted = fieldsOf(state, step);
  const had: SameFields = before.kind === "option" ? before : { name: before.name };
  const isByOthers = (field: keyof SameFields): boolean =>
    now[field] === wanted[field] &&
    had[field] !== undefined &&
    had[field] !== wanted[field] &&
    sent.every((other) => fieldsOf(state, other)[field] === undefined);
  // If the run also deletes the group of the option, the service may already have moved the option to the top level.
  const isFreed = typeof had.parent === "string" && state.stepsChanging(had.parent).some(isDeletion);
  const { name, parent, exposeChildren } = wanted;
  const fields = {
    ...(name !== undefined && isByOthers("name") && { name }),
    ...(parent !== undefined && isByOthers("parent") && !isFreed && { parent }),
    ...(exposeChildren !== undefined && isByOthers("exposeChildren") && { exposeChildren }),
  };
  return Object.keys(fields).length > 0 ? fields : undefined;
}

function fieldsOf(state: RunState, step: Step): SameFields {
  if (step.operation === "renameTargetings") return step.item;
  if (step.operation !== "updateOptions") return {};
  const group = state.boundId(step, "parent");
  return group === undefined ? step.item : { ...step.item, parent: group };
}

/** Returns whether a step was applied, or was sent and may have been applied. */
function mayBeApplied(state: RunState, { id }: Step): boolean {
  return state.isApplied(id) || state.isSuspect(id);
}

function sentSteps(state: RunState, id: string): readonly Step[] {
  return state.stepsChanging(id).filter((step) => mayBeApplied(state, step));
}

function isUnsentSet(state: RunState, step: Step): boolean {
  const isSet = step.operation === "updateOptions" && step.item.contexts?.set !== undefined;
  return isSet && !mayBeApplied(state, step) && replacedBy(state, step, undefined).contextCounts !== undefined;
}

/** Returns by option the steps that add or remove Context IDs and that were never sent, or were refused. */
function unsentContexts(state: RunState, open: readonly Step[]): Map<string, Step[]> {
  const unsent = new Map<string, Step[]>();
  for (const step of open) {
    if (step.operation !== "updateOptions" || mayBeApplied(state, step)) continue;
    const { add = [], remove = [] } = step.item.contexts ?? {};
    const id = targetOf(step);
    if (id !== undefined && add.length + remove.length > 0) addTo(unsent, id, step);
  }
  return unsent;
}

/** Returns whether a step may overwrite changes by others. Adding or removing single Context IDs does not. */
function overwrites(step: Step): boolean {
  if (step.operation !== "updateOptions") return true;
  const { name, parent, exposeChildren, contexts } = step.item;
  return (name ?? parent ?? exposeChildren ?? contexts?.set) !== undefined || parent === null;
}

function openChanges(state: RunState): readonly Step[] {
  // Creates overwrite nothing. So a large import, which only creates options, does not need the loop below.
  if ([...state.steps.parts()].every(isCreate)) return [];
  const steps = new Map<number, Step>();
  for (let object = 0; object < state.objects.length; object += 1) {
    for (const step of state.openSteps(object)) {
      if (step.undoes === undefined && !isCreate(step)) steps.set(step.id, step);
    }
  }
  return [...steps.values()];
}

/** By field that a step overwrites: the values that the run itself may have set. Any other new value is by others. */
interface Replaced {
  readonly names?: readonly string[];
  readonly parents?: readonly (string | null)[];
  readonly exposures?: readonly boolean[];
  readonly contextCounts?: readonly number[];
  readonly hasSubOptions?: true;
}

function replacedBy(state: RunState, step: Step, before: PreviousValue | undefined): Replaced {
  const all = state.stepsChanging(targetOf(step) ?? "");
  const names = all.flatMap(({ item }) => item?.name ?? []);
  const updates = all.flatMap((each) => (each.operation === "updateOptions" ? [each] : []));
  const isOnly = updates.every(({ id, item }) => id === step.id || item.contexts === undefined);
  if (step.operation !== "updateOptions") return { names, hasSubOptions: true, ...(isOnly && { contextCounts: [] }) };
  const { name, parent, exposeChildren, contexts: { set } = {} } = step.item;
  const group = before?.kind === "option" ? before.parent : undefined;
  // If the run also deletes the group of the option, the service may already have moved the option to the top level.
  const isFreed = typeof group === "string" && state.stepsChanging(group).some(isDeletion);
  const parents = updates.flatMap(({ item }) => (item.parent === undefined ? [] : [item.parent]));
  const exposures = updates.flatMap(({ item }) => item.exposeChildren ?? []);
  const isInDoubt = state.isSuspect(step.id);
  return {
    ...((name !== undefined || set !== undefined) && { names }),
    ...(parent !== undefined && { parents: isFreed ? [...parents, null] : parents }),
    ...(exposeChildren !== undefined && { exposures }),
    ...(set !== undefined && isOnly && { contextCounts: isInDoubt ? [set.length] : [] }),
  };
}

const TARGETING_OPERATIONS: ReadonlySet<string> = new Set(["renameTargetings", "deleteTargetings"]);

interface Stale {
  readonly field: "name" | "parent" | "exposeChildren" | "contexts" | "subOptions" | "subOption" | "options";
  readonly planned?: string | number | boolean | null | undefined;
  readonly service?: string | number | boolean | null;
}

function staleOption(
  before: PreviousValue | undefined,
  option: OptionRecord,
  { names, parents, exposures, contextCounts, hasSubOptions }: Replaced,
): Stale | undefined {
  if (before?.kind !== "option") return undefined;
  const { name, parent = null, contextCount, childCount = 0 } = option;
  const { exposeChildren } = comparedFields(option);
  if (isOther(names, before.name, name)) return { field: "name", planned: before.name ?? "", service: name };
  if (isOther(parents, before.parent, parent)) return { field: "parent", planned: before.parent, service: parent };
  if (exposeChildren !== undefined && isOther(exposures, before.exposeChildren, exposeChildren)) {
    return { field: "exposeChildren", planned: before.exposeChildren, service: exposeChildren };
  }
  if (contextCount !== undefined && isOther(contextCounts, before.contextCount, contextCount)) {
    return { field: "contexts", planned: before.contextCount, service: contextCount };
  }
  const subOptions = before.subOptions?.length;
  // The run itself may delete sub-options before their group. So only additional sub-options are changes by others.
  const hasMore = hasSubOptions && subOptions !== undefined && childCount > subOptions;
  return hasMore ? { field: "subOptions", planned: subOptions, service: childCount } : undefined;
}

/** Returns whether a value is neither the previous value nor one that the run itself may have set. */
function isOther<Value>(own: readonly Value[] | undefined, before: Value | undefined, now: Value): boolean {
  return own !== undefined && before !== undefined && now !== before && !own.includes(now);
}

async function staleTargeting(
  targeting: TargetingRecord,
  {
    previous,
    names,
    isDeleted,
  }: { readonly previous: Previous; readonly names: readonly string[]; readonly isDeleted: boolean },
  { api, signal }: Reading,
): Promise<Stale | undefined> {
  const { _id: id } = targeting;
  const before = previous.get(id);
  if (before?.kind !== "targeting") return undefined;
  if (isOther(names, before.name, targeting.name)) {
    return { field: "name", planned: before.name, service: targeting.name };
  }
  if (!isDeleted) return undefined;
  let planned = 0;
  for (const one of previous.values()) if (one.kind === "option" && one.targeting === id) planned += 1;
  let service = 0;
  let hasChanged = false;
  for await (const { option } of placedOptions(api, id, signal)) {
    service += 1;
    const known = previous.get(option._id);
    hasChanged ||= known === undefined || staleOption(known, option, { names: [], contextCounts: [] }) !== undefined;
  }
  return hasChanged || service > planned ? { field: "options", planned, service } : undefined;
}
