/** One look at the service's clock: between `sentAt` and `receivedAt` (ours) it showed a time from `from` to `to`. */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

/** The order of a time of the service and a time of ours. */
export type Order = "before" | "after" | "unclear";

/** Servers renew the text of `Date` by a timer that may be late: readings that cross by less agree all the same. */
const NOISE_MS = 20;

/** A difference that is known this well, in milliseconds, is as good as its middle: about the way of one request. */
const NARROW_MS = 50;

/** Clocks drift apart: what was read longer before the next reading is forgotten. */
const STALE_MS = 5 * 60_000;

/** What a difference of two clocks can be, in milliseconds. */
interface Range {
  readonly lowest: number;
  readonly highest: number;
}

const ANYTHING: Range = { lowest: Number.NEGATIVE_INFINITY, highest: Number.POSITIVE_INFINITY };

/**
 * What is known about the difference between the service's clock and ours, in milliseconds (theirs minus ours). Each
 * reading narrows it. Times inside IDs are what is compared; the header `Date` shows whole seconds of a clock that is
 * most often the same one, so that it narrows further, unless it excludes what the IDs show: then IDs count alone.
 */
export class ServerClock {
  #ids = ANYTHING;
  #dates = ANYTHING;
  #readAt = Number.NEGATIVE_INFINITY;

  /** Takes the header `Date` of an answer: whole seconds. */
  observe({ from, to, sentAt, receivedAt }: ClockReading): void {
    this.#forgetBefore(receivedAt);
    this.#dates = narrowed(this.#dates, { lowest: from - receivedAt, highest: to - sentAt });
  }

  /** Takes the times inside the IDs of what a request of ours has just made: milliseconds. */
  observeMade(times: readonly number[], sentAt: number, receivedAt: number): void {
    if (times.length === 0) return;
    this.#forgetBefore(receivedAt);
    let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const time of times) {
      first = Math.min(first, time);
      last = Math.max(last, time);
    }
    this.#ids = narrowed(this.#ids, { lowest: last - receivedAt, highest: first - sentAt });
  }

  /** Takes the time inside an ID that an answer named: what it belongs to had been made by then. */
  observeSeen(madeAt: number, receivedAt: number): void {
    this.#forgetBefore(receivedAt);
    this.#ids = narrowed(this.#ids, { ...ANYTHING, lowest: madeAt - receivedAt });
  }

  /** Whether a time of the service is before or after a time of ours, as far as the readings prove it. */
  order(theirs: number, ours: number): Order {
    const { lowest, highest } = this.#known();
    if (theirs < ours + lowest) return "before";
    if (theirs >= ours + highest) return "after";
    return "unclear";
  }

  /** Whether the middle of what is possible puts an unclear time after, where little else is possible. */
  isLikelyAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return highest - lowest <= NARROW_MS && theirs >= ours + (lowest + highest) / 2;
  }

  /**
   * When to take the next reading of the header `Date`, in milliseconds from `now`, so that it tells whether the
   * difference is below `difference`: a clock that is further ahead shows the next second by then. Undefined where the
   * header is of another clock than the IDs, so that no reading would tell.
   */
  nextReadingIn(now: number, difference: number): number | undefined {
    if (!Number.isFinite(this.#dates.highest - this.#dates.lowest)) return 0;
    if (common(this.#ids, this.#dates) === undefined) return undefined;
    const theirs = now + difference;
    return Math.ceil(theirs / 1000) * 1000 - theirs;
  }

  #forgetBefore(now: number): void {
    if (now - this.#readAt > STALE_MS) [this.#ids, this.#dates] = [ANYTHING, ANYTHING];
    this.#readAt = now;
  }

  #known(): Range {
    return common(this.#ids, this.#dates) ?? this.#ids;
  }
}

/** Two readings that exclude each other mean that a clock was set: only the later one counts. */
function narrowed(known: Range, reading: Range): Range {
  return common(known, reading) ?? reading;
}

/** What both ranges allow; where they nearly touch, what is between them. Undefined where they exclude each other. */
function common(one: Range, other: Range): Range | undefined {
  const lowest = Math.max(one.lowest, other.lowest);
  const highest = Math.min(one.highest, other.highest);
  if (lowest - highest > NOISE_MS) return undefined;
  return { lowest: Math.min(lowest, highest), highest: Math.max(lowest, highest) };
}
