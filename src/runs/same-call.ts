import { isUnstarted } from "./lifecycle.ts";
import { orUnreadable, type RunStore, type RunSummary } from "./store.ts";

/** A call: the fingerprint by which it is recognised, and when it arrived, in milliseconds since 1970. */
export interface MadeCall {
  readonly fingerprint: string;
  readonly arrivedAt: number;
}

/** The earlier run of a call that is made again: its run that is driven, or the newest that ended with items left. */
export interface EarlierRuns<R> {
  readonly going?: R;
  readonly ended?: EndedRun;
}

/** A run that ended a short while ago with items left. */
export type EndedRun = Pick<RunSummary, "status" | "open"> & { readonly runId: string };

/** How many runs of the same call are looked at for an unfinished one. */
const RECENT_RUNS = 50;
/** Within this time a call that is made again resumes a run that stopped, and an ended run is named in the answer. */
const SAME_CALL_MS = 3_600_000;

type AnyStore = Pick<RunStore, "withCallLock" | "list" | "record" | "isDriven" | "read">;

/** How the runs of a kind are resumed for a call that is made again. */
interface Ways<R> {
  readonly now: () => number;
  /**
   * Whether the same call resumes this run at rest instead of starting a new one. `isRecent`: it stopped a short while
   * ago.
   */
  readonly isMeant: (told: RunSummary, isRecent: boolean) => boolean;
  /** Whether a run that was not started is planned first, and may wait for an approval. */
  readonly isPlannedFirst: boolean;
  /** Resumes a run, or attaches to it where a process drives it; undefined where the call does not mean this run. */
  readonly takeUp: (runId: string) => Promise<R | undefined>;
}

/** Looks for an unfinished run of a call, to go on with instead of starting another one. */
export async function findEarlierRun<R>(store: AnyStore, fingerprint: string, ways: Ways<R>): Promise<EarlierRuns<R>> {
  let ended: EndedRun | undefined;
  for (const runId of (await store.list({ unfinished: { fingerprint } })).slice(0, RECENT_RUNS)) {
    const record = await store.record(runId);
    if (record === undefined || (ways.isPlannedFirst && isUnstarted(record.status))) continue;
    const told = record.rest;
    const isRecent = told !== undefined && ways.now() - told.updatedAt < SAME_CALL_MS;
    const isMeant = told === undefined || ways.isMeant(told, isRecent);
    const stored = isMeant ? await orUnreadable(store.read(runId)) : undefined;
    if (stored?.header.fingerprint === fingerprint) {
      const going = await ways.takeUp(runId);
      if (going !== undefined) return { going };
    }
    if (isRecent) ended ??= { runId, status: told.status, open: told.open };
  }
  return ended === undefined ? {} : { ended };
}

/**
 * Gives the one run of calls that are made at the same time, in whatever process: the one that another of them made
 * since this call arrived, as `attach` gives it, or what `make` makes.
 */
export function startOrJoin<R>(
  store: AnyStore,
  { fingerprint, arrivedAt }: MadeCall,
  { attach, make }: { readonly attach: (runId: string) => Promise<R | undefined>; readonly make: () => Promise<R> },
): Promise<R> {
  return store.withCallLock(fingerprint, async () => {
    const [last] = await store.list({ lastOf: fingerprint });
    if (last !== undefined && (await isOfSameTime(store, last, arrivedAt))) {
      // A run that cannot be read was never started: its process died while it was being written.
      const found = await orUnreadable(attach(last));
      if (found !== undefined) return found;
    }
    return make();
  });
}

/** Whether a run was not yet at rest when a call arrived. */
async function isOfSameTime(store: AnyStore, runId: string, arrivedAt: number): Promise<boolean> {
  const { rest } = (await store.record(runId)) ?? {};
  return rest === undefined || rest.updatedAt > arrivedAt || store.isDriven(runId);
}

/** Does some work once for all callers; after a failure the next caller starts it again. */
export function onceDone<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () => {
    done ??= work().catch((thrown: unknown) => {
      done = undefined;
      throw thrown;
    });
    return done;
  };
}
