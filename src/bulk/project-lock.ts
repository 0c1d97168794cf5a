/** Lets one write of a project leave at a time (management-api 4.2). */
export interface ProjectLock {
  /**
   * Does some work while nobody else writes to the project; gives what the work gives.
   * Rejects with the signal's reason when it is aborted while waiting.
   */
  hold<T>(project: string, work: () => Promise<T>, signal: AbortSignal): Promise<T>;
}

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
        await Promise.race([before, aborted(signal)]);
        signal.throwIfAborted();
        return await work();
      } finally {
        finish();
        if (tails.get(project) === tail) tails.delete(project);
      }
    },
  };
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    else signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
