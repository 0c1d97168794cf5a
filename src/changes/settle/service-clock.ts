import { CLOCKS_APART_MS } from "../../spec/names-and-contexts.ts";

/** The service showed a time from `from` to `to` while our clock went from `sentAt` to `receivedAt`. */
export interface ClockReading {
  readonly from: number;
  readonly to: number;
  readonly sentAt: number;
  readonly receivedAt: number;
}

export type Order = "before" | "after" | "unclear";

/** Contradictions of fewer milliseconds than this are ignored, because servers update the header `Date` late. */
const NOISE_MS = 20;

/** If a range is narrower than this many milliseconds (about one request), its middle is a good estimate. */
const NARROW_MS = 50;

/** Readings older than this many milliseconds are discarded, because clocks drift apart. */
const STALE_MS = 5 * 60_000;

interface Range {
  readonly lowest: number;
  readonly highest: number;
}

const ANYTHING: Range = { lowest: Number.NEGATIVE_INFINITY, highest: Number.POSITIVE_INFINITY };

/**
 * Estimates the difference between the service's clock and ours (theirs minus ours, in milliseconds), so that times in
 * IDs can be compared with our times. Each reading narrows the range of the difference. IDs that our own requests
 * created are proof. The header `Date` may come from another machine, so it counts only while it agrees with these IDs.
 * It limits how far the service can be ahead. This can prove that an object is newer than a request, but never that it
 * is older.
 */
export class ServerClock {
  #ids = ANYTHING;
  #dates = ANYTHING;
  /** Whether the header `Date` has contradicted the IDs. */
  #isOtherClock = false;
  #readAt = Number.NEGATIVE_INFINITY;

  /** Adds a reading from the header `Date`, which has whole seconds. */
  observe({ from, to, sentAt, receivedAt }: ClockReading): void {
    this.#forgetBefore(receivedAt);
    this.#dates = narrowed(this.#dates, { lowest: from - receivedAt, highest: to - sentAt });
    this.#compare();
  }

  /** Adds the times, in milliseconds, in IDs that our own request created. */
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

  /** Adds the time in an ID of any answer. */
  observeSeen(madeAt: number, receivedAt: number): void {
    this.#forgetBefore(receivedAt);
    this.#ids = narrowed(this.#ids, { ...ANYTHING, lowest: madeAt - receivedAt });
    this.#compare();
  }

  /** Compares a time of the service with one of ours. Returns "unclear" if the readings prove nothing. */
  order(theirs: number, ours: number): Order {
    if (theirs < ours + this.#ids.lowest) return this.#mayBeSetBack() ? "unclear" : "before";
    if (theirs >= ours + this.#known().highest) return "after";
    return "unclear";
  }

  /** Returns whether another reading of the header `Date` can prove that a time of the service is after ours. */
  mayShowAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return this.#isCompared() && theirs >= ours + lowest && theirs < ours + highest;
  }

  /** Returns whether a time of the service is probably after ours. The range must be narrow; its middle decides. */
  isLikelyAfter(theirs: number, ours: number): boolean {
    const { lowest, highest } = this.#known();
    return highest - lowest <= NARROW_MS && theirs >= ours + (lowest + highest) / 2;
  }

  /** Returns the milliseconds until the header `Date` can show whether the clocks differ by less than `difference`. */
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

  /** Returns whether the header `Date` is far behind the IDs. A clock of the service may then have been set back. */
  #mayBeSetBack(): boolean {
    return this.#dates.highest < this.#ids.lowest - CLOCKS_APART_MS;
  }

  /** Returns whether the header `Date` was compared with IDs that our own requests created, and agrees with them. */
  #isCompared(): boolean {
    return Number.isFinite(this.#ids.highest) && !this.#isOtherClock;
  }

  #known(): Range {
    return (this.#isCompared() ? common(this.#ids, this.#dates) : undefined) ?? this.#ids;
  }
}

/** Returns the intersection of two ranges. If there is none, a clock was set, and the newer reading is returned. */
function narrowed(known: Range, reading: Range): Range {
  return common(known, reading) ?? reading;
}

/** Returns the intersection of two ranges. If there is only a small gap between them, returns the gap. */
function common(one: Range, other: Range): Range | undefined {
  const lowest = Math.max(one.lowest, other.lowest);
  const highest = Math.min(one.highest, other.highest);
  if (lowest - highest > NOISE_MS) return undefined;
  return { lowest: Math.min(lowest, highest), highest: Math.max(lowest, highest) };
}
