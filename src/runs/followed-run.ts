import { beyondCall, type Clock } from "../platform/clock.ts";
import type { RunWatcher } from "./kind.ts";
import { countsOf, type ReportedState } from "./report.ts";

const LOOK_MS = 100;
const CHECK_IF_NOTIFIED_MS = 500;
/** The pause between two reads is this many times as long as a read, but at most `PAUSE_MS.most` milliseconds. */
const READ_SHARE = 10;
const READ_SHARE_IF_NOTIFIED = 4;
const PAUSE_MS = { notified: 250, least: 1000, most: 2000 } as const;

interface Following<S> {
  readonly read: () => Promise<S | undefined>;
  readonly isDriven: () => Promise<boolean>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly whileFollowed: (rest: Promise<void>) => Promise<void>;
  readonly changes?: ((listener: () => void) => (() => void) | undefined) | undefined;
}

/** Follows a run by reading its journal, until no process executes the run or the signal is aborted. */
export function followedRun<S extends ReportedState>(
  first: S,
  { read, isDriven, clock, signal, whileFollowed, changes }: Following<S>,
) {
  const watchers = new Set<RunWatcher>();
  let state = first;
  let driven = true;
  let resting: Promise<void> | undefined;
  /** A run counts as executed until its last entries were read, so that its end is not reported with an old state. */
  const look = atOnce(async () => {
    const goesOn = await isDriven();
    state = (await read()) ?? state;
    driven = goesOn;
    for (const watcher of watchers) watcher(countsOf(state), 0);
    return goesOn;
  });
  const follow = async (hint: Hint): Promise<void> => {
    let due = clock.now();
    let soonest = due;
    for (;;) {
      const pause = changes === undefined ? LOOK_MS : CHECK_IF_NOTIFIED_MS;
      await hint.orSleep(hint.isGiven ? Math.min(pause, soonest - clock.now()) : pause);
      const now = clock.now();
      const isDue = now >= due || (hint.isGiven && now >= soonest);
      if (!isDue && (await isDriven())) continue;
      hint.isGiven = false;
      if (!(await look())) return;
      const tookMs = clock.now() - now;
      soonest = clock.now() + Math.max(PAUSE_MS.notified, READ_SHARE_IF_NOTIFIED * tookMs);
      due = now + Math.max(PAUSE_MS.least, Math.min(PAUSE_MS.most, READ_SHARE * tookMs), 2 * tookMs);
    }
  };
  return {
    state: () => state,
    isDriven: () => driven,
    look,
    /**
     * Resolves when no process executes the run any more. The first call starts the checks. If the run cannot be read,
     * the checks end, and the next read throws the error.
     */
    rest(): Promise<void> {
      if (resting === undefined) {
        const hint = hintOf(clock, signal);
        const off = changes?.(hint.give);
        resting = beyondCall(() => follow(hint))
          .catch(() => undefined)
          .finally(off);
        void whileFollowed(resting);
      }
      return resting;
    },
    watch(watcher: RunWatcher): () => void {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** Lets callers share calls of `work`. Each caller gets the result of a call that began after the caller asked. */
function atOnce<T>(work: () => Promise<T>): () => Promise<T> {
  let going: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const begin = (): Promise<T> => {
    const begun = work().finally(() => {
      if (going === begun) going = undefined;
    });
    going = begun;
    return begun;
  };
  return () => {
    if (going === undefined) return begin();
    next ??= going
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return begin();
      });
    return next;
  };
}

type Hint = ReturnType<typeof hintOf>;

function hintOf(clock: Clock, signal: AbortSignal) {
  let wake = (): void => {};
  const hint = {
    isGiven: false,
    give: (): void => {
      hint.isGiven = true;
      wake();
    },
    /** Sleeps until a hint arrives or the time is over. Rejects when the signal is aborted. */
    async orSleep(ms: number): Promise<void> {
      signal.throwIfAborted();
      const woken = new Promise<void>((resolve) => {
        // A hint from before the sleep does not end it, because the caller may not act earlier.
        wake = hint.isGiven ? () => {} : resolve;
      });
      await Promise.race([clock.sleep(Math.max(0, ms), signal), woken]);
    },
  };
  return hint;
}
