import type { Clock } from "../api/clock.ts";
import { type NumberedLease, tryLease } from "./lease.ts";

/** Lets one write of a project leave at a time (management-api 4.2). */
export interface ProjectLock {
  /**
   * Does some work while nobody else writes to the project; gives what the work gives.
   * Rejects with the signal's reason when it is aborted while waiting.
   */
  hold<T>(project: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

/** How often a process that waits for another one looks again, in milliseconds. */
const LOOK_AGAIN_MS = 20;

/** A queue within this process: first come, first served. */
export function processLock(): ProjectLock {
  const tails = new Map<string, Promise<void>>();
  return {
    async hold(project, work, signal) {
      const before = tails.get(project) ?? Promise.resolve();
      let finish = (): void => {};
      const mine = new Promise<void>((resolve) => {
        finish = resolve;
      });
      const tail = before.then(() => mine);
      tails.set(project, tail);
      try {
        await orAborted(before, signal);
        return await work();
      } finally {
        finish();
        if (tails.get(project) === tail) tails.delete(project);
      }
    },
  };
}

/** A queue within this process, and a lease between the processes of this machine, kept below `folder`. */
export function machineLock(folder: (project: string) => string, clock: Clock): ProjectLock {
  const queue = processLock();
  const returned = new Map<string, NumberedLease>();
  const tryFor = (project: string) => tryLease(folder(project), "write", () => clock.now(), returned.get(project));
  return {
    hold: (project, work, signal) =>
      queue.hold(
        project,
        async () => {
          let lease = await tryFor(project);
          while (lease === undefined) {
            await clock.sleep(LOOK_AGAIN_MS, signal);
            lease = await tryFor(project);
          }
          try {
            return await work();
          } finally {
            await lease.release();
            returned.set(project, lease);
          }
        },
        signal,
      ),
  };
}

/** Waits for something, but rejects with the signal's reason as soon as it is aborted. */
async function orAborted(waited: Promise<void>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason);
    signal.addEventListener("abort", stop, { once: true });
  });
  try {
    await Promise.race([waited, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
