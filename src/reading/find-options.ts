import { ListError, RejectedError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import type { OptionRecord } from "../spec/records.ts";
import { mapConcurrently } from "./option-contents.ts";
import { listPages } from "./pages.ts";

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
  /** Those still looked for. */
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
