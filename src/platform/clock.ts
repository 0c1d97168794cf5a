import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";

/** Time, as a parameter, so that tests need not wait. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds since some moment; no change of the machine's time shows in it. */
  monotonic(): number;
  /** Resolves after so many milliseconds; rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The time of this machine. */
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

/** A call that is waited for. */
interface WaitedCall {
  /** Until when it has to be answered, in milliseconds of the monotonic clock. */
  readonly until: number;
  isAnswered: boolean;
}

const calls = new AsyncLocalStorage<WaitedCall | undefined>();

/** Does the work of a call that has to be answered by `until`, in milliseconds of the monotonic clock. */
export async function duringCall<T>(until: number, work: () => Promise<T>): Promise<T> {
  const call = { until, isAnswered: false };
  try {
    return await calls.run(call, work);
  } finally {
    call.isAnswered = true;
  }
}

/**
 * Until when the call has to be answered to which the present work belongs, in milliseconds of the monotonic clock;
 * undefined where no call waits for it, or the call was answered.
 */
export function callUntil(): number | undefined {
  const call = calls.getStore();
  return call === undefined || call.isAnswered ? undefined : call.until;
}

/** Does work that a call begins and that does not end with it. */
export function beyondCall<T>(work: () => T): T {
  // A storage that is not in use costs nothing.
  return calls.getStore() === undefined ? work() : calls.run(undefined, work);
}
