import { isApiError, ListError, RejectedError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import type { ContentsStore, SeenOption } from "../runs/backend.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionRecord } from "../spec/records.ts";
import { listPages, steadily } from "./pages.ts";
import { pagesAhead, sideBySide } from "./side-by-side.ts";

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

/** Where contents come from: `store` absent, everything is read; `fresh`, everything is read and kept. */
export interface ContentsSource {
  readonly targetingId: string;
  readonly store?: ContentsStore | undefined;
  readonly fresh?: boolean | undefined;
}

/**
 * A record as old as this when its Context IDs were read cannot have changed within the same tick of `updatedAt` and be
 * taken for unchanged: in milliseconds, against the service's clock.
 */
const SETTLED_MS = 60_000;

/**
 * Every Context ID of an option whose record was read just now: those that were kept, where its record is the same, or
 * read now; `withoutRead` is called where that was not needed. That `updatedAt` changes with Context IDs is an assumption. Throws what `readOptionContents` throws.
 */
export async function contextIdsOf(
  api: ManagementApi,
  option: OptionRecord,
  { targetingId, store, fresh = false }: ContentsSource,
  signal: AbortSignal,
  withoutRead: () => void = () => {},
): Promise<readonly string[]> {
  const seen = seenOption(targetingId, option);
  const kept = fresh || seen === undefined ? undefined : await store?.get(seen);
  if (kept !== undefined) {
    withoutRead();
    return kept;
  }
  const { option: read, contexts, serverTime = 0 } = await readOptionContents(api, option._id, signal);
  const now = seenOption(targetingId, read);
  const isSettled = now !== undefined && Date.parse(now.updatedAt) < serverTime - SETTLED_MS;
  if (isSettled && now.contextCount === contexts.length) await store?.put(now, contexts);
  return contexts;
}

function seenOption(targetingId: string, { _id, updatedAt, contextCount }: OptionRecord): SeenOption | undefined {
  if (updatedAt === undefined || contextCount === undefined) return undefined;
  return { targetingId, optionId: _id, updatedAt, contextCount };
}

/** How many options are looked into one by one where nothing speaks for another writer. */
const LOOKED_INTO = 100;

interface Expected {
  readonly _id: string;
  readonly contexts: readonly string[];
}

interface Compared {
  readonly different: ReadonlySet<string>;
  readonly unread: ReadonlySet<string>;
}

/**
 * Tells which options hold other Context IDs than expected, and which could not be read. Lists tell how many each has,
 * not which: where `isAlone`, so that nothing speaks for another writer, a hundred are looked into, spread over all, and
 * the right number has to do for the others; but once one of them differs, every one is looked into.
 */
export async function compareContexts(
  api: ManagementApi,
  expected: readonly Expected[],
  { isAlone, signal }: { readonly isAlone: boolean; readonly signal: AbortSignal },
): Promise<Compared> {
  const step = isAlone ? Math.max(1, Math.ceil(expected.length / LOOKED_INTO)) : 1;
  const [different, unread] = [new Set<string>(), new Set<string>()];
  const compare = async ({ _id, contexts }: Expected): Promise<undefined> => {
    try {
      const held = new Set((await readOptionContents(api, _id, signal)).contexts);
      if (contexts.some((each) => !held.has(each))) different.add(_id);
    } catch (thrown) {
      if (!isApiError(thrown) && !signal.aborted) throw thrown;
      // What is gone by now cannot be looked at later either.
      if (isApiError(thrown) && thrown.effect === "rejected") different.add(_id);
      else unread.add(_id);
    }
  };
  const part = (isFirst: boolean) => expected.filter((_, at) => (at % step === 0) === isFirst);
  await mapConcurrently(part(true), compare);
  if (different.size > 0) await mapConcurrently(part(false), compare);
  return { different, unread };
}

/** What became of looking for options by their IDs: each is in one of the two. */
export interface FoundOptions {
  readonly found: Map<string, OptionRecord>;
  /** Those of which the service says that there are none. */
  readonly missing: Map<string, RejectedError>;
}

/** How many options are read alone, before lists are tried with what they tell. The first one tells the most. */
const READ_ALONE = { first: 1, later: 8 } as const;

/**
 * Looks for options by their IDs with few reads. No route gives several options by ID, so that one is read alone and
 * tells its targeting and its group; the others are looked for in their lists, as long as that takes fewer reads than
 * reading each alone. What stands in no list is read alone, since only that proves that it is missing. Without Context
 * IDs. Throws the ApiError of a read that fails for another reason.
 */
export async function findOptions(
  api: ManagementApi,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<FoundOptions> {
  const search = new Search(api, ids, signal);
  for (let most: number = READ_ALONE.first; search.open.size > 0; most = READ_ALONE.later) {
    const read = await search.readAlone([...search.open].slice(0, most));
    for (const option of read) await search.lookAround(option);
  }
  return search;
}

/** Whether the service said that there is no such thing, rather than no such project or route. */
export function isMissing(thrown: unknown): thrown is RejectedError {
  const isBusiness = thrown instanceof RejectedError && thrown.kind === "business";
  return isBusiness && thrown.statusCode === 404 && thrown.errorCode !== "PROJECT_NOT_FOUND";
}

class Search implements FoundOptions {
  readonly found = new Map<string, OptionRecord>();
  readonly missing = new Map<string, RejectedError>();
  readonly open: Set<string>;
  readonly #api: ManagementApi;
  readonly #signal: AbortSignal;
  /** Targetings and groups whose lists were looked at. */
  readonly #listed = new Set<string>();

  constructor(api: ManagementApi, ids: readonly string[], signal: AbortSignal) {
    this.#api = api;
    this.#signal = signal;
    this.open = new Set(ids);
  }

  /** Reads options one by one; gives those that there are. */
  readAlone(ids: readonly string[]): Promise<readonly OptionRecord[]> {
    return mapConcurrently(ids, async (id) => {
      this.open.delete(id);
      try {
        const { option } = await this.#api.getOption(id, { limit: 1, offset: 0 }, { signal: this.#signal });
        this.found.set(id, option);
        return option;
      } catch (thrown) {
        if (!isMissing(thrown)) throw thrown;
        this.missing.set(id, thrown);
        return undefined;
      }
    });
  }

  /** Looks for the others in the lists that an option tells of: of its group, and of its targeting. */
  async lookAround({ targeting, parent }: OptionRecord): Promise<void> {
    if (targeting === undefined) return;
    if (typeof parent === "string") await this.#list(targeting, parent);
    for (const { _id, type, children = [] } of await this.#list(targeting)) {
      if (type === "collection" && children.some((id) => this.open.has(id))) await this.#list(targeting, _id);
    }
  }

  /**
   * Reads a list, once, while fewer pages are left of it than options are looked for; gives what was read. A list that is
   * gone, or whose pages repeat or shift, is read no further: what it does not tell is read alone.
   */
  async #list(targetingId: string, parent?: string): Promise<readonly OptionRecord[]> {
    const key = parent ?? targetingId;
    const read: OptionRecord[] = [];
    if (this.#listed.has(key)) return read;
    this.#listed.add(key);
    if (this.open.size < 2) return read;
    const list = { targetingId, parent, signal: this.#signal };
    const within = { targeting: targetingId, ...(parent !== undefined && { parent }) };
    try {
      for await (const { options, pagesLeft } of listPages(this.#api, list, { mayShift: true })) {
        for (const option of options) this.#take({ ...option, ...within });
        read.push(...options);
        if (pagesLeft >= this.open.size) break;
      }
    } catch (thrown) {
      if (!isMissing(thrown) && !(thrown instanceof ListError)) throw thrown;
    }
    return read;
  }

  /** A record that does not say how much it holds is no use: then the option is read alone. */
  #take(option: OptionRecord): void {
    if (option.contextCount !== undefined && this.open.delete(option._id)) this.found.set(option._id, option);
  }
}
