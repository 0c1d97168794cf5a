import type { Turn } from "../turn.ts";

/** Lets one write of a project leave at a time (management-api 4.2). */
export interface ProjectLock {
  /**
   * Does some work while it is the turn of this process to write to the project; gives what the work gives. A turn that
   * is lost in the middle of the work ends only what goes by it: each request asks it before it leaves.
   * Rejects with the signal's reason when it is aborted while waiting.
   */
  hold<T>(project: string, work: (turn: Turn) => Promise<T>, signal: AbortSignal): Promise<T>;
}
