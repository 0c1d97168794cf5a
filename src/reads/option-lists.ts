import type { ManagementApi } from "../api/management.ts";
import type { OptionRecord } from "../spec/records.ts";
import { stretches } from "./option-walk.ts";
import { readList } from "./pages.ts";
import { sideBySide } from "./side-by-side.ts";

type ListedOption = ReturnType<typeof listed>;

/**
 * Reads every option of a targeting, or of the group `parent`. Each group is followed by its sub-options, which name it
 * as their parent.
 */
export async function* readOptions(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
  what: { readonly parent?: string; readonly subOptions?: boolean } = {},
): AsyncGenerator<ListedOption> {
  const { parent, subOptions = true } = what;
  const list = await readList(api, { targetingId, parent, signal }, listed);
  const isGroup = ({ type, childCount }: ListedOption): boolean =>
    subOptions && parent === undefined && type !== "atomic" && childCount !== 0;
  const read = sideBySide({
    source: () => stretches(list, isGroup),
    map: ({ options, group }, within) => {
      if (group === undefined) return options;
      const inside = readList(api, { targetingId, parent: group._id, signal: within }, listed);
      return inside.then((children) => [...options, ...children.map((child) => ({ ...child, parent: group._id }))]);
    },
    signal,
    pace: api.pace,
  });
  for await (const { value = [] } of read) yield* value;
}

/** Drops the other fields, because a targeting may have 100,000 options. */
function listed(option: OptionRecord) {
  const { _id, name, type, contextCount, targeting, parent, exposeChildren, children, childCount, updatedAt } = option;
  const about = { _id, name, type, contextCount, parent, exposeChildren, children, childCount, updatedAt };
  return targeting === undefined ? about : { ...about, targeting };
}

export type OptionNames = (targetingId: string, parent?: string) => Promise<ReadonlyMap<string, string>>;

/** Returns a function that reads each targeting or group only once, even if the read fails. */
export function optionNamesOnce(api: ManagementApi, signal: AbortSignal): OptionNames {
  const known = new Map<string, Promise<ReadonlyMap<string, string>>>();
  return (targetingId, parent) => {
    const list = parent ?? targetingId;
    const names = known.get(list) ?? readOptionNames(api, targetingId, signal, parent);
    known.set(list, names);
    return names;
  };
}

/** Returns the IDs by name: of all options and sub-options of a targeting, or of the sub-options of `parent`. */
export async function readOptionNames(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
  parent?: string,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>();
  const options = readOptions(api, targetingId, signal, parent === undefined ? {} : { parent });
  for await (const option of options) names.set(option.name, option._id);
  return names;
}
