import { ListError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionRecord } from "../spec/records.ts";
import { steadily } from "./pages.ts";

/** An option with all its Context IDs. */
export interface OptionContents {
  readonly option: OptionRecord;
  readonly contexts: readonly string[];
}

/**
 * Reads an option with all its Context IDs, page by page (management-api 8.1), and anew where it changed meanwhile. Throws
 * the ApiError of a page, and a ListError where pages repeat or the option changed each time that it was read.
 */
export function readOptionContents(api: ManagementApi, optionId: string, signal: AbortSignal): Promise<OptionContents> {
  return steadily(({ totalMayChange: mayBeShort = false }) => readOnce(api, optionId, { signal, mayBeShort }));
}

/** `mayBeShort`: whether a list that ends before the option's own count is taken as it is. */
async function readOnce(
  api: ManagementApi,
  optionId: string,
  { signal, mayBeShort }: { readonly signal: AbortSignal; readonly mayBeShort: boolean },
): Promise<OptionContents> {
  const limit = LIMITS.getLimit.value;
  const { option, contexts: first } = await api.getOption(optionId, { limit, offset: 0 }, { signal });
  const { contextCount: count } = option;
  const contexts = [...first];
  const held = new Set(first);
  for (let page = first; contexts.length <= LIMITS.getOffset.value; ) {
    if (count === undefined ? page.length < limit : contexts.length >= count) break;
    const next = await api.getOption(optionId, { limit, offset: contexts.length }, { signal });
    page = next.contexts;
    const isNew = page.filter((id) => !held.has(id));
    if (page.length > 0 && isNew.length === 0) throw new ListError("getOption", "repeats");
    if (isNew.length < page.length || isChanged(option, next.option)) throw new ListError("getOption", "shifts");
    if (page.length === 0 && count !== undefined && !mayBeShort) throw new ListError("getOption", "shifts");
    if (page.length === 0) break;
    contexts.push(...page);
    for (const id of page) held.add(id);
  }
  return { option, contexts };
}

function isChanged(before: OptionRecord, now: OptionRecord): boolean {
  return before.contextCount !== now.contextCount || before.updatedAt !== now.updatedAt;
}

/** How many reads run at a time. Reads do not wait for writes (management-api 4.2). */
const READS_AT_A_TIME = 8;

/**
 * Maps a list with a few calls at a time; gives the values in the order of the list, without those that are undefined.
 * Throws the first error.
 */
export async function mapConcurrently<From, To>(
  list: readonly From[],
  map: (from: From) => Promise<To | undefined>,
): Promise<readonly To[]> {
  const values = new Map<number, To | undefined>();
  const entries = list.entries();
  const worker = async (): Promise<void> => {
    for (const [position, from] of entries) values.set(position, await map(from));
  };
  await Promise.all(Array.from({ length: Math.min(READS_AT_A_TIME, list.length) }, worker));
  return list.flatMap((_, position) => {
    const value = values.get(position);
    return value === undefined ? [] : [value];
  });
}
