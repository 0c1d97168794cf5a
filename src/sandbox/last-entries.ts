import type { Operation } from "../spec/routes.ts";

/** Holds the last `most` entries and at most `mostLetters` characters, but at least the newest entry. */
export function ringBuffer<Entry>({
  most,
  mostLetters,
  lettersOf,
}: {
  readonly most: number;
  readonly mostLetters: number;
  /** Returns the size of an entry, always the same for one entry. */
  readonly lettersOf: (entry: Entry) => number;
}) {
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
    add(entry: Entry): void {
      if (arrived - oldest >= most) dropOldest();
      ring[arrived % most] = entry;
      arrived += 1;
      letters += lettersOf(entry);
      while (letters > mostLetters && arrived - oldest > 1) dropOldest();
    },
    clear(): void {
      ring = [];
      oldest = arrived;
      cleared = arrived;
      letters = 0;
    },
    *newestFirst(): Iterable<Entry> {
      for (let position = arrived - 1; position >= oldest; position -= 1) {
        const entry = ring[position % most];
        if (entry !== undefined) yield entry;
      }
    },
    /** Returns how many entries were removed for space since the start or the last `clear`. */
    dropped: () => oldest - cleared,
    /** Returns an entry by its number, from 1. Undefined if the entry was removed. */
    at: (number: number): Entry | undefined =>
      number > oldest && number <= arrived ? ring[(number - 1) % most] : undefined,
    /**
     * Returns the number of the newest entry ever added; 0 at the start. `cleared` returns that number at the last
     * `clear`.
     */
    newest: () => arrived,
    cleared: () => cleared,
  };
}

export interface RequestEntry {
  readonly at: string;
  readonly operation: Operation;
  readonly method: string;
  readonly path: string;
  /** The status of the answer. Null until there is an answer, or if a fault prevented it. */
  status: number | null;
  /** Whether the request was applied. In an applied bulk request, single items may still have failed. */
  applied: boolean;
  fault?: string;
  readonly bytes: number;
  /** The length of `items` or `ids` in the body; null if it has neither. */
  items: number | null;
}

/** The maximum numbers of stored requests and of characters of their paths. A path may be as long as a header. */
const REMEMBERED = 10_000;
const REMEMBERED_LETTERS = 2 * 1_048_576;

export type RequestJournal = ReturnType<typeof requestJournal>;

export function requestJournal() {
  const kept = ringBuffer<RequestEntry>({
    most: REMEMBERED,
    mostLetters: REMEMBERED_LETTERS,
    lettersOf: ({ path }) => path.length,
  });
  return {
    ...kept,
    /** Returns the requests, oldest first. `dropped` counts older requests that were removed for space. */
    read: () => ({ requests: [...kept.newestFirst()].reverse(), dropped: kept.dropped() }),
  };
}
