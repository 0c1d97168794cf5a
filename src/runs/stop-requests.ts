import type { RunStore } from "./store.ts";
import { type Lease, LeaseLostError, RECENT_MS } from "./turn.ts";

/** How often a driver checks whether it was asked to stop, also while it waits, in milliseconds. */
const LOOK_MS = 100;
/** The same where it is told. */
const LOOK_IF_TOLD_MS = 1000;

/** The requests to stop a driven run, from this process and from others. */
export type StopRequests = ReturnType<typeof stopRequestsOf>;

/**
 * Watches for requests to stop a run. Any process may ask; then the run is stopped as cancelled. `lease` gives the
 * lease of the run once it is taken: a run that another process has taken over is stopped, too.
 */
export function stopRequestsOf(
  { stops }: Pick<RunStore, "stops">,
  runId: string,
  lease: () => Pick<Lease, "check"> | undefined,
) {
  const controller = new AbortController();
  let cause: "cancelled" | "interrupted" = "interrupted";
  const stop = (why: "cancelled" | "interrupted"): void => {
    cause = why;
    controller.abort(new DOMException(`the run was ${why}`, "AbortError"));
  };
  const isAsked = async (): Promise<boolean> => (await stops.asked(runId)).length > 0;
  /**
   * Whether a request may leave whose intent is on the disk. To be asked after that, and right before it leaves: so a
   * request that leaves after a caller was told that the run stops had its intent on the disk before. `asked`: what the
   * store said when it took the intent.
   */
  const mayLeave = async (asked?: boolean): Promise<boolean> => {
    if (!controller.signal.aborted && (asked ?? (await isAsked()))) stop("cancelled");
    return !controller.signal.aborted;
  };
  const look = async (): Promise<void> => {
    if ((await mayLeave()) && (await isLost(lease()))) stop("interrupted");
  };
  // A check that fails is repeated, and made before each request in any case.
  const lookNow = (): void => void look().catch(() => undefined);
  const notWatched = stops.watch?.(runId, lookNow);
  const timer = setInterval(lookNow, notWatched === undefined ? LOOK_MS : LOOK_IF_TOLD_MS).unref();
  return {
    /** Aborted when nothing new may start. */
    signal: controller.signal,
    /** Why the run was stopped. */
    cause: () => cause,
    stop,
    mayLeave,
    /** Stops checking, and takes back the requests to stop, since the run is about to rest. */
    async end(): Promise<void> {
      clearInterval(timer);
      notWatched?.();
      // Requests to stop a run that another process has taken over are left for that process.
      if (await isLost(lease())) return;
      await stops.forget(runId, await stops.asked(runId));
    },
  };
}

/** Whether another process has taken a lease over. */
async function isLost(lease: Pick<Lease, "check"> | undefined): Promise<boolean> {
  try {
    await lease?.check(RECENT_MS);
    return false;
  } catch (thrown) {
    if (thrown instanceof LeaseLostError) return true;
    throw thrown;
  }
}

/**
 * Cancels a run that this process does not drive: asks its driver to stop, in whatever process that is, or ends it by
 * `end`, with its lease, where no process drives it.
 */
export async function cancelKept(
  store: Pick<RunStore, "stops" | "lease" | "isDriven">,
  runId: string,
  end: (lease: Lease) => Promise<void>,
): Promise<void> {
  let lease = await store.lease(runId);
  if (lease === undefined) {
    await store.stops.ask(runId);
    // Its driver may have ended just before that could be seen.
    lease = (await store.isDriven(runId)) ? undefined : await store.lease(runId);
  }
  if (lease === undefined) return;
  try {
    await store.stops.forget(runId, await store.stops.asked(runId));
    await end(lease);
  } finally {
    await lease.release();
  }
}

/**
 * Takes the lease of a run that is resumed; undefined where a process drives it. Requests to stop an earlier driver are
 * taken back, but none that is made from now on.
 */
export async function leaseToResume(
  store: Pick<RunStore, "stops" | "lease">,
  runId: string,
): Promise<Lease | undefined> {
  const asked = await store.stops.asked(runId);
  const lease = await store.lease(runId);
  if (lease !== undefined) await store.stops.forget(runId, asked);
  return lease;
}
