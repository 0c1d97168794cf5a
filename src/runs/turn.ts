import type { Clock } from "../platform/clock.ts";

/** Checks made right before and after a request's last bytes are sent. Until then, the service applies nothing. */
export interface Fence {
  /** Called right before the last bytes are sent. Throws a HeldBackError if they may not be sent any more. */
  mayLeave(): void;
  /** Called right after the last bytes were sent, to notice if that was too late. */
  hasLeft(): void;
  /** Renews the lease before the last bytes of a large body are sent. Rejects if the lease is lost. */
  renew(): Promise<void>;
}

/**
 * A request was not sent completely, mostly because the lease was lost or too much time passed before its last byte. So
 * the request has no effect.
 */
export class HeldBackError extends Error {}

/** The maximum time from reading both clocks (`Intent`) to sending the last byte of a request, in milliseconds. */
export const SEND_WINDOW_MS = 2000;
/** How long the new holder waits after a takeover, in ms. Until then, the previous one may still send requests. */
const TAKE_OVER_WAIT_MS = SEND_WINDOW_MS + 500;

/** How long a renewed lease counts as held without reading the store, in ms. Not used to decide about sending. */
export const RECENT_MS = 100;

/** Readings of two clocks. The monotonic one may stop while the machine is suspended, and the wall clock can be set. */
export interface Intent {
  readonly monotonic: number;
  readonly wall: number;
  /** Whether a stop was requested, read with or after the announcement of the request on disk. Absent if unknown. */
  readonly stopAsked?: boolean;
}

/** The right of this process to send requests. It lasts while this process holds a lease. */
export interface Turn {
  readonly epoch: bigint;
  /** Resolves when the previous holder of the lease can no longer send requests. */
  settled(signal?: AbortSignal): Promise<void>;
  /** Waits for `settled`, reads both clocks and renews the lease. Returns the readings. Throws a LeaseLostError. */
  renew(): Promise<Intent>;
  /** Throws a HeldBackError if the lease is lost or the clock readings are too old. */
  mayLeave(intent: Intent): void;
  readonly lost: AbortSignal;
}

export interface Lease extends Turn {
  /** Whether the previous holder may still run and write. */
  readonly isTakenOver: boolean;
  /** Renews the lease if the last renewal is older than `recentMs`. Throws a LeaseLostError if it is lost. */
  check(recentMs?: number): Promise<void>;
  stillHeld(): Promise<boolean>;
  release(): Promise<void>;
}

export async function releaseOnError<T>(lease: Lease, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    await lease.release();
    throw thrown;
  }
}

export class LeaseLostError extends HeldBackError {}

export function readClocks(clock: Clock): Intent {
  return { monotonic: clock.monotonic(), wall: clock.now() };
}

/** Returns how long ago two clocks were read, in ms: by the clock that has changed more, even if it moved back. */
function agoOf({ monotonic, wall }: Intent, clock: Clock): number {
  return Math.max(clock.monotonic() - monotonic, Math.abs(clock.now() - wall));
}

export function isFresh(intent: Intent, clock: Clock): boolean {
  return agoOf(intent, clock) <= SEND_WINDOW_MS;
}

export function checkFresh(intent: Intent, clock: Clock): void {
  const passed = agoOf(intent, clock);
  if (passed > SEND_WINDOW_MS) {
    throw new HeldBackError(`${Math.round(passed)} ms passed before the request could be sent, which is too long`);
  }
}

/** How often a lease is renewed, in milliseconds. Requests renew it as well. */
const BEAT_MS = 2000;

interface TakenLease extends Pick<HeldLease, "name" | "epoch" | "isTakenOver"> {
  readonly isUnsettled: boolean;
}

/** A lease in any kind of store. It is renewed until it is lost or released. */
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
    // A failed renewal is ignored: the lease is renewed again before each request.
    this.#beat = setInterval(() => void this.check(BEAT_MS / 2).catch(() => undefined), BEAT_MS).unref();
  }

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
      // If the store did not answer for a while, the readings are too old, so new ones are taken.
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

  noteRenewed(at: Intent = readClocks(this.#clock)): void {
    this.#renewedAt = at;
  }

  lose(): LeaseLostError {
    clearInterval(this.#beat);
    const lost = new LeaseLostError(`another process has taken over the lease "${this.name}"`);
    if (!this.lost.aborted) this.#losing.abort(lost);
    return lost;
  }

  mayLeave(intent: Intent): void {
    if (this.lost.aborted) throw new HeldBackError("another process has taken over this run or the write lock");
    checkFresh(intent, this.#clock);
  }

  async release(): Promise<void> {
    clearInterval(this.#beat);
    if (!this.lost.aborted) await this.giveBack(this.#clock.monotonic() < this.#settledAt);
  }
}

/** Returns the permit of a process that shares its store with no other process. It is never lost. */
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
 * Returns checks that a request is sent while its process still has the right to send it. Sending a large body takes
 * time, so `renew` reads the clocks again before the last part of the body. `hasLeft` is called after the request was
 * sent, and calls `onLate` if that right had ended before.
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
