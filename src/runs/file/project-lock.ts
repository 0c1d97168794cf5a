import { randomUUID } from "node:crypto";
import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../platform/clock.ts";
import { hasCode } from "../../platform/files.ts";
import type { ProjectLock } from "../backend.ts";
import { type Lease, RECENT_MS, soleTurn } from "../turn.ts";
import { tryLease } from "./lease.ts";

/** How often a process that waits for another one looks again, in milliseconds. */
const LOOK_AGAIN_MS = 20;
/** The file by which it asks for the lease. */
const ASKED = "write.asked";
/** How long a lease is kept for the next request. */
const KEEP_MS = 25;

/** The leases that processes share, one for each project. */
export interface SharedLeases<L extends Lease> {
  /** Tries to take the lease; undefined while another process holds it. */
  take(project: string): Promise<L | undefined>;
  /** Asks the process that holds it to give it back between two requests. */
  ask(project: string): Promise<void>;
  /** A mark that changes whenever a process asks for it; not a number where that cannot be told. */
  asked(project: string, lease: L): Promise<number>;
}

/** The write lock between the processes of this machine, by leases kept below `folder`. */
export function machineLock(folder: (project: string) => string, clock: Clock): ProjectLock {
  return sharedLock(
    {
      take: (project) => tryLease(folder(project), "write", clock),
      ask: (project) => writeFile(join(folder(project), ASKED), `${randomUUID()}\n`, { mode: 0o600 }),
      asked: (project) => lastAsked(folder(project)),
    },
    clock,
    LOOK_AGAIN_MS,
  );
}

/**
 * A queue within this process, and a lease between processes. The lease stays from one request to the next, unless
 * another process asks for it: then they take turns.
 */
export function sharedLock<L extends Lease>(leases: SharedLeases<L>, clock: Clock, lookAgainMs: number): ProjectLock {
  const queue = processLock(clock);
  const kept = new Map<string, HeldLease<L>>();
  const giveBack = async (project: string): Promise<void> => {
    const { lease } = kept.get(project) ?? {};
    kept.delete(project);
    await lease?.release();
  };
  const waitedFor = async (project: string, signal: AbortSignal): Promise<L> => {
    for (;;) {
      const lease = await leases.take(project);
      if (lease !== undefined) return lease;
      await leases.ask(project);
      await clock.sleep(lookAgainMs, signal);
    }
  };
  const taken = async (project: string, signal: AbortSignal): Promise<HeldLease<L>> => {
    const before = kept.get(project);
    clearTimeout(before?.timer);
    kept.delete(project);
    if (before !== undefined && (await isStillHeld(before.lease))) return before;
    const lease = await waitedFor(project, signal);
    return { lease, lastAsked: await leases.asked(project, lease) };
  };
  return {
    hold: (project, work, signal, caller) =>
      queue.hold(
        project,
        async () => {
          const mine = await taken(project, signal);
          const { lease } = mine;
          kept.set(project, mine);
          try {
            await lease.settled(signal);
            return await work(lease);
          } finally {
            if (lease.lost.aborted) kept.delete(project);
            else if ((await leases.asked(project, lease)) !== mine.lastAsked) {
              await giveBack(project);
              // So that waiting processes notice before it is taken again.
              await clock.sleep(2 * lookAgainMs);
            } else {
              // A lease that cannot be given back expires, and another process takes it over.
              const later = (): void => void queue.hold(project, () => giveBack(project), NEVER).catch(() => undefined);
              kept.set(project, { ...mine, timer: setTimeout(later, KEEP_MS) });
            }
          }
        },
        signal,
        caller,
      ),
  };
}

interface HeldLease<L> {
  readonly lease: L;
  /** The time of the last request of another process for the lease, as it was when the lease was taken. */
  readonly lastAsked: number;
  /** Gives it back. */
  readonly timer?: NodeJS.Timeout;
}

const NEVER = new AbortController().signal;

/** Whether a lease that was kept is still held. Where the check fails, the lease is given back if possible. */
async function isStillHeld(lease: Lease): Promise<boolean> {
  try {
    await lease.check(RECENT_MS);
    return true;
  } catch {
    await lease.release().catch(() => undefined);
    return false;
  }
}

/**
 * When a process asked last for a lease that another one holds, by the clock of the file system; NaN where that is
 * unknown.
 */
async function lastAsked(folder: string): Promise<number> {
  try {
    return (await stat(join(folder, ASKED))).mtimeMs;
  } catch (thrown) {
    return hasCode(thrown, "ENOENT") ? 0 : Number.NaN;
  }
}

/** A queue within this process, which shares nothing with others: callers in turn, and each one's work as it came. */
export function processLock(clock: Clock): ProjectLock {
  const turn = soleTurn(clock);
  const queues = new Map<string, Queue>();
  return {
    async hold(project, work, signal, caller = "") {
      const queue = queues.get(project) ?? { waiting: new Map(), served: new Map(), turns: 0 };
      if (queues.has(project)) await myTurn(queue, caller, signal);
      else {
        signal.throwIfAborted();
        queues.set(project, queue);
      }
      queue.turns += 1;
      queue.served.set(caller, queue.turns);
      try {
        return await work(turn);
      } finally {
        if (!beginNext(queue)) queues.delete(project);
      }
    },
  };
}

/** Those who wait while one works. */
interface Queue {
  /** By caller. */
  readonly waiting: Map<string, readonly (() => void)[]>;
  /** The number of each caller's last turn. */
  readonly served: Map<string, number>;
  turns: number;
}

/** Lets the first one begin of the caller whose last turn is longest ago; false where none waits. */
function beginNext({ waiting, served }: Queue): boolean {
  const lastTurn = (one: string): number => served.get(one) ?? 0;
  const [caller] = [...waiting.keys()].sort((one, other) => lastTurn(one) - lastTurn(other));
  if (caller === undefined) return false;
  const [begin, ...others] = waiting.get(caller) ?? [];
  waiting.delete(caller);
  if (others.length > 0) waiting.set(caller, others);
  begin?.();
  return true;
}

/** Resolves when it is one's turn; rejects with the signal's reason as soon as it is aborted. */
function myTurn({ waiting }: Queue, caller: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const begin = (): void => {
      signal.removeEventListener("abort", leave);
      resolve();
    };
    const leave = (): void => {
      const others = (waiting.get(caller) ?? []).filter((one) => one !== begin);
      if (others.length > 0) waiting.set(caller, others);
      else waiting.delete(caller);
      reject(signal.reason);
    };
    signal.addEventListener("abort", leave, { once: true });
    waiting.set(caller, [...(waiting.get(caller) ?? []), begin]);
  });
}
