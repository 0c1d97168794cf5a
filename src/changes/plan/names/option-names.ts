import { readOptions } from "../../../reading/option-lists.ts";
import type { Reason } from "../../../runs/outcome.ts";
import { ownReason } from "../../../runs/reasons.ts";
import { NameIndex } from "../../../spec/name-match.ts";
import type { OptionRecord } from "../../../spec/records.ts";
import type { PlanningContext } from "../plan.ts";

/** Finds the option of a name; `field` is where the name stands. Gives a reason where there is none, or several. */
export type FindOption = (name: string, field: string) => OptionRecord | Reason;

/**
 * Finds options of a targeting by name, sub-options included (`NameIndex` says how). Its lists are read, once, if
 * `isNeeded`. Throws the ApiError of a read that fails.
 */
export async function optionFinder(
  targetingId: string | undefined,
  isNeeded: boolean,
  { api, signal }: PlanningContext,
): Promise<FindOption> {
  if (targetingId === undefined)
    return (value) => ownReason("INVALID_ITEM", { problem: "nameWithoutTargeting", value });
  const index = new NameIndex<OptionRecord>();
  if (isNeeded) {
    for await (const option of readOptions(api, targetingId, signal)) index.add({ targeting: targetingId, ...option });
  }
  return (name, field) => found(index, name, field);
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
