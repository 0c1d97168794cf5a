import type { Clock } from "../../platform/clock.ts";
import type { ProjectLock } from "../backend/backend.ts";
import { soleTurn } from "../turn.ts";

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
