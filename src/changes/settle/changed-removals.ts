import type { ManagementApi } from "../../api/management.ts";
import { parseJson } from "../../platform/json.ts";
import { findOptions, isMissing, mapConcurrently } from "../../reads/option-contents.ts";
import { placedOptions } from "../../reads/saved-options.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import { wholeLines } from "../../runs/store.ts";
import type { OptionRecord, TargetingRecord } from "../../spec/records.ts";
import {
  type PreviousOption,
  type PreviousTargeting,
  previousValueLine,
  type Step,
  type StepChange,
  targetOf,
} from "../rows/entries.ts";
import { RowBlock } from "../rows/row-block.ts";
import type { RunState } from "../state/change-state.ts";

type PreviousValue = PreviousOption | PreviousTargeting;
type Previous = ReadonlyMap<string, PreviousValue>;

/** Reads the part `former` of a run. Returns the previous values by ID, each as `as` returns it. */
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

/** Returns the number of Context IDs instead of the IDs, which may be millions. */
function counted(value: PreviousValue): PreviousValue {
  if (value.kind !== "option" || value.held === undefined) return value;
  const { held, contextCount = held.length, ...rest } = value;
  return { ...rest, contextCount };
}

/**
 * Compares what a run will still remove or replace with `former`, the values that it stored for an undo. Returns failures
 * of the open steps whose objects have changed, and undefined if no such step is open. Call it with the write lock, so
 * that no request is in flight. Throws the ApiError of a failed read.
 */
export async function changedRemovals(
  state: RunState,
  former: () => AsyncIterable<Uint8Array>,
  { api, signal }: Reading,
): Promise<readonly StepChange[] | undefined> {
  const open = openRemovals(state);
  if (open.length === 0) return undefined;
  const previous = await readPreviousValues(former(), counted);
  const idsOf = (isTargeting: boolean): readonly string[] =>
    open.flatMap((step) => (isTargeting === (step.operation === "deleteTargetings") ? (targetOf(step) ?? []) : []));
  const { found } = await findOptions(api, idsOf(false), signal);
  const stale = new Map<string, Stale>();
  for (const step of open) {
    const id = targetOf(step) ?? "";
    const option = found.get(id);
    const change = option && staleOption(previous.get(id), option, changesOf(state, step, id));
    if (change !== undefined) stale.set(id, change);
  }
  await mapConcurrently(idsOf(true), async (id) => {
    const change = await staleTargeting(id, previous, { api, signal });
    if (change !== undefined) stale.set(id, change);
  });
  for (const step of open) {
    const id = targetOf(step) ?? "";
    const before = previous.get(id);
    const subOptions = before?.kind === "option" ? (before.subOptions ?? []) : [];
    // A group stays with a sub-option that stays.
    if (!stale.has(id) && subOptions.some((one) => stale.has(one))) stale.set(id, { field: "subOption" });
  }
  return open.flatMap((step): readonly StepChange[] => {
    const change = stale.get(targetOf(step) ?? "");
    if (change === undefined) return [];
    const reason: Reason = ownReason("PLAN_STALE", { ...change, isLeft: true });
    return [{ step: step.id, to: "failed", reason }];
  });
}

function isRemoval(step: Step | RowBlock): boolean {
  if (step instanceof RowBlock || step.undoes !== undefined) return false;
  if (step.operation === "updateOptions") return step.item.contexts?.set !== undefined;
  return step.operation === "deleteOptions" || step.operation === "deleteTargetings";
}

function openRemovals(state: RunState): readonly Step[] {
  const steps = new Map<number, Step>();
  for (let object = 0; object < state.objects.length; object += 1) {
    for (const step of state.openSteps(object)) if (isRemoval(step)) steps.set(step.id, step);
  }
  return [...steps.values()];
}

interface Reading {
  readonly api: ManagementApi;
  readonly signal: AbortSignal;
}

/** What the run itself may have changed about the object of a step. */
interface OwnChanges {
  readonly names: readonly string[];
  readonly hasOtherContextIds: boolean;
  /** How many Context IDs a `set` without an answer leaves if it was applied. */
  readonly contextCount?: number | undefined;
}

const NO_CHANGES: OwnChanges = { names: [], hasOtherContextIds: false };

function changesOf(state: RunState, step: Step, target: string): OwnChanges {
  const others = state.stepsChanging(target).filter(({ id }) => id !== step.id);
  const names = [step, ...others].flatMap(({ item }) => item?.name ?? []);
  const hasOtherContextIds = others.some((each) => each.operation === "updateOptions" && "contexts" in each.item);
  const isInDoubt = state.suspectSince(step.id) !== undefined;
  const set = step.operation === "updateOptions" && isInDoubt ? step.item.contexts?.set : undefined;
  return { names, hasOtherContextIds, contextCount: set?.length };
}

interface Stale {
  readonly field: "name" | "contexts" | "subOptions" | "subOption" | "options";
  readonly planned?: string | number;
  readonly service?: string | number;
}

function staleOption(
  before: PreviousValue | undefined,
  { name, contextCount, childCount = 0 }: OptionRecord,
  own: OwnChanges,
): Stale | undefined {
  if (before?.kind !== "option") return undefined;
  const isNamed = before.name === undefined || before.name === name || own.names.includes(name);
  if (!isNamed) return { field: "name", planned: before.name ?? "", service: name };
  const held = before.contextCount;
  const isKnown = held !== undefined && contextCount !== undefined && !own.hasOtherContextIds;
  if (isKnown && contextCount !== held && contextCount !== own.contextCount)
    return { field: "contexts", planned: held, service: contextCount };
  // The run itself deletes sub-options before their group.
  const subOptions = before.subOptions?.length ?? Number.POSITIVE_INFINITY;
  return childCount > subOptions ? { field: "subOptions", planned: subOptions, service: childCount } : undefined;
}

async function staleTargeting(id: string, previous: Previous, { api, signal }: Reading): Promise<Stale | undefined> {
  const before = previous.get(id);
  const targeting = await existing(api, id, signal);
  if (before?.kind !== "targeting" || targeting === undefined) return undefined;
  if (before.name !== targeting.name) return { field: "name", planned: before.name, service: targeting.name };
  let planned = 0;
  for (const one of previous.values()) if (one.kind === "option" && one.targeting === id) planned += 1;
  let service = 0;
  let isOther = false;
  for await (const { option } of placedOptions(api, id, signal)) {
    service += 1;
    const known = previous.get(option._id);
    const { subOptions: _, ...values } = known?.kind === "option" ? known : { _id: "" };
    isOther ||=
      known?.kind !== "option" || staleOption({ ...values, kind: "option" }, option, NO_CHANGES) !== undefined;
  }
  return isOther || service > planned ? { field: "options", planned, service } : undefined;
}

async function existing(api: ManagementApi, id: string, signal: AbortSignal): Promise<TargetingRecord | undefined> {
  try {
    return await api.getTargeting(id, { signal });
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}
