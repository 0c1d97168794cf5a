import type { Clock } from "../../platform/clock.ts";
import { countsOf, type ReportCounts, type ReportedState } from "../report.ts";

/** How often this process checks whether another one still drives a run, in milliseconds. */
const LOOK_MS = 100;
/** Reading a run takes at most this part of the time. */
const READ_SHARE = 10;
const READ_AT_MOST_EVERY_MS = 1000;

/** A run that another process drives. */
export interface FollowedRun<S> {
  /** As it was read last. */
  state(): S;
  isDriven(): boolean;
  /** Resolves when no process drives it any more. The checks begin when this is first called. */
  rest(): Promise<void>;
  watch(watcher: (counts: ReportCounts, waitingMs: number) => void): () => void;
}

/** Follows a run that another process drives, by its journal, until it rests or the signal is aborted. */
export function followedRun<S extends ReportedState>(
  first: S,
  {
    read,
    isDriven,
    clock,
    signal,
    whileFollowed,
  }: {
    readonly read: () => Promise<S | undefined>;
    readonly isDriven: () => Promise<boolean>;
    readonly clock: Clock;
    readonly signal: AbortSignal;
    /** Called when following begins, with a promise that resolves when it ends. */
    readonly whileFollowed: (rest: Promise<void>) => Promise<void>;
  },
): FollowedRun<S> {
  const watchers = new Set<(counts: ReportCounts, waitingMs: number) => void>();
  let state = first;
  let driven = true;
  let resting: Promise<void> | undefined;
  const readAgain = async (): Promise<number> => {
    const begin = clock.now();
    state = (await read()) ?? state;
    for (const watcher of watchers) watcher(countsOf(state), 0);
    return begin + Math.max(READ_AT_MOST_EVERY_MS, READ_SHARE * (clock.now() - begin));
  };
  const follow = async (): Promise<void> => {
    let readAt = clock.now();
    while (!signal.aborted) {
      await clock.sleep(LOOK_MS, signal);
      const goesOn = await isDriven();
      if (!goesOn || clock.now() >= readAt) readAt = await readAgain();
      if (goesOn) continue;
      driven = false;
      return;
    }
  };
  return {
    state: () => state,
    isDriven: () => driven,
    // An error of reading ends the following; the next read of the run throws it.
    rest: () => {
      if (resting === undefined) {
        resting = follow().catch(() => undefined);
        void whileFollowed(resting);
      }
      return resting;
    },
    watch: (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}
