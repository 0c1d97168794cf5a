import type { RejectedError } from "../../api/errors.ts";
import { isMissing, mapConcurrently } from "../../reads/option-contents.ts";
import { readOptions } from "../../reads/option-lists.ts";
import { ownReason, type Reason, type TakenName } from "../../runs/outcome.ts";
import { folded, NameIndex } from "../../spec/names.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { NamedTargeting } from "../call.ts";
import type { PlanningContext } from "./plan.ts";

/** Finds the option of a name; `field` is where the name stands. Gives a reason where there is none, or several. */
export type FindOption = (name: string, field: string) => OptionRecord | Reason;

/** The same, which keeps the names that did not match exactly. */
interface OptionFinder extends FindOption {
  readonly takenFor: TakenName[];
}

/** More of them are not told. */
const MOST_TAKEN = 20;

/**
 * Finds options of a targeting by name, sub-options included (`NameIndex` says how). Its lists are read, once, if
 * `isNeeded`. Throws the ApiError of a read that fails.
 */
export async function optionFinder(
  targetingId: string | undefined,
  isNeeded: boolean,
  { api, signal }: PlanningContext,
): Promise<OptionFinder> {
  const takenFor: TakenName[] = [];
  if (targetingId === undefined) {
    const unnamed = (value: string) => ownReason("INVALID_ITEM", { problem: "nameWithoutTargeting", value });
    return Object.assign(unnamed, { takenFor });
  }
  const index = new NameIndex<OptionRecord>();
  if (isNeeded) {
    for await (const option of readOptions(api, targetingId, signal)) index.add({ targeting: targetingId, ...option });
  }
  const find: FindOption = (name, field) => {
    const option = found(index, name, field);
    if (isOption(option)) noteTaken(takenFor, name, option);
    return option;
  };
  return Object.assign(find, { takenFor });
}

/** Notes the name that an option was given by, where it is not exactly the option's own. */
export function noteTaken(takenFor: TakenName[], given: string, { name }: OptionRecord): void {
  if (name === given || takenFor.length >= MOST_TAKEN || takenFor.some((taken) => taken.given === given)) return;
  takenFor.push({ given, name });
}

/** The option that an index has under a name. */
export function found(index: NameIndex<OptionRecord>, name: string, field: string): OptionRecord | Reason {
  const match = index.find(name);
  if (match.kind === "one") return match.thing;
  const about = { field, value: name };
  if (match.kind === "ambiguous") {
    return ownReason("NAME_AMBIGUOUS", { ...about, ids: match.candidates.map(({ _id }) => _id) });
  }
  const near = match.candidates.map((candidate) => candidate.name);
  return ownReason("NAME_NOT_FOUND", near.length === 0 ? about : { ...about, near });
}

/** Whether a name was found. */
export function isOption(option: OptionRecord | Reason): option is OptionRecord {
  return "_id" in option;
}

/** The reason for a name that means no targeting, or several. */
export function unnamed({ currentName: value, ids = [], near = [] }: NamedTargeting): Reason {
  const about = { field: "currentName", of: "targetings", value };
  if (ids.length > 0) return ownReason("NAME_AMBIGUOUS", { ...about, ids });
  return ownReason("NAME_NOT_FOUND", near.length === 0 ? about : { ...about, near });
}

/** The present names of targetings by ID; of a deleted one the error of the service. */
export type NamesNow = ReadonlyMap<string, string | RejectedError>;

/** Reads the present names of targetings. Throws the ApiError of a read that fails for another reason. */
export async function namesNow(ids: readonly string[], { api, signal }: PlanningContext): Promise<NamesNow> {
  const read = await mapConcurrently(
    [...new Set(ids)],
    async (_id): Promise<readonly [string, string | RejectedError]> => {
      try {
        return [_id, (await api.getTargeting(_id, { signal })).name];
      } catch (thrown) {
        if (isMissing(thrown)) return [_id, thrown];
        throw thrown;
      }
    },
  );
  return new Map(read);
}

/**
 * The reason why a targeting given by name can no longer be meant: its name has changed. Undefined where it has not.
 */
export function renamedSince(currentName: string | undefined, now: string): Reason | undefined {
  if (currentName === undefined || folded(now) === folded(currentName)) return undefined;
  return ownReason("NAME_NOT_FOUND", { field: "currentName", of: "targetings", value: currentName, now });
}
