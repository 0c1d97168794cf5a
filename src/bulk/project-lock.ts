import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../api/clock.ts";
import { hasCode } from "./files/file-error.ts";
import { type Lease, tryLease } from "./lease.ts";

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
/** The file that it touches then, and for how long that counts. */
const WANTED = "write.wanted";
const WANTED_MS = 200;
/** How long a process that gave a lease back leaves it to others: each of them looks in this time. */
const TURN_MS = 2 * LOOK_AGAIN_MS;
/** How long a lease is kept for the next request. */
const KEEP_MS = 25;

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

/**
 * A queue within this process, and a lease between the processes of this machine, kept below `folder`. The lease stays
 * from one request to the next, unless another process wants it: then they take turns.
 */
export function machineLock(folder: (project: string) => string, clock: Clock): ProjectLock {
  const queue = processLock();
  const kept = new Map<string, KeptLease>();
  const giveBack = async (project: string): Promise<void> => {
    const { lease } = kept.get(project) ?? {};
    kept.delete(project);
    await lease?.release();
  };
  return {
    hold: (project, work, signal) =>
      queue.hold(
        project,
        async () => {
          const before = kept.get(project);
          clearTimeout(before?.timer);
          const lease = before?.lease ?? (await waitedFor(folder(project), clock, signal));
          kept.set(project, { lease });
          try {
            return await work();
          } finally {
            if (await isWanted(folder(project), clock.now())) {
              await giveBack(project);
              await clock.sleep(TURN_MS);
            } else {
              // What cannot be given back counts as dead soon, and another process takes it over.
              const later = (): void => void queue.hold(project, () => giveBack(project), NEVER).catch(() => undefined);
              kept.set(project, { lease, timer: setTimeout(later, KEEP_MS) });
            }
          }
        },
        signal,
      ),
  };
}

interface KeptLease {
  readonly lease: Lease;
  /** Gives it back. */
  readonly timer?: NodeJS.Timeout;
}

const NEVER = new AbortController().signal;

async function waitedFor(folder: string, clock: Clock, signal: AbortSignal): Promise<Lease> {
  for (;;) {
    const lease = await tryLease(folder, "write", () => clock.now());
    if (lease !== undefined) return lease;
    await writeFile(join(folder, WANTED), "", { mode: 0o600 });
    await clock.sleep(LOOK_AGAIN_MS, signal);
  }
}

/** Whether another process has looked for the lease just now; where that cannot be told, one may have. */
async function isWanted(folder: string, now: number): Promise<boolean> {
  try {
    return Math.abs(now - (await stat(join(folder, WANTED))).mtimeMs) < WANTED_MS;
  } catch (thrown) {
    return !hasCode(thrown, "ENOENT");
  }
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
