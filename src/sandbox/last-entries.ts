import type { Operation } from "../spec/routes.ts";

/** Entries as they came, of which the oldest are forgotten. */
interface LastEntries<Entry> {
  add(entry: Entry): void;
  clear(): void;
  /** The newest first. */
  newestFirst(): Iterable<Entry>;
  /** How many were forgotten for room since the start or the last `clear`. */
  dropped(): number;
  /** An entry by its number; they are numbered from 1 on as they come. Undefined for one that is forgotten. */
  at(number: number): Entry | undefined;
  /** The numbers of the newest entry ever, and of the last one before the last `clear`; 0 where there is none. */
  newest(): number;
  cleared(): number;
}

/**
 * Keeps the last `most` entries, or the last `mostLetters` letters of them, the smaller number of the two, and at least
 * one.
 */
export function ringBuffer<Entry>({
  most,
  mostLetters,
  lettersOf,
}: {
  readonly most: number;
  readonly mostLetters: number;
  /** About how much room an entry takes; the same whenever it is asked for. */
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
  const kept = ringBuffer<RequestEntry>({
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
