/** One look at the service's clock: between `sentAt` and `receivedAt` (ours) it showed a time from `from` to `to`. */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

export type Order = "before" | "after" | "unclear";

/** Servers renew the text of `Date` by a timer that may be late: readings that cross by less agree all the same. */
const NOISE_MS = 20;

/** A difference that is known this well, in milliseconds, is as good as its middle: about the way of one request. */
const NARROW_MS = 50;

/** Clocks drift apart: what was read longer before the next reading is forgotten. */
const STALE_MS = 5 * 60_000;

interface Range {
  readonly lowest: number;
  readonly highest: number;
}

const ANYTHING: Range = { lowest: Number.NEGATIVE_INFINITY, highest: Number.POSITIVE_INFINITY };

/**
 * What is known about the difference between the service's clock and ours, in milliseconds (theirs minus ours). Each
 * reading narrows it. The times inside IDs are what is compared. The header `Date` may come from another machine, such
 * as a gateway: until it was compared with the IDs of something that a request of ours has just made, it proves nothing,
 * and once it excludes what these IDs show, it is of another clock. Where both agree, it narrows how far ahead the
 * service can be, which tells what is newer. What is older, IDs alone tell: a header that is ahead by less than the
 * comparison shows would make our own work look older than our request.
 */
export class ServerClock {
  #ids = ANYTHING;
  #dates = ANYTHING;
  /** The header `Date` was seen to exclude what IDs show. */
  #isOtherClock = false;
  #readAt = Number.NEGATIVE_INFINITY;

  /** Takes the header `Date` of an answer: whole seconds. */
  observe({ from, to, sentAt, receivedAt }: ClockReading): void {
    this.#forgetBefore(receivedAt);
    this.#dates = narrowed(this.#dates, { lowest: from - receivedAt, highest: to - sentAt });
    this.#compare();
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
    this.#compare();
  }

  /** Takes the time inside an ID that an answer named: what it belongs to had been made by then. */
  observeSeen(madeAt: number, receivedAt: number): void {
    this.#forgetBefore(receivedAt);
    this.#ids = narrowed(this.#ids, { ...ANYTHING, lowest: madeAt - receivedAt });
    this.#compare();
  }

  /** Whether a time of the service is before or after a time of ours, as far as the readings prove it. */
  order(theirs: number, ours: number): Order {
    if (theirs < ours + this.#ids.lowest) return "before";
    if (theirs >= ours + this.#known().highest) return "after";
    return "unclear";
  }

  /** Whether a further reading of the header `Date` may show that an unclear time of the service is after ours. */
  mayShowAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return this.#isCompared() && theirs >= ours + lowest && theirs < ours + highest;
  }

  /** Whether the middle of what is possible puts an unclear time after, where little else is possible. */
  isLikelyAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return highest - lowest <= NARROW_MS && theirs >= ours + (lowest + highest) / 2;
  }

  /**
   * How long to wait for the next reading of the header `Date`, in milliseconds from `now`, so that it tells whether the
   * difference is below `difference`: a clock that is further ahead shows the next second by then.
   */
  nextReadingIn(now: number, difference: number): number {
    if (!Number.isFinite(this.#dates.highest - this.#dates.lowest)) return 0;
    const theirs = now + difference;
    return Math.ceil(theirs / 1000) * 1000 - theirs;
  }

  #forgetBefore(now: number): void {
    if (now - this.#readAt > STALE_MS) [this.#ids, this.#dates, this.#isOtherClock] = [ANYTHING, ANYTHING, false];
    this.#readAt = now;
  }

  #compare(): void {
    this.#isOtherClock ||= common(this.#ids, this.#dates) === undefined;
  }

  /** Whether the header `Date` may count: it agrees with the IDs of what a request of ours has made. */
  #isCompared(): boolean {
    return Number.isFinite(this.#ids.highest) && !this.#isOtherClock;
  }

  #known(): Range {
    return (this.#isCompared() ? common(this.#ids, this.#dates) : undefined) ?? this.#ids;
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
