import { isApiError, ListError, orError, RejectedError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { defined } from "../platform/by-key.ts";
import type { ContentsStore, SeenOption } from "../runs/backend.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionRecord } from "../spec/records.ts";
import { listPages, untilStable } from "./pages.ts";
import { pagesAhead, sideBySide } from "./side-by-side.ts";

export interface OptionContents {
  readonly option: OptionRecord;
  readonly contexts: readonly string[];
  readonly serverTime?: number | undefined;
}

/** Reads an option with all Context IDs (management-api 8.1). Throws a ListError if it changes during every attempt. */
export function readOptionContents(api: ManagementApi, optionId: string, signal: AbortSignal): Promise<OptionContents> {
  return untilStable(({ totalMayChange: mayBeShort = false }) => readOnce(api, optionId, { signal, mayBeShort }));
}

/**
 * Reads an option with its Context IDs. Throws a ListError if the option changes during the reading, or if the service
 * returns fewer IDs than the option's count says. With `mayBeShort`, fewer IDs are accepted.
 */
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
  return { option, contexts, serverTime };
}

function isChanged(before: OptionRecord, now: OptionRecord): boolean {
  return before.contextCount !== now.contextCount || before.updatedAt !== now.updatedAt;
}

/** Calls `map` for some items at a time. Returns the results in order, without those that are undefined. */
export async function mapConcurrently<From, To>(
  list: readonly From[],
  map: (from: From) => Promise<To | undefined>,
): Promise<readonly To[]> {
  const values: To[] = [];
  for await (const { value } of sideBySide({ source: () => list, map })) if (value !== undefined) values.push(value);
  return values;
}

/**
 * Where Context IDs are read: from `store` if it has them, otherwise from the service. With `fresh`, always from the
 * service. What was read from the service is stored, unless the option changed in the last minute (`SETTLED_MS`).
 */
export interface ContentsSource {
  readonly targetingId: string;
  readonly store?: ContentsStore | undefined;
  readonly fresh?: boolean | undefined;
}

/**
 * Context IDs are stored only if their option was last changed at least this many milliseconds ago. An option that was
 * changed more recently may change again without a new `updatedAt`.
 */
const SETTLED_MS = 60_000;

/**
 * Returns the Context IDs of an option whose record was just read. If they are stored for exactly this record and not
 * `fresh`, sends no request and calls `withoutRead`.
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

const COMPARED_SAMPLE_SIZE = 100;

interface Expected {
  readonly _id: string;
  readonly contexts: readonly string[];
}

/**
 * Compares options with their expected Context IDs. `different`: options that lack an expected Context ID, or that the
 * service refuses to return. `unread`: options that could not be read for another reason. If no other writer seems to
 * be active (`isAlone`), at most 100 options are read first, and the others only if one of these differs.
 */
export async function compareContexts(
  api: ManagementApi,
  expected: readonly Expected[],
  { isAlone, signal }: { readonly isAlone: boolean; readonly signal: AbortSignal },
) {
  const step = isAlone ? Math.max(1, Math.ceil(expected.length / COMPARED_SAMPLE_SIZE)) : 1;
  const different = new Set<string>();
  const unread = new Set<string>();
  const compare = async ({ _id, contexts }: Expected): Promise<undefined> => {
    try {
      const held = new Set((await readOptionContents(api, _id, signal)).contexts);
      if (contexts.some((each) => !held.has(each))) different.add(_id);
    } catch (thrown) {
      if (!isApiError(thrown) && !signal.aborted) throw thrown;
      if (isApiError(thrown) && thrown.effect === "rejected") different.add(_id);
      else unread.add(_id);
    }
  };
  const part = (isFirst: boolean) => expected.filter((_, at) => (at % step === 0) === isFirst);
  await mapConcurrently(part(true), compare);
  if (different.size > 0) await mapConcurrently(part(false), compare);
  return { different, unread };
}

/** How many options are read individually before their lists are searched: in the first round, and in later ones. */
const READ_ALONE = { first: 1, later: 8 } as const;

/**
 * Finds options by ID with few requests. First reads one option, whose record has the IDs of its targeting and group.
 * Then searches these for the other options. Repeats this for those that are left, with up to 8 options at a time.
 */
export async function findOptions(
  api: ManagementApi,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Pick<Search, "found" | "missing">> {
  const search = new Search(api, ids, signal);
  for (let most: number = READ_ALONE.first; search.open.size > 0; most = READ_ALONE.later) {
    const read = await search.readAlone([...search.open].slice(0, most));
    for (const option of read) await search.lookAround(option);
  }
  return search;
}

/** Returns whether an error says that the object does not exist. False if the project or the route does not exist. */
export function isMissing(thrown: unknown): thrown is RejectedError {
  const isBusiness = thrown instanceof RejectedError && thrown.kind === "business";
  return isBusiness && thrown.statusCode === 404 && thrown.errorCode !== "PROJECT_NOT_FOUND";
}

class Search {
  readonly found = new Map<string, OptionRecord>();
  readonly missing = new Map<string, RejectedError>();
  readonly open: Set<string>;
  readonly #api: ManagementApi;
  readonly #signal: AbortSignal;
  readonly #listed = new Set<string>();

  constructor(api: ManagementApi, ids: readonly string[], signal: AbortSignal) {
    this.#api = api;
    this.#signal = signal;
    this.open = new Set(ids);
  }

  readAlone(ids: readonly string[]): Promise<readonly OptionRecord[]> {
    return mapConcurrently(ids, async (id) => {
      this.open.delete(id);
      const options = { signal: this.#signal };
      const read = await orError(isMissing, this.#api.getOption(id, { limit: 1, offset: 0 }, options));
      if (read instanceof Error) this.missing.set(id, read);
      else this.found.set(id, read.option);
      return this.found.get(id);
    });
  }

  /** Searches the targeting and group of a found option, and groups that contain one of the remaining IDs. */
  async lookAround({ targeting, parent }: OptionRecord): Promise<void> {
    if (targeting === undefined) return;
    if (typeof parent === "string") await this.#list(targeting, parent);
    for (const { _id, type, children = [] } of await this.#list(targeting)) {
      if (type === "collection" && children.some((id) => this.open.has(id))) await this.#list(targeting, _id);
    }
  }

  /**
   * Takes wanted options from a list, page by page. Stops as soon as reading the remaining options one by one would not
   * need more requests, and if the list no longer exists or a page is repeated. Returns what was read: nothing if the
   * list was read before or at most one option is wanted.
   */
  async #list(targetingId: string, parent?: string): Promise<readonly OptionRecord[]> {
    const read: OptionRecord[] = [];
    if (this.#listed.has(parent ?? targetingId)) return read;
    this.#listed.add(parent ?? targetingId);
    if (this.open.size < 2) return read;
    const list = { targetingId, parent, signal: this.#signal };
    const within = { targeting: targetingId, ...defined({ parent }) };
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

  #take(option: OptionRecord): void {
    if (option.contextCount !== undefined && this.open.delete(option._id)) this.found.set(option._id, option);
  }
}
