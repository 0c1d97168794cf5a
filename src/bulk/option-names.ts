import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionRecord } from "../spec/records.ts";

/**
 * Every option of a targeting, page by page: top-level options in the order of the service, and after each page the
 * sub-options of its groups, unless `subOptions` is false. With `parent` only the sub-options of that group.
 * Throws the ApiError of a page that cannot be read.
 */
export async function* readOptions(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
  what: { readonly parent?: string; readonly subOptions?: boolean } = {},
): AsyncGenerator<OptionRecord> {
  const limit = LIMITS.listLimit.value;
  const { parent, subOptions = true } = what;
  const within = parent === undefined ? {} : { parent };
  for (let offset = 0, more = true; more; ) {
    const { items, total } = await api.listOptions(targetingId, { limit, offset, ...within }, { signal });
    offset += items.length;
    yield* items;
    for (const option of items) {
      const isGroup = parent === undefined && option.type === "collection" && option.childCount !== 0;
      if (isGroup && subOptions) yield* readOptions(api, targetingId, signal, { parent: option._id });
    }
    more = items.length > 0 && (total === undefined ? items.length >= limit : offset < total);
  }
}

/** Gives the IDs of all options of a targeting by name, as `readOptionNames` does. */
export type OptionNames = (targetingId: string) => Promise<ReadonlyMap<string, string>>;

/** Reads the options of each targeting once, however many ask for them, and whether or not that succeeds. */
export function optionNamesOnce(api: ManagementApi, signal: AbortSignal): OptionNames {
  const known = new Map<string, Promise<ReadonlyMap<string, string>>>();
  return (targetingId) => {
    const names = known.get(targetingId) ?? readOptionNames(api, targetingId, signal);
    known.set(targetingId, names);
    return names;
  };
}

/** The IDs of all options of a targeting, sub-options included, or of the sub-options of `parent`, by name. */
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
