import type { Operation } from "../spec/routes.ts";

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

/** How many requests are remembered. */
const REMEMBERED = 10_000;

/** The last requests, oldest first, and how many older ones were dropped. */
export interface RequestJournal {
  add(entry: RequestEntry): void;
  clear(): void;
  read(): { readonly requests: readonly RequestEntry[]; readonly dropped: number };
}

/** Makes an empty journal of requests. */
export function requestJournal(): RequestJournal {
  let entries: RequestEntry[] = [];
  let dropped = 0;
  return {
    add(entry) {
      entries.push(entry);
      if (entries.length < REMEMBERED * 2) return;
      dropped += REMEMBERED;
      entries = entries.slice(REMEMBERED);
    },
    clear() {
      entries = [];
      dropped = 0;
    },
    read() {
      const excess = Math.max(0, entries.length - REMEMBERED);
      return { requests: entries.slice(excess), dropped: dropped + excess };
    },
  };
}
