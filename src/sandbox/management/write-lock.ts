import { LIMITS } from "../../spec/limits.ts";

/** The right to write to a project, or how long to wait before asking again, in milliseconds. */
type Turn = { readonly release: () => void } | { readonly retryAfterMs: number };

/** Lets the writes of each project through one at a time (management-api 4.2). */
export interface WriteLock {
  /** Waits briefly for a turn. */
  acquire(project: string): Promise<Turn>;
  /** Waits for a turn as long as it takes. */
  acquirePatiently(project: string): Promise<() => void>;
  /** Takes the lock for `ms` milliseconds, as soon as the writes before it have ended. */
  hold(project: string, ms: number): Promise<void>;
}

interface Waiter {
  readonly start: () => void;
}

/** Makes the lock. `waitMs` is how long a write waits for its turn; `now` gives milliseconds since 1970. */
export function writeLock(waitMs: number, now: () => number): WriteLock {
  const queues = new Map<string, Waiter[]>();
  const heldUntil = new Map<string, number>();

  function releaser(project: string): () => void {
    let released = false;
    return () => {
      if (released) return;
      released = true;
      heldUntil.delete(project);
      const next = queues.get(project)?.shift();
      if (next === undefined) queues.delete(project);
      else next.start();
    };
  }

  /** Calls `start` with the turn when it comes; gives the waiter, or undefined when the turn came at once. */
  function enqueue(project: string, start: (release: () => void) => void): Waiter | undefined {
    const queue = queues.get(project);
    if (queue === undefined) {
      queues.set(project, []);
      start(releaser(project));
      return undefined;
    }
    const waiter = { start: () => start(releaser(project)) };
    queue.push(waiter);
    return waiter;
  }

  function acquirePatiently(project: string): Promise<() => void> {
    return new Promise((resolve) => enqueue(project, resolve));
  }

  /** The rest of a hold where one is known, else a short wait. */
  function retryAfter(project: string): number {
    const rest = (heldUntil.get(project) ?? now() + waitMs) - now();
    return Math.min(LIMITS.retryAfterMs.value, Math.max(0, Math.ceil(rest)));
  }

  return {
    acquirePatiently,
    acquire(project) {
      return new Promise((resolve) => {
        let timer: NodeJS.Timeout | undefined;
        const waiter = enqueue(project, (release) => {
          clearTimeout(timer);
          resolve({ release });
        });
        if (waiter === undefined) return;
        timer = setTimeout(() => {
          const queue = queues.get(project) ?? [];
          queue.splice(queue.indexOf(waiter), 1);
          resolve({ retryAfterMs: retryAfter(project) });
        }, waitMs).unref();
      });
    },
    async hold(project, ms) {
      const release = await acquirePatiently(project);
      heldUntil.set(project, now() + ms);
      setTimeout(release, ms).unref();
    },
  };
}
