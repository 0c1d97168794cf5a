import { ListError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionRecord } from "../spec/records.ts";
import { steadily } from "./pages.ts";
import { pagesAhead, sideBySide } from "./side-by-side.ts";

/** An option with all its Context IDs. */
export interface OptionContents {
  readonly option: OptionRecord;
  readonly contexts: readonly string[];
  /** The service's clock when it answered, in milliseconds since 1970; absent where it does not tell. */
  readonly serverTime?: number;
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
  const read = (offset: number, within: AbortSignal) => api.getOption(optionId, { limit, offset }, { signal: within });
  const { option, contexts: first, serverTime } = await read(0, signal);
  const { contextCount: count } = option;
  const contexts = [...first];
  const held = new Set(first);
  const pages = pagesAhead(read, { signal, pace: api.pace });
  if (count !== undefined) pages.expect(first.length, first.length, Math.min(count, LIMITS.getOffset.value + 1));
  try {
    for (let page = first; contexts.length <= LIMITS.getOffset.value; ) {
      if (count === undefined ? page.length < limit : contexts.length >= count) break;
      const next = await pages.at(contexts.length);
      page = next.contexts;
      const isNew = page.filter((id) => !held.has(id));
      if (page.length > 0 && isNew.length === 0) throw new ListError("getOption", "repeats");
      if (isNew.length < page.length || isChanged(option, next.option)) throw new ListError("getOption", "shifts");
      if (page.length === 0 && count !== undefined && !mayBeShort) throw new ListError("getOption", "shifts");
      if (page.length === 0) break;
      contexts.push(...page);
      for (const id of page) held.add(id);
    }
  } finally {
    await pages.stop();
  }
  return { option, contexts, ...(serverTime !== undefined && { serverTime }) };
}

function isChanged(before: OptionRecord, now: OptionRecord): boolean {
  return before.contextCount !== now.contextCount || before.updatedAt !== now.updatedAt;
}

/**
 * Maps a list with a few calls at a time; gives the values in the order of the list, without those that are undefined.
 * Throws the first error.
 */
export async function mapConcurrently<From, To>(
  list: readonly From[],
  map: (from: From) => Promise<To | undefined>,
): Promise<readonly To[]> {
  const values: To[] = [];
  for await (const { value } of sideBySide({ source: () => list, map })) if (value !== undefined) values.push(value);
  return values;
}
