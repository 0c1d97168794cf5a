import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import type { Reading } from "../plans/planned-undo.ts";
import { type OptionNames, optionNamesOnce } from "../reads/option-lists.ts";
import { undefinedIf } from "../runs/store.ts";
import { isUlid } from "../spec/ulid.ts";
import type { Resolved } from "./done.ts";
import type { Step } from "./rows/entries.ts";
import type { RunState } from "./state/change-state.ts";

/** With `areApplied`, all steps in doubt were applied and none is in progress. */
interface Found extends Resolved {
  readonly areApplied: boolean;
}

/**
 * Reads what the unanswered steps of a run did. An option with the wanted name counts as created by this run if its ID
 * is newer than the newest option before the run, or if that is unknown, newer than all IDs that the run is known to
 * have created. Throws an ApiError.
 */
export async function resolveDoubts(state: RunState, reading: Reading): Promise<Found> {
  const steps = [...state.inDoubt()].flatMap((id) => state.steps.at(id) ?? []);
  const namesIn = optionNamesOnce(reading.api, reading.signal);
  const made = new Map<number, string>();
  const ownNewest = newestMade(state);
  const unclear = new Map<number, string>();
  let areApplied = true;
  for (const step of steps) {
    if (step.operation === "addOptions") {
      const targeting = state.boundId(step, "targeting");
      const group = state.boundId(step, "parent");
      const there = targeting === undefined ? undefined : await unlessGone(namesIn(targeting));
      const list = targeting === undefined || group === undefined ? there : await unlessGone(namesIn(targeting, group));
      for (const [position, name] of namesOf(step).entries()) {
        const object = step.objects[position] ?? -1;
        const id = there?.get(name);
        const whose =
          id === undefined
            ? "nobody's"
            : creatorOfOption(id, list?.get(name) === id ? state.orderByList(step, id) : undefined, ownNewest);
        if (id !== undefined && whose === "ours") made.set(object, id);
        else if (id !== undefined && whose === "unclear") unclear.set(object, id);
        areApplied &&= whose === "ours";
      }
    } else if (step.operation === "deleteOptions" || step.operation === "deleteTargetings") {
      areApplied &&= await isGone(step, state, namesIn, reading.api);
    } else if (step.operation !== "createTargetings") areApplied = false;
  }
  return { made, unclear, areApplied };
}

function namesOf({ operation, item }: Step): readonly string[] {
  return operation === "addOptions" ? [item.name, ...(item.children ?? []).map(({ name }) => name)] : [];
}

/**
 * Returns whether this run or others created an option. IDs ascend with time. `byList` compares the ID with the list
 * before the run.
 */
function creatorOfOption(id: string, byList: "before" | "after" | undefined, ownNewest: string | undefined) {
  if (!isUlid(id)) return "unclear";
  if (byList !== undefined) return byList === "before" ? "others" : "ours";
  return ownNewest !== undefined && id > ownNewest ? "ours" : "unclear";
}

function newestMade(state: RunState): string | undefined {
  let newest: string | undefined;
  for (let object = 0; object < state.objects.length; object += 1) {
    const id = state.didOf(object) === "created" ? state.idOf(object) : undefined;
    if (id !== undefined && (newest === undefined || id > newest)) newest = id;
  }
  return newest;
}

/** Returns whether the object of a delete is gone. False if its targeting is unknown. */
async function isGone(step: Step, state: RunState, namesIn: OptionNames, api: ManagementApi): Promise<boolean> {
  const id = state.boundId(step, "_id");
  const isTargeting = step.operation === "deleteTargetings";
  const targeting = isTargeting ? id : state.facts.within;
  if (id === undefined || targeting === undefined) return false;
  if (isTargeting) return (await unlessGone(api.getTargeting(id))) === undefined;
  const names = await unlessGone(namesIn(targeting));
  return ![...(names?.values() ?? [])].includes(id);
}

const GONE: ReadonlySet<string> = new Set(["TARGETING_NOT_FOUND", "TARGETING_CATEGORY_NOT_FOUND"]);

function unlessGone<T>(reading: Promise<T>): Promise<T | undefined> {
  const isGone = (thrown: unknown) =>
    isApiError(thrown) && thrown.effect === "rejected" && GONE.has(thrown.errorCode ?? "");
  return undefinedIf(isGone, reading);
}
