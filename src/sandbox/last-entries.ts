import type { Operation } from "../spec/routes.ts";

/** Entries in order of arrival; the oldest are dropped. */
export interface LastEntries<Entry> {
  add(entry: Entry): void;
  clear(): void;
  /** Returns the entries, newest first. */
  newestFirst(): Iterable<Entry>;
  /** Returns the number of entries dropped for space since the start or the last `clear`. */
  dropped(): number;
  /** Returns an entry by its number; entries are numbered from 1 as they arrive. Undefined if it was dropped. */
  at(number: number): Entry | undefined;
  /** Returns the number of the newest entry ever, and of the last one before the last `clear`; 0 if there is none. */
  newest(): number;
  cleared(): number;
}

/**
 * Keeps the last `most` entries, or the last `mostLetters` characters of them, whichever is less, but at least one
 * entry.
 */
export function ringBuffer<Entry>({
  most,
  mostLetters,
  lettersOf,
}: {
  readonly most: number;
  readonly mostLetters: number;
  /** Returns the approximate size of an entry. It must not change. */
  readonly lettersOf: (entry: Entry) => number;
}): LastEntries<Entry> {
  let ring: (Entry | undefined)[] = [];
  let oldest = 0;
  let arrived = 0;
  let cleared = 0;
  let letters = 0;

  function dropOldest(): void {
    const entry = ring[oldest % most];
    if (entry !== undefined) letters -= lettersOf(entry);
    ring[oldest % most] = undefined;
    oldest += 1;
  }

  return {
    add(entry) {
      if (arrived - oldest >= most) dropOldest();
      ring[arrived % most] = entry;
      arrived += 1;
      letters += lettersOf(entry);
      while (letters > mostLetters && arrived - oldest > 1) dropOldest();
    },
    clear() {
      ring = [];
      oldest = arrived;
      cleared = arrived;
      letters = 0;
    },
    *newestFirst() {
      for (let position = arrived - 1; position >= oldest; position -= 1) {
        const entry = ring[position % most];
        if (entry !== undefined) yield entry;
      }
    },
    dropped: () => oldest - cleared,
    at: (number) => (number > oldest && number <= arrived ? ring[(number - 1) % most] : undefined),
    newest: () => arrived,
    cleared: () => cleared,
  };
}

/** A request to the management API or the event API. */
export interface RequestEntry {
  readonly at: string;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** The status of the answer; null if the connection was reset or there was no answer. */
  status: number | null;
  /** Whether the operation was applied. Single items may have failed in it. */
  applied: boolean;
  /** The kind of the fault that the request triggered, if any. */
  fault?: string;
  readonly bytes: number;
  /** The number of entries in `items` or `ids`; null if the body has neither. */
  items: number | null;
}

/** The last requests, oldest first, and the number of older ones that were dropped. */
export interface RequestJournal extends Pick<LastEntries<RequestEntry>, "add" | "clear"> {
  read(): { readonly requests: readonly RequestEntry[]; readonly dropped: number };
}

/** The maximum number of stored requests, and of characters of their paths, which may be as long as a header. */
const REMEMBERED = 10_000;
const REMEMBERED_LETTERS = 2 * 1_048_576;

/** Creates an empty journal of requests. */
export function requestJournal(): RequestJournal {
  const kept = ringBuffer<RequestEntry>({
    most: REMEMBERED,
    mostLetters: REMEMBERED_LETTERS,
    lettersOf: ({ path }) => path.length,
  });
  return {
    ...kept,
    read: () => ({ requests: [...kept.newestFirst()].reverse(), dropped: kept.dropped() }),
  };
}
