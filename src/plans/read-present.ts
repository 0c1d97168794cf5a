import type { ManagementApi } from "../api/management.ts";
import { readOptionContents } from "../reading/option-contents.ts";
import { placedOptions } from "../reading/saved-options.ts";
import { sideBySide } from "../reading/side-by-side.ts";
import type { Done } from "../runs/done.ts";
import { unlessMissing } from "./read-targeting.ts";
import { contentsNeeded, targetingsIn } from "./undo/undo.ts";
import type { Present, PresentOption } from "./undo/way-back.ts";

/**
 * Reads the targetings that a run changed as they are now: all options, and the Context IDs of those whose way back
 * depends on them. A targeting that is gone is left out. Throws the ApiError of a read, and a ListError where lists
 * change each time that they are read.
 */
export async function readPresent(
  api: ManagementApi,
  done: Done,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Present>> {
  const present = new Map<string, Present>();
  for (const _id of targetingsIn(done)) {
    const read = await unlessMissing(readTargetingNow(api, _id, done, signal));
    if (read !== undefined) present.set(_id, read);
  }
  return present;
}

async function readTargetingNow(
  api: ManagementApi,
  targetingId: string,
  done: Done,
  signal: AbortSignal,
): Promise<Present> {
  const { _id, name } = await api.getTargeting(targetingId, { signal });
  const options = new Map<string, PresentOption>();
  for await (const { option } of placedOptions(api, targetingId, signal)) {
    const { type = option.childCount === undefined ? "atomic" : "collection", parent = null } = option;
    options.set(option._id, {
      ...{ _id: option._id, name: option.name, type, parent, contextCount: option.contextCount ?? 0 },
      ...(type === "collection" && { exposeChildren: option.exposeChildren ?? false }),
    });
  }
  const present: Present = { targeting: { _id, name }, options };
  const needed = contentsNeeded(done, present);
  const read = async (id: string, within: AbortSignal) =>
    (await unlessMissing(readOptionContents(api, id, within))) ?? "missing";
  for await (const { from, value } of sideBySide({ source: () => needed, map: read, signal, pace: api.pace })) {
    const there = options.get(from);
    if (value === "missing") options.delete(from);
    else if (there !== undefined && value !== undefined) {
      const { contexts } = value;
      options.set(from, { ...there, contexts, contextCount: contexts.length });
    }
  }
  return present;
}
