import { isApiError } from "../api/errors.ts";
import type { ManagementApi, Reading } from "../api/management.ts";
import { defined } from "../platform/by-key.ts";
import { undefinedIf } from "../platform/files.ts";
import { type OptionNames, optionNamesOnce } from "../reads/option-lists.ts";
import type { ChangedOption, Done, OptionEffect, TargetingEffect, UncertainObject } from "../runs/kind.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import { undoingRuns } from "./change-kinds.ts";
import type { ChangeRun } from "./change-run.ts";
import type { RunState } from "./change-state.ts";
import { effectsOfRun, type Resolved } from "./done.ts";
import { isDeletion, type Step } from "./rows/entries.ts";

/**
 * What the current data of the service show about unanswered steps. `areApplied`: all of them were applied, so none of
 * their requests can still be in progress. Steps that create targetings are not checked.
 */
interface Found extends Resolved {
  readonly areApplied: boolean;
}

/**
 * Reads what the unanswered steps of a run did. An option counts as created by this run if it has the sent name and,
 * by the list that was read before the run's first request, did not exist then. Without that list, its ID must be newer
 * than the IDs of all options that the run certainly created. Throws an ApiError.
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
    } else if (isDeletion(step)) {
      areApplied &&= await isGone(step, state, namesIn, reading.api);
    } else if (step.operation !== "createTargetings") areApplied = false;
  }
  return { made, unclear, areApplied };
}

function namesOf({ operation, item }: Step): readonly string[] {
  return operation === "addOptions" ? [item.name, ...(item.children ?? []).map(({ name }) => name)] : [];
}

/**
 * Returns who created an option: this run, another writer, or "unclear". IDs ascend with time. `byList`: whether the
 * option existed when the list was read before the run; undefined if that is unknown.
 */
function creatorOfOption(id: string, byList: ReturnType<RunState["orderByList"]>, ownNewest: string | undefined) {
  if (!isUlid(id) || byList === "likelyBefore") return "unclear";
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

/** Returns whether the object of a deletion no longer exists. False if its targeting is unknown. */
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

/** A run that undid changes of another run, and the names of the objects that it did not restore. */
export interface EarlierUndo {
  readonly run: ChangeRun;
  readonly done: Done;
  readonly left: ReadonlySet<string>;
}

interface StoredRuns {
  readonly find: (runId: string) => Promise<ChangeRun | undefined>;
  readonly former: (runId: string) => AsyncIterable<Uint8Array>;
}

/** Returns those undos of a run that are still stored, the oldest first. */
export async function earlierUndos(state: RunState, { find, former }: StoredRuns): Promise<readonly EarlierUndo[]> {
  const undos: EarlierUndo[] = [];
  for (const runId of undoingRuns(state)) {
    const run = await find(runId);
    if (run === undefined) continue;
    const left = new Set<string>();
    for (let object = 0; object < run.state.objects.length; object += 1) {
      const { name } = run.state.objects.at(object) ?? {};
      if (name !== undefined && !run.state.hasSucceeded(object)) left.add(name);
    }
    undos.push({ run, done: await effectsOfRun(run.state, former(runId)), left });
  }
  return undos;
}

/** Returns what was found about objects that the latest undo did not restore. Without an undo, returns everything. */
export function leftOf({ made, unclear }: Resolved, state: RunState, undos: readonly EarlierUndo[]): Resolved {
  const isLeft = (name: string | undefined): boolean => undos.at(-1)?.left.has(name ?? "") ?? true;
  const pick = (found: Resolved["made"]) =>
    new Map([...found].filter(([object]) => isLeft(state.objects.at(object)?.name)));
  return { made: pick(made), unclear: pick(unclear) };
}

/** Returns the changes of a run that its undos have not reversed. Objects that an undo created again have new IDs. */
export function withoutUndone(done: Done, undos: readonly EarlierUndo[]): Done {
  const last = undos.at(-1);
  if (last === undefined) return done;
  const rest = undos.reduce((left, undo) => withoutEffects(left, undo.done), done);
  const isLeft = ({ name }: UncertainObject): boolean => last.left.has(name ?? "");
  return { ...rest, unknown: done.unknown.filter(isLeft), unresolved: done.unresolved.filter(isLeft) };
}

function withoutEffects(done: Done, undo: Done): Done {
  const again = new Map<string, string>();
  const placeOf = (targeting: string | undefined, name: string): string => JSON.stringify([targeting, name]);
  for (const one of undo.targetings) if (one.did === "created") again.set(placeOf(undefined, one.name), one._id);
  for (const one of undo.options) if (one.did === "created") again.set(placeOf(one.targeting, one.left.name), one._id);
  const undone = new Map([...undo.targetings, ...undo.options].map((one) => [one._id, one]));
  const isGone = (_id: string): boolean => undone.get(_id)?.did === "deleted";
  const deleted = new Set(
    undo.options.flatMap((one) =>
      one.did === "deleted" && one.before !== undefined ? [placeOf(one.targeting, one.before.name)] : [],
    ),
  );
  const newIds = new Map<string, string>();
  const targetings = done.targetings.filter((one) => {
    if (one.did === "created") return !isGone(one._id);
    if (one.did === "changed") return undone.get(one._id)?.did !== "changed";
    const _id = one.name === undefined ? undefined : again.get(placeOf(undefined, one.name));
    if (_id !== undefined) newIds.set(one._id, _id);
    return _id === undefined;
  });
  const targetingOf = (id: string | undefined): string | undefined => (id === undefined ? id : (newIds.get(id) ?? id));
  for (const one of done.options) {
    const name = one.did === "deleted" ? one.before?.name : undefined;
    const _id = name === undefined ? undefined : again.get(placeOf(targetingOf(one.targeting), name));
    if (_id !== undefined) newIds.set(one._id, _id);
  }
  const restored = new Map(undo.options.flatMap((one) => (one.did === "changed" ? [[one._id, one] as const] : [])));
  const groupOf = (id: string | null): string | null => (id === null ? id : (newIds.get(id) ?? id));
  const options = done.options.flatMap((one): readonly OptionEffect[] => {
    if (one.did === "created") return isGone(one._id) ? [] : [one];
    const targeting = targetingOf(one.targeting);
    if (one.did === "changed") return changesLeft({ ...one, targeting }, restored.get(one._id), groupOf);
    const newId = newIds.get(one._id);
    if (newId !== undefined) return contextsMissing(one, newId, undone.get(newId));
    const { before } = one;
    return [{ ...one, targeting, before: before && { ...before, parent: groupOf(before.parent) } }];
  });
  const withoutId = done.withoutId?.filter((one) => !deleted.has(placeOf(one.targeting, one.left.name)));
  return { ...done, targetings, options, ...defined({ withoutId }) };
}

/**
 * Returns the Context IDs that an option lacks since an undo created it again, for example because another group had
 * them.
 */
function contextsMissing(
  { targeting, before }: Extract<OptionEffect, { readonly did: "deleted" }>,
  _id: string,
  again: OptionEffect | TargetingEffect | undefined,
): readonly ChangedOption[] {
  if (again?.did !== "created" || !("left" in again)) return [];
  const has = new Set(again.left.contexts);
  const removed = (before?.contexts ?? []).filter((id) => !has.has(id));
  if (removed.length === 0) return [];
  return [{ did: "changed", _id, targeting, called: again.left.name, contexts: { added: [], removed, unsure: 0 } }];
}

function changesLeft(
  { name, parent, exposeChildren, contexts, ...about }: ChangedOption,
  back: ChangedOption | undefined,
  groupOf: (id: string | null) => string | null,
): readonly OptionEffect[] {
  const without = (ids: readonly string[], gone: readonly string[] = []): readonly string[] => {
    const are = new Set(gone);
    return ids.filter((id) => !are.has(id));
  };
  const left = contexts && {
    added: without(contexts.added, back?.contexts?.removed),
    removed: without(contexts.removed, back?.contexts?.added),
    unsure: contexts.unsure,
  };
  const place = parent?.from === undefined ? parent : { ...parent, from: groupOf(parent.from) };
  const some = {
    ...(name !== undefined && back?.name === undefined && { name }),
    ...(place !== undefined && back?.parent === undefined && { parent: place }),
    ...(exposeChildren !== undefined && back?.exposeChildren === undefined && { exposeChildren }),
    ...(left !== undefined && left.added.length + left.removed.length + left.unsure > 0 && { contexts: left }),
  };
  return Object.keys(some).length === 0 ? [] : [{ ...about, ...some }];
}

export function hasNoEffect({ targetings, options, withoutId = [], unknown, unresolved }: Done): boolean {
  return targetings.length + options.length + withoutId.length + unknown.length + unresolved.length === 0;
}
