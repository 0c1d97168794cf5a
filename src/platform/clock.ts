import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";

/** Time as a parameter, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds since an arbitrary moment; changes of the system time do not affect it. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason if it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of this machine. */
export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  async sleep(ms, signal) {
    try {
      await delay(ms, undefined, signal && { signal });
    } catch (thrown) {
      signal?.throwIfAborted();
      throw thrown;
    }
  },
};

/** A call whose answer a client waits for. */
interface WaitedCall {
  /** The deadline of its answer, in milliseconds of the monotonic clock. */
  readonly until: number;
  isAnswered: boolean;
}

const calls = new AsyncLocalStorage<WaitedCall | undefined>();

/** Does the work of a call that must be answered by `until`, in milliseconds of the monotonic clock. */
export async function duringCall<T>(until: number, work: () => Promise<T>): Promise<T> {
  const call = { until, isAnswered: false };
  try {
    return await calls.run(call, work);
  } finally {
    call.isAnswered = true;
  }
}

/**
 * Returns the deadline of the current work's call, in milliseconds of the monotonic clock; undefined if no call waits
 * for it.
 */
export function callUntil(): number | undefined {
  const call = calls.getStore();
  return call === undefined || call.isAnswered ? undefined : call.until;
}

/** Does work that a call starts and that may outlive it. The deadline of the call does not apply to it. */
export function beyondCall<T>(work: () => T): T {
  // An unused storage costs nothing.
  return calls.getStore() === undefined ? work() : calls.run(undefined, work);
}
