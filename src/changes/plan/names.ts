import type { RejectedError } from "../../api/errors.ts";
import { folded, NameIndex } from "../../platform/by-key.ts";
import { isMissing, mapConcurrently } from "../../reads/option-contents.ts";
import { readOptions } from "../../reads/option-lists.ts";
import { type MatchedName, ownReason, type Reason } from "../../runs/outcome.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { NamedTargeting } from "../call.ts";
import type { PlanningContext } from "./plan.ts";

/** Finds an option by name, or returns why not exactly one matches. `field` is the input field with the name. */
export type FindOption = (name: string, field: string) => OptionRecord | Reason;

/** Finds options by name. Also has all options that were read, by ID, and the names that did not match exactly. */
interface OptionFinder extends FindOption {
  readonly takenFor: readonly MatchedName[];
  readonly known: ReadonlyMap<string, OptionRecord>;
}

const MAX_MATCHED_NAMES = 20;

/**
 * Returns a finder by name. If `isNeeded`, reads the targeting's options first. Throws the ApiError of a failed read.
 */
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

/** Removes suggestions from a reason: the names of options that the same call deletes. */
export function withoutNames(reason: Reason, gone: ReadonlySet<string>): Reason {
  const { near, ...detail } = reason.detail ?? {};
  if (!Array.isArray(near)) return reason;
  const left = near.filter((name) => !gone.has(String(name)));
  return { ...reason, detail: left.length === 0 ? detail : { ...detail, near: left } };
}

export function isOption(option: OptionRecord | Reason): option is OptionRecord {
  return "_id" in option;
}

/** Returns the reason why no targeting, or more than one, was found by name. */
export function unnamed({ currentName: value, ids = [], near = [] }: NamedTargeting): Reason {
  const about = { field: "currentName", of: "targetings", value };
  if (ids.length > 0) return ownReason("NAME_AMBIGUOUS", { ...about, ids });
  return ownReason("NAME_NOT_FOUND", near.length === 0 ? about : { ...about, near });
}

export type CurrentNames = ReadonlyMap<string, string | RejectedError>;

/** Reads the names of targetings. Throws the ApiError of a failed read, unless the targeting does not exist. */
export async function readCurrentNames(ids: Iterable<string>, { api, signal }: PlanningContext): Promise<CurrentNames> {
  const read = await mapConcurrently([...new Set(ids)], async (_id) => {
    const there = await orMissing(api.getTargeting(_id, { signal }));
    return [_id, there instanceof Error ? there : there.name] as const;
  });
  return new Map(read);
}

/** Returns the result of a read. If the object does not exist, returns the error of the service. */
export async function orMissing<Value>(reading: Promise<Value>): Promise<Value | RejectedError> {
  try {
    return await reading;
  } catch (thrown) {
    if (isMissing(thrown)) return thrown;
    throw thrown;
  }
}

/** Returns a reason if the targeting no longer has the name by which the caller gave it. Undefined if it has. */
export function reasonIfRenamed(currentName: string | undefined, now: string): Reason | undefined {
  if (currentName === undefined || folded(now) === folded(currentName)) return undefined;
  return ownReason("NAME_NOT_FOUND", { field: "currentName", of: "targetings", value: currentName, now });
}
