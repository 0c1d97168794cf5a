import type { RunStore } from "../backend/store.ts";
import type { Lease } from "../turn.ts";
import { LeaseLostError } from "../turn.ts";

/** How often a driver looks whether it is to stop, also while it waits, in milliseconds. */
const LOOK_MS = 100;

/** What keeps a driven run from going on. */
export interface StopRequests {
  /** Aborted when nothing new may start. */
  readonly signal: AbortSignal;
  /** What it means when it is stopped. */
  readonly cause: () => "cancelled" | "interrupted";
  readonly stop: (cause: "cancelled" | "interrupted") => void;
  /**
   * Whether a request may leave whose intent is on the disk. To be asked after that, and right before it leaves: so a
   * request that leaves once somebody was told that the run stops had its intent on the disk before.
   */
  readonly mayLeave: () => Promise<boolean>;
  /** Ends looking, and takes back what was asked, since the run is about to rest. */
  readonly end: () => Promise<void>;
}

/**
 * Makes the reins of a run. Any process may have asked to stop it; then it is stopped as cancelled. `lease` is the run's
 * once there is one: a run that another process has taken over is stopped, too.
 */
export function stopRequestsOf(
  store: Pick<RunStore, "stopAsked" | "forgetStop">,
  runId: string,
  lease: () => Pick<Lease, "check"> | undefined,
): StopRequests {
  const controller = new AbortController();
  let cause: "cancelled" | "interrupted" = "interrupted";
  const stop = (why: "cancelled" | "interrupted"): void => {
    cause = why;
    controller.abort(new DOMException(`the run was ${why}`, "AbortError"));
  };
  const mayLeave = async (): Promise<boolean> => {
    if (!controller.signal.aborted && (await store.stopAsked(runId)).length > 0) stop("cancelled");
    return !controller.signal.aborted;
  };
  const look = async (): Promise<void> => {
    if ((await mayLeave()) && (await isLost(lease()))) stop("interrupted");
  };
  // What cannot be looked at now is looked at again, and before each request in any case.
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS).unref();
  return {
    signal: controller.signal,
    cause: () => cause,
    stop,
    mayLeave,
    async end() {
      clearInterval(timer);
      // What was asked of a run that another process has taken over is for that one.
      if (await isLost(lease())) return;
      await store.forgetStop(runId, await store.stopAsked(runId));
    },
  };
}

/** Whether another process has taken a lease over. */
async function isLost(lease: Pick<Lease, "check"> | undefined): Promise<boolean> {
  try {
    await lease?.check();
    return false;
  } catch (thrown) {
    if (thrown instanceof LeaseLostError) return true;
    throw thrown;
  }
}

/**
 * Cancels a run that this process does not drive: asks its driver to stop, in whatever process that is, or ends it by
 * `end`, with its lease, where nobody drives it.
 */
export async function cancelKept(
  store: Pick<RunStore, "stopAsked" | "forgetStop" | "askToStop" | "lease" | "isDriven">,
  runId: string,
  end: (lease: Lease) => Promise<void>,
): Promise<void> {
  let lease = await store.lease(runId);
  if (lease === undefined) {
    await store.askToStop(runId);
    // Its driver may have ended just before that could be seen.
    lease = (await store.isDriven(runId)) ? undefined : await store.lease(runId);
  }
  if (lease === undefined) return;
  try {
    await store.forgetStop(runId, await store.stopAsked(runId));
    await end(lease);
  } finally {
    await lease.release();
  }
}

/**
 * Takes the lease of a run that is taken up again; undefined where somebody drives it. What was asked of an earlier
 * driver is taken back, but nothing that is asked from now on.
 */
export async function leaseToResume(
  store: Pick<RunStore, "stopAsked" | "forgetStop" | "lease">,
  runId: string,
): Promise<Lease | undefined> {
  const asked = await store.stopAsked(runId);
  const lease = await store.lease(runId);
  if (lease !== undefined) await store.forgetStop(runId, asked);
  return lease;
}
