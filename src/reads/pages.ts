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

/** One page of a walk: options that were on no earlier page, the first at position `at` of the list. */
interface WalkedPage {
  readonly at: number;
  readonly options: readonly OptionRecord[];
  readonly pagesLeft: number;
}

interface WalkOptions {
  readonly from?: number;
  /** Whether the total that the service reports may change during the walk. */
  readonly totalMayChange?: boolean;
  /** Whether the list may shift, because missing options do not matter. Pages then need not overlap. */
  readonly mayShift?: boolean;
}

const LIMIT = LIMITS.listLimit.value;
/** How often a list that shifts is walked at most. */
const MAX_WALKS = 4;

/**
 * Walks a list page by page (management-api 8.1). Unless the list may shift, each page begins with the last option of
 * the page before, which detects options that another writer removes or inserts, whatever the order of the reads. With
 * a total, further pages are read concurrently. Throws the ApiError of a page, and a ListError if pages repeat or the
 * list shifted.
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

/** Returns whether a page that ends at `end` is the last, by the total, or because it is not full. */
export function isLastPage({ items, total }: OptionPage, end: number, limit: number): boolean {
  return items.length === 0 || (total === undefined ? items.length < limit : end >= total);
}

/**
 * Does work that walks lists, and repeats it if a list shifted, so that no conclusion rests on a missed option. In the
 * last try only the order of the options is checked. Throws the errors of the work: a ListError if a list shifted each
 * time.
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

/**
 * Reads one list from a position on. `pick` selects what is retained of each option. Throws the ApiError of a page, and
 * a ListError if each walk failed.
 */
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
