import { AsyncLocalStorage } from "node:async_hooks";
import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";

export const DAY_MS = 86_400_000;

/** Reads the time and sleeps. Code takes it as a parameter, so that tests can use a fake clock. */
export interface Clock {
  /** The machine whose clock this is. Times of different machines cannot be compared. */
  readonly machine?: string;
  now(): number;
  /** Milliseconds since any fixed moment. Changes of the system time do not affect it. */
  monotonic(): number;
  /** Resolves after `ms` milliseconds. Rejects with the signal's reason if the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  machine: machineId(),
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

/** Returns the boot ID of this machine, which is new after each restart. Outside Linux, returns the host name. */
function machineId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
  } catch {
    return hostname();
  }
}

interface WaitedCall {
  /** When the call must be answered, on the monotonic clock. Undefined after its answer. */
  until: number | undefined;
  /** Called when the call ends, with its error if it failed. Returns the error to report. */
  end?: (thrown: unknown) => unknown;
}

const calls = new AsyncLocalStorage<WaitedCall | undefined>();

/** Runs `work` as a call that must be answered by `until` (monotonic clock). In it, `presentCall` returns the call. */
export async function duringCall<T>(until: number, work: () => Promise<T>): Promise<T> {
  const call: WaitedCall = { until };
  const end = (thrown?: unknown): unknown => {
    call.until = undefined;
    return call.end ? call.end(thrown) : thrown;
  };
  try {
    const answer = await calls.run(call, work);
    end();
    return answer;
  } catch (thrown) {
    throw end(thrown);
  }
}

/** Returns the present tool call. Undefined outside a call. */
export function presentCall(): WaitedCall | undefined {
  return calls.getStore();
}

/** Runs work that may continue after the answer to its tool call. In it, `presentCall` returns undefined. */
export function beyondCall<T>(work: () => T): T {
  // AsyncLocalStorage slows down each asynchronous step, so it is not used outside tool calls.
  return calls.getStore() === undefined ? work() : calls.run(undefined, work);
}
