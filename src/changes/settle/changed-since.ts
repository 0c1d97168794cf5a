import type { ManagementApi } from "../../api/management.ts";
import { parseJson } from "../../platform/json.ts";
import { findOptions, isMissing, mapConcurrently } from "../../reads/option-contents.ts";
import { placedOptions } from "../../reads/saved-options.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { undefinedIf, wholeLines } from "../../runs/store.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { RunState } from "../change-state.ts";
import {
  type PreviousOption,
  type PreviousTargeting,
  previousValueLine,
  type Step,
  type StepChange,
  targetOf,
} from "../rows/entries.ts";

type PreviousValue = PreviousOption | PreviousTargeting;
type Previous = ReadonlyMap<string, PreviousValue>;

/** Reads the previous values that a run has stored (its part `former`), by ID. `as` converts each of them. */
export async function readPreviousValues(
  pieces: AsyncIterable<Uint8Array>,
  as: (value: PreviousValue) => PreviousValue = (value) => value,
): Promise<Previous> {
  const former = new Map<string, PreviousValue>();
  for await (const line of wholeLines(pieces)) {
    const read = previousValueLine.safeParse(parseJson(line)).data;
    if (read !== undefined) former.set(read._id, as(read));
  }
  return former;
}

/** Replaces the Context IDs by their number, because millions of them would need too much memory. */
function counted(value: PreviousValue): PreviousValue {
  if (value.kind !== "option" || value.held === undefined) return value;
  const { held, contextCount = held.length, ...rest } = value;
  return { ...rest, contextCount };
}

/**
 * Compares the objects that a run will still delete or overwrite with their previous values (`former`). Returns the
 * ends of those open steps whose objects others have changed: `unknown` if an earlier request may have applied the
 * step, otherwise `failed`. Undefined if no open step deletes or overwrites anything. The caller must have the write
 * lock, so that this server sends no other request meanwhile. Throws the ApiError of a failed read.
 */
export async function changedSince(
  state: RunState,
  former: () => AsyncIterable<Uint8Array>,
  { api, signal }: Reading,
): Promise<readonly StepChange[] | undefined> {
  const open = openReplacements(state);
  if (open.length === 0) return undefined;
  const previous = await readPreviousValues(former(), counted);
  const ofTargetings = open.filter(({ operation }) => TARGETING_OPERATIONS.has(operation));
  const ofOptions = open.filter(({ operation }) => !TARGETING_OPERATIONS.has(operation));
  const { found } = await findOptions(
    api,
    ofOptions.flatMap((step) => targetOf(step) ?? []),
    signal,
  );
  const stale = new Map<string, Stale>();
  for (const step of ofOptions) {
    const id = targetOf(step) ?? "";
    const option = found.get(id);
    const before = previous.get(id);
    const change = option && staleOption(before, option, replacedBy(state, step, before));
    if (change !== undefined) stale.set(id, change);
  }
  await mapConcurrently(ofTargetings, async (step) => {
    const id = targetOf(step) ?? "";
    const { names = [] } = replacedBy(state, step, previous.get(id));
    const change = await staleTargeting(id, { previous, names, isDeleted: isDeletion(step) }, { api, signal });
    if (change !== undefined) stale.set(id, change);
  });
  for (const step of open) {
    const id = targetOf(step) ?? "";
    const before = previous.get(id);
    const subOptions = before?.kind === "option" ? (before.subOptions ?? []) : [];
    // A group is not deleted if one of its sub-options stays.
    if (!stale.has(id) && subOptions.some((one) => stale.has(one))) stale.set(id, { field: "subOption" });
  }
  return open.flatMap((step): readonly StepChange[] => {
    const change = stale.get(targetOf(step) ?? "");
    if (change === undefined) return [];
    // An unanswered update may have been applied before others changed the object. An unanswered deletion may still be
    // applied.
    const isInDoubt = state.suspectSince(step.id) !== undefined;
    const reason: Reason = ownReason("PLAN_STALE", { ...change, isLeft: true, ...(isInDoubt && { isInDoubt }) });
    return [{ step: step.id, to: isInDoubt ? "unknown" : "failed", reason }];
  });
}

const CREATES: ReadonlySet<Step["operation"]> = new Set(["createTargetings", "addOptions"]);

/** Returns whether a step may overwrite changes by others. Adding or removing single Context IDs does not. */
function overwrites(step: Step): boolean {
  if (step.undoes !== undefined || CREATES.has(step.operation)) return false;
  if (step.operation !== "updateOptions") return true;
  const { name, parent, contexts } = step.item;
  return name !== undefined || parent !== undefined || contexts?.set !== undefined;
}

function openReplacements(state: RunState): readonly Step[] {
  // Creates overwrite nothing. This saves a large import, which only creates options, the loop below.
  if ([...state.steps.parts()].every(({ operation }) => CREATES.has(operation))) return [];
  const steps = new Map<number, Step>();
  for (let object = 0; object < state.objects.length; object += 1) {
    for (const step of state.openSteps(object)) if (overwrites(step)) steps.set(step.id, step);
  }
  return [...steps.values()];
}

interface Reading {
  readonly api: ManagementApi;
  readonly signal: AbortSignal;
}

/**
 * The values that the run itself may have set, in the fields that its steps overwrite. They are not changes by others.
 */
interface Replaced {
  readonly names?: readonly string[];
  readonly parents?: readonly (string | null)[];
  readonly contextCounts?: readonly number[];
  readonly hasSubOptions?: true;
}

function replacedBy(state: RunState, step: Step, before: PreviousValue | undefined): Replaced {
  const all = state.stepsChanging(targetOf(step) ?? "");
  const names = all.flatMap(({ item }) => item?.name ?? []);
  const updates = all.flatMap((each) => (each.operation === "updateOptions" ? [each] : []));
  const isOnly = updates.every(({ id, item }) => id === step.id || item.contexts === undefined);
  if (step.operation !== "updateOptions") return { names, hasSubOptions: true, ...(isOnly && { contextCounts: [] }) };
  const { name, parent, contexts: { set } = {} } = step.item;
  const group = before?.kind === "option" ? before.parent : undefined;
  // If the run also deletes the group of the option, the service may already have moved the option to the top level.
  const isFreed = typeof group === "string" && state.stepsChanging(group).some(isDeletion);
  const parents = updates.flatMap(({ item }) => (item.parent === undefined ? [] : [item.parent]));
  const isInDoubt = state.suspectSince(step.id) !== undefined;
  return {
    ...((name !== undefined || set !== undefined) && { names }),
    ...(parent !== undefined && { parents: isFreed ? [...parents, null] : parents }),
    ...(set !== undefined && isOnly && { contextCounts: isInDoubt ? [set.length] : [] }),
  };
}

const TARGETING_OPERATIONS: ReadonlySet<string> = new Set(["renameTargetings", "deleteTargetings"]);

function isDeletion({ operation }: Step): boolean {
  return operation === "deleteOptions" || operation === "deleteTargetings";
}

interface Stale {
  readonly field: "name" | "parent" | "contexts" | "subOptions" | "subOption" | "options";
  readonly planned?: string | number | null | undefined;
  readonly service?: string | number | null;
}

function staleOption(
  before: PreviousValue | undefined,
  { name, parent = null, contextCount, childCount = 0 }: OptionRecord,
  { names, parents, contextCounts, hasSubOptions }: Replaced,
): Stale | undefined {
  if (before?.kind !== "option") return undefined;
  if (isOther(names, before.name, name)) return { field: "name", planned: before.name ?? "", service: name };
  if (isOther(parents, before.parent, parent)) return { field: "parent", planned: before.parent, service: parent };
  if (contextCount !== undefined && isOther(contextCounts, before.contextCount, contextCount)) {
    return { field: "contexts", planned: before.contextCount, service: contextCount };
  }
  const subOptions = before.subOptions?.length;
  // The run itself deletes sub-options before their group. So only additional sub-options are changes by others.
  const hasMore = hasSubOptions && subOptions !== undefined && childCount > subOptions;
  return hasMore ? { field: "subOptions", planned: subOptions, service: childCount } : undefined;
}

/** Returns whether a value is neither the previous value nor one that the run itself may have set. */
function isOther<Value>(own: readonly Value[] | undefined, before: Value | undefined, now: Value): boolean {
  return own !== undefined && before !== undefined && now !== before && !own.includes(now);
}

async function staleTargeting(
  id: string,
  {
    previous,
    names,
    isDeleted,
  }: { readonly previous: Previous; readonly names: readonly string[]; readonly isDeleted: boolean },
  { api, signal }: Reading,
): Promise<Stale | undefined> {
  const before = previous.get(id);
  const targeting = await undefinedIf(isMissing, api.getTargeting(id, { signal }));
  if (before?.kind !== "targeting" || targeting === undefined) return undefined;
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
