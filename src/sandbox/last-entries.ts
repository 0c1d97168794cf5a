import type { Operation } from "../spec/routes.ts";

/** A list that drops its oldest entries for space. Entries are numbered from 1. */
export interface LastEntries<Entry> {
  add(entry: Entry): void;
  clear(): void;
  newestFirst(): Iterable<Entry>;
  /** Returns how many entries were dropped since the start or the last `clear`. */
  dropped(): number;
  /** Returns the entry with this number; undefined if it was dropped. */
  at(number: number): Entry | undefined;
  /**
   * `newest` returns the number of the newest entry ever added. `cleared` returns what it was at the last `clear`. Both
   * return 0 at the start.
   */
  newest(): number;
  cleared(): number;
}

/**
 * Returns a list that holds the last `most` entries and at most `mostLetters` characters. It always holds at least the
 * newest entry.
 */
export function ringBuffer<Entry>({
  most,
  mostLetters,
  lettersOf,
}: {
  readonly most: number;
  readonly mostLetters: number;
  /** Returns the approximate size of an entry in characters. It must always be the same for one entry. */
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

export interface RequestEntry {
  readonly at: string;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** The HTTP status of the answer. Null until there is one, or if a fault prevented it. */
  status: number | null;
  /** Whether the operation was applied. In a bulk request single items may still have failed. */
  applied: boolean;
  /** The kind of the fault that the request triggered. */
  fault?: string;
  readonly bytes: number;
  /** The length of `items` or `ids` in the body; null if it has neither. */
  items: number | null;
}

/** The newest requests, oldest first. `dropped` counts older ones. */
export interface RequestJournal extends Pick<LastEntries<RequestEntry>, "add" | "clear"> {
  read(): { readonly requests: readonly RequestEntry[]; readonly dropped: number };
}

/**
 * At most this many requests are stored, and this many characters of their paths. A path may be as long as a header.
 */
const REMEMBERED = 10_000;
const REMEMBERED_LETTERS = 2 * 1_048_576;

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
