import type { Turn } from "../turn.ts";

/** Lets one write of a project leave at a time (management-api 4.2). */
export interface ProjectLock {
  /**
   * Does some work while this process has the turn to write to the project; gives the result of the work. Where the
   * turn is lost during the work, only requests stop: each one asks the turn before it leaves. Rejects with the
   * signal's reason when it is aborted while waiting. Callers take turns, however much work of each waits. `onWait` is
   * called where the turn has to be waited for, or may have to be.
   */
  hold<T>(
    project: string,
    work: (turn: Turn) => Promise<T>,
    signal: AbortSignal,
    caller?: string,
    onWait?: () => void,
  ): Promise<T>;
}
