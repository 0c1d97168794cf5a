import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { findOptions } from "../reads/option-contents.ts";
import { readOptions } from "../reads/option-lists.ts";
import { type PlacedOption, placedOptions, withContexts } from "../reads/saved-options.ts";
import type { OptionRecord } from "../spec/records.ts";
import type { ToolServices } from "../tools/define-tool.ts";

// Reads the objects that a waiting deletion would remove. The stored effect has only counts, but the person who decides
// sees names and Context IDs.

/** The Context IDs of at most this many options are read. With more options, only names and counts are shown. */
const MAX_READ = 2000;
const MAX_LISTED = 20_000;
const MAX_MS = 60_000;
const MAX_FREED = 20;

export interface LostOption {
  readonly _id: string;
  readonly name: string;
  readonly isGroup: boolean;
  /** The name of the option's group. Null at the top level. */
  readonly group: string | null;
  readonly count: number | undefined;
  /** Absent if they were not read. */
  readonly contextIds?: readonly string[];
}

/**
 * The objects to delete. `options`: options that are deleted one by one, by ID. `within`: all options of targetings
 * that are deleted as a whole.
 */
export interface Lost {
  readonly options: ReadonlyMap<string, LostOption>;
  readonly within: readonly LostOption[];
  /** The names of the first sub-options that remain although their group is deleted. */
  readonly freed: readonly string[];
  readonly isWhole: boolean;
}

/**
 * Reads the options with these IDs and all options of the targetings. Undefined if there are too many. "unread" if the
 * service cannot be read now.
 */
export async function readLost(
  { options, targetings }: { readonly options: readonly string[]; readonly targetings: readonly string[] },
  { management }: Pick<ToolServices, "management">,
): Promise<Lost | "unread" | undefined> {
  if (management === undefined || options.length > MAX_LISTED) return undefined;
  const api = management.forCall?.() ?? management;
  const signal = AbortSignal.timeout(MAX_MS);
  try {
    const { found } = await findOptions(api, options, signal);
    const groups = [...found.values()].flatMap(({ parent }) => parent ?? []).filter((id) => !found.has(id));
    const { found: around } = await findOptions(api, [...new Set(groups)], signal);
    const nameOf = (id: string): string | undefined => (found.get(id) ?? around.get(id))?.name;
    const alone = [...found.values()].map((option) => ({ option, groupName: nameOf(option.parent ?? "") }));
    const inside: PlacedOption[] = [];
    for (const id of targetings) {
      for await (const placed of placedOptions(api, id, signal)) {
        if (inside.push(placed) > MAX_LISTED) return undefined;
      }
    }
    const all = [...alone, ...inside];
    const isWhole = all.length <= MAX_READ;
    const read = new Map<string, readonly string[]>();
    if (isWhole) {
      for await (const { option, contexts } of withContexts(api, all, { signal })) read.set(option._id, contexts);
    }
    const lostOf = (placed: PlacedOption): LostOption => lostOption(placed, read.get(placed.option._id));
    const individual = new Map(alone.map((one) => [one.option._id, lostOf(one)]));
    return {
      options: individual,
      within: inside.map(lostOf),
      freed: await freedNames([...found.values()], api, signal),
      isWhole,
    };
  } catch (thrown) {
    if (!isApiError(thrown) && !signal.aborted) throw thrown;
    return "unread";
  }
}

/**
 * Returns the names of the first of these sub-options, whose group was deleted. Reads unknown names. Undefined if the
 * service cannot be read now.
 */
export async function freedNamesOf(
  freed: ReadonlyMap<string, string | undefined>,
  { management }: Pick<ToolServices, "management">,
): Promise<readonly string[] | undefined> {
  const first = [...freed].slice(0, MAX_FREED);
  const unknown = first.flatMap(([_id, name]) => (name === undefined ? [_id] : []));
  if (unknown.length === 0 || management === undefined) return first.flatMap(([, name]) => name ?? []);
  const signal = AbortSignal.timeout(MAX_MS);
  try {
    const { found } = await findOptions(management.forCall?.() ?? management, unknown, signal);
    return first.flatMap(([_id, name]) => name ?? found.get(_id)?.name ?? []);
  } catch (thrown) {
    if (!isApiError(thrown) && !signal.aborted) throw thrown;
    return undefined;
  }
}

/** Reads the first sub-options of groups to delete. Leaves out sub-options that are deleted themselves. */
async function freedNames(
  deleted: readonly OptionRecord[],
  api: ManagementApi,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const ids = new Set(deleted.map(({ _id }) => _id));
  const names: string[] = [];
  for (const { _id, type, targeting, childCount } of deleted) {
    if (type !== "collection" || targeting === undefined || childCount === 0) continue;
    for await (const child of readOptions(api, targeting, signal, { parent: _id })) {
      if (names.length === MAX_FREED) return names;
      if (!ids.has(child._id)) names.push(child.name);
    }
  }
  return names;
}

function lostOption({ option, groupName }: PlacedOption, contextIds: readonly string[] | undefined): LostOption {
  const { _id, name, type, parent, contextCount } = option;
  const group = typeof parent === "string" ? (groupName ?? "a group") : null;
  const count = contextIds?.length ?? contextCount;
  return { _id, name, isGroup: type === "collection", group, count, ...(contextIds && { contextIds }) };
}
