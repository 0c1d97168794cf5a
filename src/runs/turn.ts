import type { Clock } from "../platform/clock.ts";
import { type Fence, HeldBackError } from "../platform/fence.ts";

/**
 * How much may pass, on either clock, between the readings that a request was announced with and the bytes that
 * complete it, in milliseconds.
 */
export const SEND_WINDOW_MS = 2000;
/** How long a process waits that took over from one that may still run: until no request of that one can leave. */
const TAKE_OVER_WAIT_MS = SEND_WINDOW_MS + 500;

/**
 * A lease that was held so short a time ago counts as held where no request leaves by that alone, in milliseconds: it is
 * taken over only once it has shown no life for far longer.
 */
export const RECENT_MS = 100;

/** Both clocks, read before a request was announced: one does not see a suspended machine, the other one can be set. */
export interface Intent {
  readonly monotonic: number;
  /** Milliseconds since 1970. */
  readonly wall: number;
  /** Whether the run was asked to stop before the announcement was durable; absent: that is not known. */
  readonly stopAsked?: boolean;
}

/** The right of this process to send, for as long as it holds a lease. */
export interface Turn {
  /** Larger for every later holding of the lease. */
  readonly epoch: bigint;
  /**
   * Reads both clocks, renews the lease, and makes sure that the lease is still held by this very holding. Waits first
   * for as long as a request of the holder before may still leave. Throws a LeaseLostError where another process holds
   * it.
   */
  renew(): Promise<Intent>;
  /** Throws a HeldBackError where the lease is known to be lost, or too much time has passed since the readings. */
  mayLeave(intent: Intent): void;
  /** Aborted as soon as it is noticed that the lease is lost. */
  readonly lost: AbortSignal;
}

/** A lease that this process holds: its turn, until it gives it back. */
export interface Lease extends Turn {
  /** Whether it was taken from a holder that may still be there, and write. */
  readonly isTakenOver: boolean;
  /** Resolves when no request of a holder before can leave any more. Rejects with the signal's reason. */
  settled(signal?: AbortSignal): Promise<void>;
  /**
   * Makes sure that it is still held; that it was renewed within the last `recentMs` may do. Throws a LeaseLostError where
   * it is not.
   */
  check(recentMs?: number): Promise<void>;
  /** Whether no other holding has it by now, as the store says; nothing is renewed. */
  stillHeld(): Promise<boolean>;
  /** Gives it back; the next one can have it at once. */
  release(): Promise<void>;
}

/** Does some work with a lease, which is given back where the work fails. */
export async function releaseOnError<T>(lease: Lease, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    await lease.release();
    throw thrown;
  }
}

/** Another process holds the lease now: this one stood still for too long. */
export class LeaseLostError extends HeldBackError {}

/** Reads both clocks. */
export function readClocks(clock: Clock): Intent {
  return { monotonic: clock.monotonic(), wall: clock.now() };
}

/** How long ago the clocks were read, in milliseconds, by the clock that says more; one that was set back counts, too. */
function agoOf({ monotonic, wall }: Intent, clock: Clock): number {
  return Math.max(clock.monotonic() - monotonic, Math.abs(clock.now() - wall));
}

/** Whether a request may still be announced or leave with these readings. */
export function isFresh(intent: Intent, clock: Clock): boolean {
  return agoOf(intent, clock) <= SEND_WINDOW_MS;
}

/**
 * Throws a HeldBackError where more than the window has passed on either clock; a clock that was set back counts, too.
 */
export function checkFresh(intent: Intent, clock: Clock): void {
  const passed = agoOf(intent, clock);
  if (passed > SEND_WINDOW_MS) {
    throw new HeldBackError(`this process stood still for ${Math.round(passed)} ms before it could be sent`);
  }
}

/** How often a holder renews a lease that nothing else renews, in milliseconds. */
const BEAT_MS = 2000;

/** What a lease is when it was taken. */
interface TakenLease extends Pick<HeldLease, "name" | "epoch" | "isTakenOver"> {
  /** A request of a holder before may still leave. */
  readonly isUnsettled: boolean;
}

/** A lease that this process holds, in whatever store: renewed until it is lost or given back. */
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
    // Where the lease cannot be renewed now, it is renewed again before a request leaves by it.
    this.#beat = setInterval(() => void this.check(BEAT_MS / 2).catch(() => undefined), BEAT_MS).unref();
  }

  /** Renews it in its store; false where another holding has it. */
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
      // Where the store was away meanwhile, the readings are too old by now.
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

  /** Notes when it was renewed. */
  noteRenewed(at: Intent = readClocks(this.#clock)): void {
    this.#renewedAt = at;
  }

  /** Notes that another holding has it; gives the error that says so. */
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

/** The turn of a process that shares nothing with others: it is never lost. */
export function soleTurn(clock: Clock): Turn {
  return {
    epoch: 0n,
    renew: async () => readClocks(clock),
    mayLeave: (intent) => checkFresh(intent, clock),
    lost: new AbortController().signal,
  };
}

/**
 * The fence of one request that leaves by the given turns, announced with `intent`. `renew` gives new readings for the
 * last slice of a large body; `onLate` is called where the request left too late.
 */
export function fenceOf(
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
