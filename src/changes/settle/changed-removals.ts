import type { ManagementApi } from "../../api/management.ts";
import { findOptions, isMissing, mapConcurrently } from "../../reads/option-contents.ts";
import { ownReason, type Reason } from "../../runs/outcome.ts";
import type { OptionRecord, TargetingRecord } from "../../spec/records.ts";
import { type PreviousOption, type PreviousTargeting, type Step, type StepChange, targetOf } from "../rows/entries.ts";
import type { RunState } from "../state/change-state.ts";

type Former = ReadonlyMap<string, PreviousOption | PreviousTargeting>;

/**
 * Fails the open steps of a resumed run that would delete or replace more than was approved: their objects have changed
 * since, and the stored values for the undo are not the present ones. Call it with the write lock, so that no request
 * is in flight. Throws the ApiError of a failed read.
 */
export async function changedRemovals(
  state: RunState,
  readFormer: () => Promise<Former>,
  { api, signal }: { readonly api: ManagementApi; readonly signal: AbortSignal },
): Promise<readonly StepChange[]> {
  const open = openRemovals(state);
  if (open.length === 0) return [];
  const former = await readFormer();
  const idsOf = (isTargeting: boolean): readonly string[] =>
    open.flatMap((step) => (isTargeting === (step.operation === "deleteTargetings") ? (targetOf(step) ?? []) : []));
  const { found } = await findOptions(api, idsOf(false), signal);
  const targetings = await mapConcurrently(idsOf(true), async (id) => {
    try {
      return await api.getTargeting(id, { signal });
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  });
  const there = new Map(
    targetings.flatMap((targeting) => (targeting === undefined ? [] : [[targeting._id, targeting]])),
  );
  const sizes = new Map<string, number>();
  for (const one of former.values()) {
    if (one.kind === "option" && one.targeting !== undefined)
      sizes.set(one.targeting, (sizes.get(one.targeting) ?? 0) + 1);
  }
  return open.flatMap((step): readonly StepChange[] => {
    const id = targetOf(step) ?? "";
    const [before, option, targeting] = [former.get(id), found.get(id), there.get(id)];
    const stale =
      option === undefined
        ? targeting && staleTargeting(before, targeting, sizes.get(id) ?? 0)
        : staleOption(before, option, setBy(state, step));
    if (stale === undefined) return [];
    const reason: Reason = ownReason("PLAN_STALE", { ...stale, isResumed: true });
    return [{ step: step.id, to: "failed", reason }];
  });
}

function openRemovals(state: RunState): readonly Step[] {
  const steps: Step[] = [];
  for (let object = 0; object < state.objects.length; object += 1) {
    for (const step of state.openSteps(object)) {
      const isSet = step.operation === "updateOptions" && step.item.contexts?.set !== undefined;
      const removes = isSet || step.operation === "deleteOptions" || step.operation === "deleteTargetings";
      if (removes && step.undoes === undefined && steps.at(-1)?.id !== step.id) steps.push(step);
    }
  }
  return steps;
}

/** How many Context IDs a `set` without an answer leaves, if it was applied. */
function setBy(state: RunState, step: Step): number | undefined {
  const set = step.operation === "updateOptions" ? step.item.contexts?.set : undefined;
  return state.suspectSince(step.id) === undefined ? undefined : set?.length;
}

interface Stale {
  readonly field: "name" | "contexts" | "subOptions" | "options";
  readonly planned: string | number;
  readonly service: string | number;
}

function staleOption(
  before: PreviousOption | PreviousTargeting | undefined,
  { name, contextCount, childCount = 0 }: OptionRecord,
  ifSet: number | undefined,
): Stale | undefined {
  if (before?.kind !== "option") return undefined;
  if (before.name !== undefined && before.name !== name) return { field: "name", planned: before.name, service: name };
  const held = before.held?.length;
  const isSame = held === undefined || contextCount === undefined || contextCount === held || contextCount === ifSet;
  if (!isSame) return { field: "contexts", planned: held, service: contextCount };
  // The run itself deletes sub-options before their group.
  const subOptions = before.subOptions?.length ?? Number.POSITIVE_INFINITY;
  return childCount > subOptions ? { field: "subOptions", planned: subOptions, service: childCount } : undefined;
}

function staleTargeting(
  before: PreviousOption | PreviousTargeting | undefined,
  { name, optionCount }: TargetingRecord,
  options: number,
): Stale | undefined {
  if (before?.kind !== "targeting") return undefined;
  if (before.name !== name) return { field: "name", planned: before.name, service: name };
  const isSame = optionCount === undefined || optionCount === options;
  return isSame ? undefined : { field: "options", planned: options, service: optionCount };
}
