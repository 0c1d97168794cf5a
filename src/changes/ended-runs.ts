import type { Clock } from "../platform/clock.ts";
import { ownReason } from "../runs/reasons.ts";
import { restingStatus, summaryOf } from "../runs/report.ts";
import type { RunStore } from "../runs/store.ts";
import type { Lease } from "../runs/turn.ts";
import { isWithdrawn, type KeptRun, readBack } from "./kept-runs.ts";
import { type Ending, objectEntries } from "./not-planned.ts";
import type { JournalEntry } from "./rows/entries.ts";
import type { ChangeStore } from "./run-form.ts";

/** How a run ends that is cancelled before it was started. */
const WITHDRAWN: Ending = { cause: "cancelled", reason: ownReason("WITHDRAWN") };
const CANCELLED: Ending = { cause: "cancelled", reason: ownReason("CANCELLED") };

/**
 * Ends a run that was not started, so that nobody can start it any more: false where another driver has. It ends with
 * nothing attempted: as cancelled, or as `ending` says, where it could not be planned.
 */
export async function withdraw(
  { store, clock }: { readonly store: ChangeStore; readonly clock: Clock },
  runId: string,
  ending: Ending = WITHDRAWN,
): Promise<boolean> {
  if ((await store.read(runId))?.started !== false) return false;
  const found = await readBack(store, runId);
  if (found === undefined) return false;
  const lease = await startedBy({ store, clock }, runId);
  if (lease === undefined) return false;
  try {
    await end({ store, clock }, found, { ending, lease });
    const summary = summaryOf(found.header, found.state, restingStatus(found.state));
    await store.summarise(runId, isWithdrawn(found.state) ? { ...summary, open: false } : summary);
  } finally {
    await lease.release();
  }
  return true;
}

/** Ends a run as cancelled that was cut short, and that nobody drives: to be called with its lease. */
export async function cancelInterrupted(
  { store, clock }: { readonly store: ChangeStore; readonly clock: Clock },
  runId: string,
  lease: Lease,
): Promise<void> {
  const found = await readBack(store, runId);
  if (found === undefined || restingStatus(found.state) !== "interrupted") return;
  await end({ store, clock }, found, { ending: CANCELLED, lease });
  await store.summarise(runId, summaryOf(found.header, found.state, restingStatus(found.state)));
}

/** Ends a run in its journal and its state. What it was only to do so far is in the journal, too, then. */
async function end(
  { store, clock }: { readonly store: ChangeStore; readonly clock: Clock },
  { header: { runId }, state, planned }: KeptRun,
  { ending, lease }: { readonly ending: Ending; readonly lease: Lease },
): Promise<void> {
  const journal = await store.journal(runId, lease);
  try {
    if (!state.planned) {
      journal.append({ t: "replan" });
      if (!planned) for (const entry of objectEntries(state)) journal.append(entry);
      else for await (const entry of (await store.read(runId))?.proposed ?? []) journal.append(entry);
    }
    const stop: JournalEntry = { t: "stop", ...ending, at: clock.now() };
    journal.append(stop);
    state.apply(stop);
  } finally {
    await journal.close();
  }
}

/** How often a process looks again whether another one has started a run, in milliseconds. */
const LOOK_AGAIN_MS = 20;

/**
 * Starts a run for the one caller who may drive it first; undefined where somebody else has started it. The lease comes
 * first: so a run that is started and not driven was cut short.
 */
export async function startedBy(
  {
    store,
    clock,
  }: { readonly store: Pick<RunStore<unknown, unknown>, "lease" | "start" | "read">; readonly clock: Clock },
  runId: string,
): Promise<Lease | undefined> {
  for (;;) {
    const lease = await store.lease(runId);
    if (lease !== undefined) {
      if (await store.start(runId)) return lease;
      await lease.release();
      return undefined;
    }
    if ((await store.read(runId))?.started !== false) return undefined;
    await clock.sleep(LOOK_AGAIN_MS);
  }
}
