import type { RejectedError } from "../../api/errors.ts";
import { folded, NameIndex } from "../../platform/by-key.ts";
import { isMissing, mapConcurrently } from "../../reads/option-contents.ts";
import { readOptions } from "../../reads/option-lists.ts";
import { type MatchedName, ownReason, type Reason } from "../../runs/outcome.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { NamedTargeting } from "../call.ts";
import type { PlanningContext } from "./plan.ts";

/** Finds an option by name, or returns why there is not exactly one. `field` is the input field. */
export type FindOption = (name: string, field: string) => OptionRecord | Reason;

/** Finds options by name. Also has the names that did not match exactly, and all options that were read, by ID. */
interface OptionFinder extends FindOption {
  readonly takenFor: readonly MatchedName[];
  readonly known: ReadonlyMap<string, OptionRecord>;
}

const MAX_MATCHED_NAMES = 20;

/** Returns a finder by name. If `isNeeded`, it reads the targeting first. Throws the ApiError of a failed read. */
export async function optionFinder(
  targetingId: string | undefined,
  isNeeded: boolean,
  { api, signal }: PlanningContext,
): Promise<OptionFinder> {
  const takenFor: MatchedName[] = [];
  const known = new Map<string, OptionRecord>();
  if (targetingId === undefined) {
    const unnamed = (value: string) => ownReason("INVALID_ITEM", { problem: "nameWithoutTargeting", value });
    return Object.assign(unnamed, { takenFor, known });
  }
  const index = new NameIndex<OptionRecord>();
  if (isNeeded) {
    for await (const option of readOptions(api, targetingId, signal)) {
      const record = { targeting: targetingId, ...option };
      index.add(record);
      known.set(record._id, record);
    }
  }
  const find: FindOption = (given, field) => {
    const option = found(index, given, field);
    const isTaken = isOption(option) && option.name !== given && !takenFor.some((taken) => taken.given === given);
    if (isTaken && takenFor.length < MAX_MATCHED_NAMES) takenFor.push({ given, name: option.name });
    return option;
  };
  return Object.assign(find, { takenFor, known });
}

export function found(index: NameIndex<OptionRecord>, name: string, field: string): OptionRecord | Reason {
  const match = index.find(name);
  if (match.kind === "one") return match.thing;
  const about = { field, value: name };
  if (match.kind === "ambiguous") {
    return ownReason("NAME_AMBIGUOUS", { ...about, ids: match.candidates.map(({ _id }) => _id) });
  }
  const isMeant = ({ type }: OptionRecord): boolean => field !== "parentName" || type === "collection";
  const near = match.candidates.filter(isMeant).map((candidate) => candidate.name);
  return ownReason("NAME_NOT_FOUND", near.length === 0 ? about : { ...about, near });
}

/** Removes from a reason the similar names of options that the same call deletes. */
export function withoutNames(reason: Reason, gone: ReadonlySet<string>): Reason {
  const { near, ...detail } = reason.detail ?? {};
  if (!Array.isArray(near)) return reason;
  const left = near.filter((name) => !gone.has(String(name)));
  return { ...reason, detail: left.length === 0 ? detail : { ...detail, near: left } };
}

export function isOption(option: OptionRecord | Reason): option is OptionRecord {
  return "_id" in option;
}

/** Returns why a targeting was not found by name. */
export function unnamed({ currentName: value, ids = [], near = [] }: NamedTargeting): Reason {
  const about = { field: "currentName", of: "targetings", value };
  if (ids.length > 0) return ownReason("NAME_AMBIGUOUS", { ...about, ids });
  return ownReason("NAME_NOT_FOUND", near.length === 0 ? about : { ...about, near });
}

/** The current names of targetings by ID, or the error of the service if one was deleted. */
export type CurrentNames = ReadonlyMap<string, string | RejectedError>;

/** Reads targeting names. Throws the ApiError of a failed read, unless the targeting does not exist. */
export async function readCurrentNames(ids: Iterable<string>, { api, signal }: PlanningContext): Promise<CurrentNames> {
  const read = await mapConcurrently([...new Set(ids)], async (_id) => {
    const there = await orMissing(api.getTargeting(_id, { signal }));
    return [_id, there instanceof Error ? there : there.name] as const;
  });
  return new Map(read);
}

/** Returns what was read, or the service's error if that says that the object does not exist. */
export async function orMissing<Value>(reading: Promise<Value>): Promise<Value | RejectedError> {
  try {
    return await reading;
  } catch (thrown) {
    if (isMissing(thrown)) return thrown;
    throw thrown;
  }
}

/** Returns the reason if a targeting that was given by name has another name now. */
export function reasonIfRenamed(currentName: string | undefined, now: string): Reason | undefined {
  if (currentName === undefined || folded(now) === folded(currentName)) return undefined;
  return ownReason("NAME_NOT_FOUND", { field: "currentName", of: "targetings", value: currentName, now });
}
