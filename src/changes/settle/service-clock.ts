import { CLOCKS_APART_MS } from "../../spec/ulid.ts";

/**
 * A reading of the service's clock. It showed a time from `from` to `to`, between `sentAt` and `receivedAt` (our
 * clock).
 */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

export type Order = "before" | "after" | "unclear";

/**
 * Readings that contradict each other by less than this, in milliseconds, count as consistent, because servers update
 * the header `Date` with a delay.
 */
const NOISE_MS = 20;

/** The maximum width of a range whose middle is a good estimate, in milliseconds: about the latency of one request. */
const NARROW_MS = 50;

/** Readings older than this, in milliseconds, are discarded, because clocks drift apart. */
const STALE_MS = 5 * 60_000;

interface Range {
  readonly lowest: number;
  readonly highest: number;
}

const ANYTHING: Range = { lowest: Number.NEGATIVE_INFINITY, highest: Number.POSITIVE_INFINITY };

/**
 * Estimates the difference between the service's clock and ours, in milliseconds (theirs minus ours), to compare the
 * times inside IDs with our times. Each reading narrows the range of possible differences. IDs that our own requests
 * have just created are proof. The header `Date` may come from another machine, such as a gateway, so it counts only
 * while it agrees with these IDs. It then narrows how far ahead the service can be, which proves that an object is
 * newer. It never proves that an object is older: if it is slightly ahead, objects of this run would look older than
 * their request.
 */
export class ServerClock {
  #ids = ANYTHING;
  #dates = ANYTHING;
  /** Whether the header `Date` ever contradicted the IDs. */
  #isOtherClock = false;
  #readAt = Number.NEGATIVE_INFINITY;

  /** Adds a reading of the header `Date` of an answer. The header has whole seconds. */
  observe({ from, to, sentAt, receivedAt }: ClockReading): void {
    this.#forgetBefore(receivedAt);
    this.#dates = narrowed(this.#dates, { lowest: from - receivedAt, highest: to - sentAt });
    this.#compare();
  }

  /** Adds the times inside IDs, in milliseconds, that one of our requests has just created. */
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

  /** Adds the time inside an ID that an answer contained. Its object already existed when the answer arrived. */
  observeSeen(madeAt: number, receivedAt: number): void {
    this.#forgetBefore(receivedAt);
    this.#ids = narrowed(this.#ids, { ...ANYTHING, lowest: madeAt - receivedAt });
    this.#compare();
  }

  /** Returns whether a time of the service is before or after a time of ours, as far as the readings prove it. */
  order(theirs: number, ours: number): Order {
    if (theirs < ours + this.#ids.lowest) return this.#mayBeSetBack() ? "unclear" : "before";
    if (theirs >= ours + this.#known().highest) return "after";
    return "unclear";
  }

  /**
   * Returns whether another reading of the header `Date` can show that a time of the service is after ours, which is
   * unclear so far.
   */
  mayShowAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return this.#isCompared() && theirs >= ours + lowest && theirs < ours + highest;
  }

  /**
   * Returns whether a time of the service is probably after ours: the range of possible differences is narrow, and its
   * middle puts the time after ours.
   */
  isLikelyAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return highest - lowest <= NARROW_MS && theirs >= ours + (lowest + highest) / 2;
  }

  /**
   * Returns how long to wait, in milliseconds, before the header `Date` is read to find out whether the difference is
   * below `difference`. After this wait, a clock that is further ahead shows the next full second.
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

  /**
   * Returns whether the header `Date` is far behind the IDs. The service's clock may then have been set back after
   * these IDs were created.
   */
  #mayBeSetBack(): boolean {
    return this.#dates.highest < this.#ids.lowest - CLOCKS_APART_MS;
  }

  /** Returns whether the header `Date` counts: it agrees with IDs that our own requests created. */
  #isCompared(): boolean {
    return Number.isFinite(this.#ids.highest) && !this.#isOtherClock;
  }

  #known(): Range {
    return (this.#isCompared() ? common(this.#ids, this.#dates) : undefined) ?? this.#ids;
  }
}

/** Returns the intersection of two ranges. If there is none, a clock was set, and the newer reading counts. */
function narrowed(known: Range, reading: Range): Range {
  return common(known, reading) ?? reading;
}

/** Returns the intersection of two ranges, or the small gap between them. Undefined if the gap is too large. */
function common(one: Range, other: Range): Range | undefined {
  const lowest = Math.max(one.lowest, other.lowest);
  const highest = Math.min(one.highest, other.highest);
  if (lowest - highest > NOISE_MS) return undefined;
  return { lowest: Math.min(lowest, highest), highest: Math.max(lowest, highest) };
}
