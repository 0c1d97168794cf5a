import { ListError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionPage, OptionRecord } from "../spec/records.ts";
import { pagesAhead } from "./side-by-side.ts";

/** One list of options: the top-level options of a targeting, or the sub-options of `parent`. */
export interface OptionList {
  readonly targetingId: string;
  readonly parent?: string | undefined;
  readonly signal?: AbortSignal;
}

/** One page of a walk: options that no page before it had, the first of which stands at `at` in the list. */
interface WalkedPage {
  readonly at: number;
  readonly options: readonly OptionRecord[];
  /** How many pages are left, as far as the service tells. */
  readonly pagesLeft: number;
}

/** How a walk is done. */
interface WalkOptions {
  /** Where in the list it begins. */
  readonly from?: number;
  /** Whether the total that the service gives may change meanwhile. */
  readonly totalMayChange?: boolean;
  /** Whether the list may shift, since nothing is concluded from what is not found: then pages need not overlap. */
  readonly mayShift?: boolean;
}

const LIMIT = LIMITS.listLimit.value;
/** How often what shifts is walked, at the most. */
const MOST_WALKS = 4;

/**
 * Walks through a list, page by page (management-api 8.1 for the page size). Each page begins with the last option of the
 * one before, so that an option that another writer takes away or puts in front is noticed, in whatever order the pages
 * were read, and whether or not the service gives a total; unless the list may shift. Where it gives a total, the pages
 * behind the first are read side by side. Throws the ApiError of a page, and a ListError where pages repeat or the list
 * shifted.
 */
export async function* listPages(
  api: ManagementApi,
  { targetingId, parent, signal }: OptionList,
  { from = 0, totalMayChange = false, mayShift = false }: WalkOptions = {},
): AsyncGenerator<WalkedPage> {
  const read = (offset: number, within: AbortSignal): Promise<OptionPage> =>
    api.listOptions(targetingId, { limit: LIMIT, offset, ...(parent !== undefined && { parent }) }, { signal: within });
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

/** Whether a page that ends at `end` is the last: by the total, or else because it is shorter than asked for. */
export function isLastPage({ items, total }: OptionPage, end: number, limit: number): boolean {
  return items.length === 0 || (total === undefined ? items.length < limit : end >= total);
}

/**
 * Does work that walks lists, and does it anew where one shifted meanwhile, so that nothing is concluded from what a
 * shift left out. The last time a total may change: then the order alone, which was looked at, says that nothing was
 * left out. Throws what the work throws: a ListError where it shifted each time.
 */
export async function steadily<T>(work: (walk: Pick<WalkOptions, "totalMayChange">) => Promise<T>): Promise<T> {
  for (let walks = 1; ; walks += 1) {
    try {
      return await work({ totalMayChange: walks === MOST_WALKS });
    } catch (thrown) {
      const isShift = thrown instanceof ListError && thrown.problem === "shifts";
      if (!isShift || walks === MOST_WALKS) throw thrown;
    }
  }
}

/**
 * Reads one list from a place on, in the service's order; `pick` says what is kept of each option.
 * Throws the ApiError of a page, and a ListError where pages repeat or the list shifted each time that it was walked.
 */
export function readList<T>(
  api: ManagementApi,
  list: OptionList,
  pick: (option: OptionRecord) => T,
  from = 0,
): Promise<readonly T[]> {
  return steadily(async (walk) => {
    const picked: T[] = [];
    for await (const { options } of listPages(api, list, { ...walk, from })) {
      for (const option of options) picked.push(pick(option));
    }
    return picked;
  });
}
