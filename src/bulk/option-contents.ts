import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionRecord } from "../spec/records.ts";

/** An option with all its Context IDs. */
export interface OptionContents {
  readonly option: OptionRecord;
  readonly contexts: readonly string[];
}

/** Reads an option with all its Context IDs, page by page (management-api 8.1). Throws the ApiError of a page. */
export async function readOptionContents(
  api: ManagementApi,
  optionId: string,
  signal: AbortSignal,
): Promise<OptionContents> {
  const limit = LIMITS.getLimit.value;
  const first = await api.getOption(optionId, { limit, offset: 0 }, { signal });
  const contexts = [...first.contexts];
  for (let page = first.contexts; page.length === limit && contexts.length <= LIMITS.getOffset.value; ) {
    if (contexts.length >= (first.option.contextCount ?? Number.POSITIVE_INFINITY)) break;
    page = (await api.getOption(optionId, { limit, offset: contexts.length }, { signal })).contexts;
    contexts.push(...page);
  }
  return { option: first.option, contexts };
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
