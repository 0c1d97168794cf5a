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
        await unlessAborted(before, signal);
        signal.throwIfAborted();
        return await work();
      } finally {
        finish();
        if (tails.get(project) === tail) tails.delete(project);
      }
    },
  };
}

/** Waits for something that never fails; rejects with the signal's reason when that comes first. */
function unlessAborted(waited: Promise<void>, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason);
    if (signal.aborted) return abort();
    signal.addEventListener("abort", abort, { once: true });
    void waited.then(() => {
      signal.removeEventListener("abort", abort);
      resolve();
    });
  });
}
