import type { Clock } from "../platform/clock.ts";
import { type Fence, HeldBackError } from "../platform/fence.ts";

/**
 * The maximum time, on either clock, between the clock readings that a request was announced with and its last bytes,
 * in milliseconds.
 */
export const SEND_WINDOW_MS = 2000;
/**
 * How long a process waits after it took over a lease from a process that may still run, in milliseconds. After that,
 * the other process cannot send any request.
 */
const TAKE_OVER_WAIT_MS = SEND_WINDOW_MS + 500;

/**
 * A lease that was renewed within this time, in milliseconds, counts as held for checks that no request depends on. It
 * can be taken over only after it was not renewed for far longer.
 */
export const RECENT_MS = 100;

/**
 * The readings of both clocks from before a request was announced. The monotonic clock may not count the time of a
 * suspended machine, and the wall clock can be set.
 */
export interface Intent {
  readonly monotonic: number;
  /** Milliseconds since 1970. */
  readonly wall: number;
  /** Whether the run was asked to stop before the announcement was durable. Absent if unknown. */
  readonly stopAsked?: boolean;
}

/** The right of this process to send requests, as long as it holds a lease. */
export interface Turn {
  /** Increases with every new holder of the lease. */
  readonly epoch: bigint;
  /** Resolves when no request of the previous holder can be sent any more. Rejects with the signal's reason. */
  settled(signal?: AbortSignal): Promise<void>;
  /**
   * Reads both clocks, renews the lease, and verifies that this holder still has it. Waits first until no request of
   * the previous holder can be sent any more. Throws a LeaseLostError if another process holds the lease.
   */
  renew(): Promise<Intent>;
  /** Throws a HeldBackError if the lease is known to be lost, or if the readings are too old. */
  mayLeave(intent: Intent): void;
  /** Aborted as soon as this process notices that the lease is lost. */
  readonly lost: AbortSignal;
}

/** A lease that this process holds until it releases it. */
export interface Lease extends Turn {
  /** Whether the lease was taken from a holder that may still be alive and write. */
  readonly isTakenOver: boolean;
  /**
   * Verifies that the lease is still held. A renewal within the last `recentMs` milliseconds is enough. Throws a
   * LeaseLostError if it is lost.
   */
  check(recentMs?: number): Promise<void>;
  /** Returns whether the store says that no other holder has the lease. Renews nothing. */
  stillHeld(): Promise<boolean>;
  /** Releases the lease. The next holder can take it at once. */
  release(): Promise<void>;
}

/** Runs `work`, and releases the lease if it fails. */
export async function releaseOnError<T>(lease: Lease, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    await lease.release();
    throw thrown;
  }
}

/** Another process holds the lease now: this process was suspended for too long. */
export class LeaseLostError extends HeldBackError {}

/** Reads both clocks. */
export function readClocks(clock: Clock): Intent {
  return { monotonic: clock.monotonic(), wall: clock.now() };
}

/**
 * Returns how long ago the clocks were read, in milliseconds, by the clock that shows more. A clock that was set back
 * counts, too.
 */
function agoOf({ monotonic, wall }: Intent, clock: Clock): number {
  return Math.max(clock.monotonic() - monotonic, Math.abs(clock.now() - wall));
}

/** Returns whether a request may still be announced or sent with these readings. */
export function isFresh(intent: Intent, clock: Clock): boolean {
  return agoOf(intent, clock) <= SEND_WINDOW_MS;
}

/** Throws a HeldBackError if the send window has passed on either clock. A clock that was set back counts, too. */
export function checkFresh(intent: Intent, clock: Clock): void {
  const passed = agoOf(intent, clock);
  if (passed > SEND_WINDOW_MS) {
    throw new HeldBackError(`this process was suspended for ${Math.round(passed)} ms before it could be sent`);
  }
}

/** The interval at which a holder renews a lease, in milliseconds, if no request renews it. */
const BEAT_MS = 2000;

/** The properties of a lease when it was taken. */
interface TakenLease extends Pick<HeldLease, "name" | "epoch" | "isTakenOver"> {
  /** Whether a request of the previous holder may still be sent. */
  readonly isUnsettled: boolean;
}

/** A lease that this process holds in any kind of store. It is renewed until it is lost or released. */
export abstract class HeldLease implements Lease {
  readonly name: string;
  readonly epoch: bigint;
  readonly isTakenOver: boolean;
  readonly #clock: Clock;
  readonly #losing = new AbortController();
  readonly #settledAt: number;
  readonly #beat: NodeJS.Timeout;
  #renewedAt: Intent;

  constructor({ name, epoch, isTakenOver, isUnsettled }: TakenLease, clock: Clock) {
    this.name = name;
    this.epoch = epoch;
    this.isTakenOver = isTakenOver;
    this.#clock = clock;
    this.#renewedAt = readClocks(clock);
    this.#settledAt = isUnsettled ? this.#renewedAt.monotonic + TAKE_OVER_WAIT_MS : Number.NEGATIVE_INFINITY;
    // If the lease cannot be renewed now, it is renewed before a request is sent with it.
    this.#beat = setInterval(() => void this.check(BEAT_MS / 2).catch(() => undefined), BEAT_MS).unref();
  }

  /** Renews the lease in its store. Returns false if another holder has it. */
  protected abstract renewed(): Promise<boolean>;
  protected abstract giveBack(isUnsettled: boolean): Promise<void>;
  abstract stillHeld(): Promise<boolean>;

  get lost(): AbortSignal {
    return this.#losing.signal;
  }

  async settled(signal?: AbortSignal): Promise<void> {
    const leftMs = (): number => this.#settledAt - this.#clock.monotonic();
    for (let left = leftMs(); left > 0; left = leftMs()) await this.#clock.sleep(Math.ceil(left), signal);
  }

  async renew(): Promise<Intent> {
    await this.settled();
    for (;;) {
      const intent = readClocks(this.#clock);
      await this.check();
      // If the store was unavailable meanwhile, the readings are too old by now.
      if (isFresh(intent, this.#clock)) return intent;
    }
  }

  async check(recentMs = 0): Promise<void> {
    this.lost.throwIfAborted();
    if (agoOf(this.#renewedAt, this.#clock) < recentMs) return;
    const now = readClocks(this.#clock);
    if (!(await this.renewed())) throw this.lose();
    this.noteRenewed(now);
  }

  /** Notes when the lease was renewed. */
  noteRenewed(at: Intent = readClocks(this.#clock)): void {
    this.#renewedAt = at;
  }

  /** Notes that another holder has the lease, and returns the error for it. */
  lose(): LeaseLostError {
    clearInterval(this.#beat);
    const lost = new LeaseLostError(`another process has taken over the lease "${this.name}"`);
    if (!this.lost.aborted) this.#losing.abort(lost);
    return lost;
  }

  mayLeave(intent: Intent): void {
    if (this.lost.aborted) throw new HeldBackError("another process writes now");
    checkFresh(intent, this.#clock);
  }

  async release(): Promise<void> {
    clearInterval(this.#beat);
    if (!this.lost.aborted) await this.giveBack(this.#clock.monotonic() < this.#settledAt);
  }
}

/** Returns the `Turn` of a process that shares nothing with others. It is never lost. */
export function permitWithoutLease(clock: Clock): Turn {
  return {
    epoch: 0n,
    settled: async () => {},
    renew: async () => readClocks(clock),
    mayLeave: (intent) => checkFresh(intent, clock),
    lost: new AbortController().signal,
  };
}

/**
 * Returns the fence of one request that needs all given `turns` and was announced with `intent`. `renew` returns new
 * readings for the last slice of a large body. `onLate` is called if the request was sent too late.
 */
export function requestFence(
  turns: readonly Turn[],
  intent: Intent,
  { renew, onLate }: { readonly renew: () => Promise<Intent>; readonly onLate: () => void },
): Fence {
  let latest = intent;
  const mayLeave = (): void => {
    for (const turn of turns) turn.mayLeave(latest);
  };
  return {
    mayLeave,
    hasLeft() {
      try {
        mayLeave();
      } catch (thrown) {
        if (!(thrown instanceof HeldBackError)) throw thrown;
        onLate();
      }
    },
    async renew() {
      latest = await renew();
    },
  };
}
