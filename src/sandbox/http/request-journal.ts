import type { Operation } from "../../spec/routes.ts";
import { lastEntries } from "../last-entries.ts";

/** One request that arrived at the management API or the event API. */
export interface RequestEntry {
  readonly at: string;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** The status answered; null where the connection was reset or no answer came. */
  status: number | null;
  /** Whether the operation was carried out; items may have failed in it all the same. */
  applied: boolean;
  /** The kind of the fault that struck it, where one did. */
  fault?: string;
  readonly bytes: number;
  /** Entries of `items` or `ids`; null where the body has neither. */
  items: number | null;
}

/** The last requests, oldest first, and how many older ones were dropped. */
export interface RequestJournal {
  /** Notes a request; what becomes of it is filled in as it is answered. */
  add(entry: RequestEntry): void;
  clear(): void;
  read(): { readonly requests: readonly RequestEntry[]; readonly dropped: number };
}

/** How many requests are remembered, and how many letters of paths, which may be as long as a header. */
const REMEMBERED = 10_000;
const REMEMBERED_LETTERS = 2 * 1_048_576;

/** Makes an empty journal of requests. */
export function requestJournal(): RequestJournal {
  const kept = lastEntries<RequestEntry>({
    most: REMEMBERED,
    mostLetters: REMEMBERED_LETTERS,
    lettersOf: ({ path }) => path.length,
  });
  return {
    add: kept.add,
    clear: kept.clear,
    read: () => ({ requests: [...kept.newestFirst()].reverse(), dropped: kept.dropped() }),
  };
}
