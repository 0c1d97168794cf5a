import { setImmediate } from "node:timers/promises";
import type { Clock } from "../../src/platform/clock.ts";

interface Sleeper {
  readonly at: number;
  readonly resolve: () => void;
}

/** A clock that moves to the next end of a sleep whenever everything else waits. */
export function virtualClock(): Clock {
  const sleepers: Sleeper[] = [];
  let now = 0;
  async function wakeNext(): Promise<void> {
    await setImmediate();
    sleepers.sort((one, other) => one.at - other.at);
    const next = sleepers.shift();
    if (next === undefined) return;
    now = Math.max(now, next.at);
    next.resolve();
  }
  return {
    now: () => now,
    monotonic: () => now,
    sleep(ms, signal) {
      if (signal?.aborted === true) return Promise.reject(signal.reason);
      return new Promise((resolve, reject) => {
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
        sleepers.push({ at: now + ms, resolve });
        void wakeNext();
      });
    },
  };
}
