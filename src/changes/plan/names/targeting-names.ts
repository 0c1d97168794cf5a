import type { RejectedError } from "../../../api/errors.ts";
import { isMissing } from "../../../reading/find-options.ts";
import { mapConcurrently } from "../../../reading/option-contents.ts";
import type { Reason } from "../../../runs/outcome.ts";
import { ownReason } from "../../../runs/reasons.ts";
import { folded } from "../../../spec/name-match.ts";
import type { PlanningContext } from "../plan.ts";

/** A targeting that a caller gave by a name under which it was seen before, and what was found under that name. */
export interface NamedTargeting {
  readonly currentName: string;
  /** Undefined where no targeting, or not one alone, was seen under that name. */
  readonly _id?: string | undefined;
  /** The IDs of several that were seen under it. */
  readonly ids?: readonly string[] | undefined;
  /** Names that are like it, where none was seen under it. */
  readonly near?: readonly string[] | undefined;
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
