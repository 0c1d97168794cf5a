import type { Clock } from "../api/clock.ts";
import { type KeptRun, readBack } from "./kept-runs.ts";
import type { Lease } from "./lease.ts";
import { ownReason } from "./reasons.ts";
import { restingStatus, summaryOf } from "./report.ts";
import type { RunStore } from "./store.ts";
import type { JournalEntry } from "./work.ts";

/**
 * Ends a run that was not started, so that nobody can start it any more: false where somebody has. It ends as cancelled
 * with nothing attempted.
 */
export async function withdraw(
  { store, clock }: { readonly store: RunStore; readonly clock: Clock },
  runId: string,
): Promise<boolean> {
  if ((await store.read(runId))?.started !== false) return false;
  const found = await readBack(store, runId);
  if (found === undefined) return false;
  const lease = await startedBy({ store, clock }, runId);
  if (lease === undefined) return false;
  try {
    await endCancelled({ store, clock }, found, { code: "WITHDRAWN", lease });
    await store.summarise(runId, { ...summaryOf(found.header, found.state, restingStatus(found.state)), open: false });
  } finally {
    await lease.release();
  }
  return true;
}

/** Ends a run as cancelled that was cut short, and that nobody drives: to be called with its lease. */
export async function cancelInterrupted(
  { store, clock }: { readonly store: RunStore; readonly clock: Clock },
  runId: string,
  lease: Lease,
): Promise<void> {
  const found = await readBack(store, runId);
  if (found === undefined || restingStatus(found.state) !== "interrupted") return;
  await endCancelled({ store, clock }, found, { code: "CANCELLED", lease });
  await store.summarise(runId, summaryOf(found.header, found.state, restingStatus(found.state)));
}

/** Ends a run as cancelled in its journal and its state. What was only proposed so far is in the journal, too, then. */
async function endCancelled(
  { store, clock }: { readonly store: RunStore; readonly clock: Clock },
  { header: { runId }, state }: KeptRun,
  { code, lease }: { readonly code: "WITHDRAWN" | "CANCELLED"; readonly lease: Lease },
): Promise<void> {
  const reason = ownReason(code);
  const entries: JournalEntry[] = [];
  if (!state.planned) {
    for await (const entry of (await store.read(runId))?.proposed ?? []) entries.push(entry);
    if (entries.length > 0) entries.unshift({ t: "replan" });
    const settlements = range(state.objects.length).flatMap((object) =>
      state.standing(object) === "pending" ? [{ object, outcome: "unattempted" as const, reason }] : [],
    );
    entries.push({ t: "settled", settlements });
    state.apply({ t: "settled", settlements });
  }
  const stop: JournalEntry = { t: "stop", cause: "cancelled", at: clock.now(), reason };
  const journal = await store.journal(runId, lease);
  try {
    for (const entry of [...entries, stop]) journal.append(entry);
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

function range(length: number): readonly number[] {
  return Array.from({ length }, (_, at) => at);
}
