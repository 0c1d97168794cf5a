import { readOptions } from "../../../reading/option-lists.ts";
import type { Reason, TakenName } from "../../../runs/outcome.ts";
import { ownReason } from "../../../runs/reasons.ts";
import { NameIndex } from "../../../spec/name-match.ts";
import type { OptionRecord } from "../../../spec/records.ts";
import type { PlanningContext } from "../plan.ts";

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
