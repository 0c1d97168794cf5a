import { AsyncLocalStorage } from "node:async_hooks";
import { setTimeout as delay } from "node:timers/promises";

/** Reads the time and sleeps. Code takes it as a parameter, so that tests can use a fake clock. */
export interface Clock {
  now(): number;
  /** Milliseconds since any fixed moment. Changes of the system time do not affect it. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason if the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

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

interface WaitedCall {
  readonly until: number;
  isAnswered: boolean;
}

const calls = new AsyncLocalStorage<WaitedCall | undefined>();

/**
 * Runs `work` as a tool call that must be answered at the time `until` of the monotonic clock. Inside `work`,
 * `callUntil` returns this time.
 */
export async function duringCall<T>(until: number, work: () => Promise<T>): Promise<T> {
  const call = { until, isAnswered: false };
  try {
    return await calls.run(call, work);
  } finally {
    call.isAnswered = true;
  }
}

/**
 * Returns when the present tool call must be answered, on the monotonic clock. Undefined outside a call, and after its
 * answer.
 */
export function callUntil(): number | undefined {
  const call = calls.getStore();
  return call === undefined || call.isAnswered ? undefined : call.until;
}

/** Runs work that may continue after the answer to its tool call. In it, `callUntil` returns undefined. */
export function beyondCall<T>(work: () => T): T {
  // AsyncLocalStorage slows down each asynchronous step, so it is not used outside tool calls.
  return calls.getStore() === undefined ? work() : calls.run(undefined, work);
}
