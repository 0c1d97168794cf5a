import { MEASURES } from "./weigh.ts";

/** How many neighbours are tried one by one before ever smaller ones are. */
const PROBES = 24;

/** Whether something has room for a weight. */
interface Fitting {
  fits(position: number): boolean;
}

/**
 * Weights that take most of the same limit, the heaviest first. What is taken is skipped, by chains that shorten as they
 * are walked, so that finding a size and taking it costs next to nothing however many there are.
 */
export class Shelf {
  /** Which limit. */
  readonly place: number;
  readonly #positions: readonly number[];
  readonly #shares: Float64Array;
  readonly #entries: ReadonlyMap<number, number>;
  readonly #next: Int32Array;
  #last: number;

  constructor(place: number, positions: readonly number[], shares: Float64Array) {
    this.place = place;
    this.#positions = positions;
    this.#shares = Float64Array.from(positions, (position) => shares[position] ?? 0);
    this.#entries = new Map(positions.map((position, entry) => [position, entry]));
    this.#next = Int32Array.from({ length: positions.length + 1 }, (_, entry) => entry);
    this.#last = positions.length - 1;
  }

  get size(): number {
    return this.#positions.length;
  }

  positionOf(entry: number): number {
    return this.#positions[entry] ?? 0;
  }

  share(entry: number): number {
    return this.#shares[entry] ?? 0;
  }

  /** The share of the lightest that is left. */
  leastShare(): number {
    while (this.#last > 0 && this.#next[this.#last] !== this.#last) this.#last -= 1;
    return this.share(this.#last);
  }

  /** Whether a weight is here and not taken. */
  holds(position: number): boolean {
    const entry = this.#entries.get(position);
    return entry !== undefined && this.#next[entry] === entry;
  }

  takePosition(position: number): void {
    const entry = this.#entries.get(position);
    if (entry !== undefined) this.take(entry);
  }

  take(entry: number): void {
    this.#next[entry] = entry + 1;
  }

  /** The first entry whose share is at most so much, taken or not. */
  firstAtMost(most: number): number {
    let low = 0;
    let high = this.#shares.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.share(middle) <= most + 1e-12) high = middle;
      else low = middle + 1;
    }
    return low;
  }

  /** The first entry from here on that is not taken. */
  following(from: number): number | undefined {
    let end = Math.min(from, this.size);
    while ((this.#next[end] ?? end) !== end) end = this.#next[end] ?? end;
    for (let at = Math.min(from, this.size); at !== end; ) {
      const then = this.#next[at] ?? end;
      this.#next[at] = end;
      at = then;
    }
    return end < this.size ? end : undefined;
  }

  /** The first entry from here on that fits. Neighbours are much alike: after some, ever smaller ones are tried. */
  fitting(from: number, into: Fitting): number | undefined {
    let stride = 1;
    let entry = this.following(from);
    for (let probe = 0; entry !== undefined; probe += 1) {
      if (into.fits(this.positionOf(entry))) return entry;
      if (probe >= PROBES) stride *= 2;
      entry = this.following(entry + stride);
    }
    return undefined;
  }

  /** One of middling size that fits. */
  middle(into: Fitting): number | undefined {
    return this.fitting(Math.floor(this.size / 2), into) ?? this.fitting(0, into);
  }
}

/** Puts the weights that are wanted on shelves, one for each limit. */
export function shelvesOf(
  shares: Float64Array,
  places: Uint8Array,
  wanted: (position: number) => boolean,
): readonly Shelf[] {
  const lists: number[][] = MEASURES.map(() => []);
  shares.forEach((_, position) => {
    if (wanted(position)) lists[places[position] ?? 0]?.push(position);
  });
  return lists.flatMap((positions, place) => {
    positions.sort((a, b) => (shares[b] ?? 0) - (shares[a] ?? 0) || a - b);
    return positions.length === 0 ? [] : new Shelf(place, positions, shares);
  });
}
