/** One look at the service's clock: between `sentAt` and `receivedAt` (ours) it showed a time from `from` to `to`. */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** A difference known this well needs no more readings, in milliseconds. */
const FINE_ENOUGH_MS = 4;

/** How a time of the service lies to a time of ours. */
export type Order = "before" | "after" | "unclear";

/**
 * What is known about the difference between the service's clock and ours, in milliseconds. Each reading narrows it.
 * Times inside new ULIDs are finer than the header `Date`, and are what is compared, so they count alone once known.
 */
export class ServerClock {
  #lowest = Number.NEGATIVE_INFINITY;
  #highest = Number.POSITIVE_INFINITY;
  #fine = false;

  /** Takes the header `Date` of an answer: whole seconds. */
  observe(reading: ClockReading): void {
    if (!this.#fine) this.#narrow(reading);
  }

  /** Takes the time inside the ID of something that a request of ours has just made: milliseconds. */
  observeMade(madeAt: number, sentAt: number, receivedAt: number): void {
    if (!this.#fine) {
      this.#fine = true;
      this.#lowest = Number.NEGATIVE_INFINITY;
      this.#highest = Number.POSITIVE_INFINITY;
    }
    this.#narrow({ from: madeAt, to: madeAt, sentAt, receivedAt });
  }

  /** Whether a time of the service lies before or after a time of ours, as far as the readings tell. */
  order(theirs: number, ours: number): Order {
    if (theirs < ours + this.#lowest) return "before";
    if (theirs >= ours + this.#highest) return "after";
    return "unclear";
  }

  /** Whether, where that is unclear, the middle of what is possible puts it after: not so when nothing is known. */
  isLikelyAfter(theirs: number, ours: number): boolean {
    return theirs >= ours + (this.#lowest + this.#highest) / 2;
  }

  /**
   * When to take the next reading of the header `Date`, in milliseconds from `now`, so that it halves what is open: the
   * second that it shows then tells on which side of the middle the difference lies. Undefined when none would help.
   */
  nextReadingIn(now: number): number | undefined {
    const open = this.#highest - this.#lowest;
    if (this.#fine || open <= FINE_ENOUGH_MS) return undefined;
    if (!Number.isFinite(open)) return 0;
    const theirs = now + (this.#lowest + this.#highest) / 2;
    return Math.ceil(theirs / 1000) * 1000 - theirs;
  }

  /** Two readings that exclude each other mean that a clock was set: only the later one counts. */
  #narrow({ from, to, sentAt, receivedAt }: ClockReading): void {
    const lowest = from - receivedAt;
    const highest = to - sentAt;
    const agree = lowest <= this.#highest && highest >= this.#lowest;
    this.#lowest = agree ? Math.max(lowest, this.#lowest) : lowest;
    this.#highest = agree ? Math.min(highest, this.#highest) : highest;
  }
}
