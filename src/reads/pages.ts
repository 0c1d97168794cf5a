import { ListError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionPage, OptionRecord } from "../spec/records.ts";
import { pagesAhead } from "./side-by-side.ts";

/** A list of options: the top-level options of a targeting, or the sub-options of `parent`. */
export interface OptionList {
  readonly targetingId: string;
  readonly parent?: string | undefined;
  readonly signal?: AbortSignal;
}

/** One page of a list, without options of earlier pages. `at` is the index of the page's first option in the list. */
interface WalkedPage {
  readonly at: number;
  readonly options: readonly OptionRecord[];
  readonly pagesLeft: number;
}

interface WalkOptions {
  readonly from?: number;
  /** Whether the total may change from page to page. Otherwise, another total means that the list has changed. */
  readonly totalMayChange?: boolean;
  /** Whether options may be missed if the list changes. If so, the pages do not overlap, which saves requests. */
  readonly mayShift?: boolean;
}

const LIMIT = LIMITS.listLimit.value;
const MAX_WALKS = 4;

/**
 * Reads a list page by page (management-api 8.1). Unless `mayShift`, each page begins with the last option of the page
 * before. Throws a ListError if this shows that the list has changed, or if the service repeats a page.
 */
export async function* listPages(
  api: ManagementApi,
  { targetingId, parent, signal }: OptionList,
  { from = 0, totalMayChange = false, mayShift = false }: WalkOptions = {},
): AsyncGenerator<WalkedPage> {
  const read = (offset: number, within: AbortSignal): Promise<OptionPage> =>
    api.listOptions(targetingId, { limit: LIMIT, offset, parent }, { signal: within });
  const pages = pagesAhead(read, { signal, pace: api.pace });
  const seen = new Set<string>();
  let last: string | undefined;
  let total: number | undefined;
  try {
    for (let at = from; ; ) {
      const overlap = last === undefined || mayShift ? 0 : 1;
      const offset = at - overlap;
      const page = await pages.at(offset);
      const options = page.items.filter(({ _id }) => !seen.has(_id));
      const isRepeated = last !== undefined && options.length === 0 && page.items.length > overlap;
      if (isRepeated) throw new ListError("listOptions", "repeats");
      if (overlap > 0) {
        const isNextTo = page.items[0]?._id === last && options.length === page.items.length - 1;
        if (!isNextTo || (page.total !== total && !totalMayChange)) throw new ListError("listOptions", "shifts");
      }
      for (const { _id } of options) seen.add(_id);
      total = page.total;
      const end = offset + page.items.length;
      const isOver = options.length === 0 || isLastPage(page, end, LIMIT);
      yield { at, options, pagesLeft: isOver ? 0 : Math.max(1, Math.ceil(((total ?? 0) - end) / (LIMIT - 1))) };
      if (isOver) return;
      const shared = mayShift ? 0 : 1;
      if (total !== undefined) pages.expect(end - shared, page.items.length - shared, total - shared);
      at = end;
      last = page.items.at(-1)?._id;
    }
  } finally {
    await pages.stop();
  }
}

export function isLastPage({ items, total }: OptionPage, end: number, limit: number): boolean {
  return items.length === 0 || (total === undefined ? items.length < limit : end >= total);
}

/**
 * Repeats `work` if a list was changed while `work` read it. In the last attempt, the total may change. Throws a
 * ListError if the list was changed during every attempt.
 */
export async function untilStable<T>(work: (walk: Pick<WalkOptions, "totalMayChange">) => Promise<T>): Promise<T> {
  for (let walks = 1; ; walks += 1) {
    try {
      return await work({ totalMayChange: walks === MAX_WALKS });
    } catch (thrown) {
      const isShift = thrown instanceof ListError && thrown.problem === "shifts";
      if (!isShift || walks === MAX_WALKS) throw thrown;
    }
  }
}

/** Reads a list, starting at an index. `pick` returns what is needed of each option. */
export function readList<T>(
  api: ManagementApi,
  list: OptionList,
  pick: (option: OptionRecord) => T,
  from = 0,
): Promise<readonly T[]> {
  return untilStable(async (walk) => {
    const picked: T[] = [];
    for await (const { options } of listPages(api, list, { ...walk, from })) {
      for (const option of options) picked.push(pick(option));
    }
    return picked;
  });
}
