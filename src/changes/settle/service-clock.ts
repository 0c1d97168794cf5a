import { CLOCKS_APART_MS } from "../../spec/ulid.ts";

/** A reading of the service's clock: between `sentAt` and `receivedAt` (our clock) it showed `from` to `to`. */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

export type Order = "before" | "after" | "unclear";

/**
 * Readings that contradict each other by less than this, in milliseconds, count as consistent: servers refresh `Date`
 * late.
 */
const NOISE_MS = 20;

/** The maximum width of a range, in milliseconds, whose middle is a good estimate: the latency of one request. */
const NARROW_MS = 50;

/** The age in milliseconds from which readings are discarded, because clocks drift apart. */
const STALE_MS = 5 * 60_000;

interface Range {
  readonly lowest: number;
  readonly highest: number;
}

const ANYTHING: Range = { lowest: Number.NEGATIVE_INFINITY, highest: Number.POSITIVE_INFINITY };

/**
 * The known difference between the service's clock and ours, in milliseconds (theirs minus ours), which each reading
 * narrows. It serves to compare times inside IDs with our times. The header `Date` may come from another machine, such
 * as a gateway, so it proves nothing before it agrees with IDs that our requests have just created. Then it narrows how
 * far ahead the service can be, which proves what is newer. Only IDs prove what is older: with a header that is
 * slightly ahead, our own work would look older than our request.
 */
export class ServerClock {
  #ids = ANYTHING;
  #dates = ANYTHING;
  /** Whether the header `Date` contradicted the IDs. */
  #isOtherClock = false;
  #readAt = Number.NEGATIVE_INFINITY;

  /** Adds a reading of an answer's header `Date`, which has whole seconds. */
  observe({ from, to, sentAt, receivedAt }: ClockReading): void {
    this.#forgetBefore(receivedAt);
    this.#dates = narrowed(this.#dates, { lowest: from - receivedAt, highest: to - sentAt });
    this.#compare();
  }

  /** Adds the times, in milliseconds, inside the IDs that one of our requests has just created. */
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

  /** Adds the time inside an ID in an answer: its object had been created by then. */
  observeSeen(madeAt: number, receivedAt: number): void {
    this.#forgetBefore(receivedAt);
    this.#ids = narrowed(this.#ids, { ...ANYTHING, lowest: madeAt - receivedAt });
    this.#compare();
  }

  /** Returns whether a time of the service is before or after a time of ours, if the readings prove it. */
  order(theirs: number, ours: number): Order {
    if (theirs < ours + this.#ids.lowest) return this.#mayBeSetBack() ? "unclear" : "before";
    if (theirs >= ours + this.#known().highest) return "after";
    return "unclear";
  }

  /**
   * Returns whether a further reading of the header `Date` may show that an unclear time of the service is after ours.
   */
  mayShowAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return this.#isCompared() && theirs >= ours + lowest && theirs < ours + highest;
  }

  /**
   * Returns whether an unclear time is probably after ours: the range of differences is narrow, and its middle says so.
   */
  isLikelyAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return highest - lowest <= NARROW_MS && theirs >= ours + (lowest + highest) / 2;
  }

  /**
   * Returns the wait in milliseconds until a reading of the header `Date` can show whether the difference is below
   * `difference`: a clock that is further ahead then shows the next second.
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
   * Returns whether the header `Date` is far behind the IDs: the service's clock may have been set back since they were
   * made.
   */
  #mayBeSetBack(): boolean {
    return this.#dates.highest < this.#ids.lowest - CLOCKS_APART_MS;
  }

  /** Returns whether the header `Date` may be used: it agrees with the IDs that one of our requests created. */
  #isCompared(): boolean {
    return Number.isFinite(this.#ids.highest) && !this.#isOtherClock;
  }

  #known(): Range {
    return (this.#isCompared() ? common(this.#ids, this.#dates) : undefined) ?? this.#ids;
  }
}

/** Returns the intersection of two ranges. If they exclude each other, a clock was set, and the later one counts. */
function narrowed(known: Range, reading: Range): Range {
  return common(known, reading) ?? reading;
}

/** Returns the intersection of two ranges, or the gap if they nearly touch. Undefined if they exclude each other. */
function common(one: Range, other: Range): Range | undefined {
  const lowest = Math.max(one.lowest, other.lowest);
  const highest = Math.min(one.highest, other.highest);
  if (lowest - highest > NOISE_MS) return undefined;
  return { lowest: Math.min(lowest, highest), highest: Math.max(lowest, highest) };
}
