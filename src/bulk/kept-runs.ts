import type { Clock } from "../api/clock.ts";
import type { Elsewhere } from "./elsewhere.ts";
import type { Lease } from "./lease.ts";
import type { Plan } from "./plan/plan.ts";
import { ownReason } from "./reasons.ts";
import { type RunStatus, restingStatus, summaryOf } from "./report.ts";
import type { Run } from "./run.ts";
import { RunState } from "./run-state.ts";
import type { RunHeader, RunStore } from "./store.ts";
import type { JournalEntry } from "./work.ts";

/** A run as the disk has it. */
export interface KeptRun {
  readonly header: RunHeader;
  readonly started: boolean;
  readonly state: RunState;
}

/**
 * Reads a run; undefined when there is none. One that was not planned yet in its journal stands as what a person was
 * asked about, where somebody was.
 */
export async function readBack(store: RunStore, runId: string): Promise<KeptRun | undefined> {
  const stored = await store.read(runId);
  if (stored === undefined) return undefined;
  const { header, started } = stored;
  const journaled = started ? await stateFrom(stored.entries) : new RunState();
  if (journaled.planned || journaled.stopped !== undefined) return { header, started, state: journaled };
  const proposed = await stateFrom(stored.proposed);
  return { header, started, state: proposed.objects.length > 0 ? proposed : journaled };
}

async function stateFrom(entries: AsyncIterable<JournalEntry>): Promise<RunState> {
  let state = new RunState();
  for await (const entry of entries) {
    if (entry.t === "replan") state = new RunState();
    else state.apply(entry);
  }
  return state;
}

/** A run that nobody drives. */
export function keptRun({ header, started, state }: KeptRun): Run {
  const status = started ? restingStatus(state) : unstartedStatus(header, state);
  return {
    header,
    state,
    status: () => status,
    problem: () => undefined,
    asks: () => undefined,
    rest: Promise.resolve(),
    watch: () => () => {},
    stop: () => false,
  };
}

/** A run that another process drives, as it was read last; its counts grow while somebody waits for it. */
export function runElsewhere({ header }: KeptRun, driven: Elsewhere<RunState>): Run {
  return {
    header,
    get state() {
      return driven.state();
    },
    status: () => (driven.isDriven() ? "running" : restingStatus(driven.state())),
    problem: () => undefined,
    asks: () => undefined,
    get rest() {
      return driven.rest();
    },
    watch: (watcher) => driven.watch(watcher),
    stop: () => false,
  };
}

/** A run that was not started waits for a yes, unless nobody could be asked for one since it was never planned. */
function unstartedStatus({ unplanned }: RunHeader, state: RunState): RunStatus {
  return unplanned && state.objects.length === 0 ? "interrupted" : "needs_confirmation";
}

/** What is told of a plan to those who look at a run that waits: its objects, without what would be sent. */
export function* proposalOf(plan: Plan): Generator<JournalEntry> {
  for (const entry of plan.entries()) if (entry.t === "objects" || entry.t === "settled") yield entry;
}

/** Whether a run was cancelled before it was started: nobody agreed to it, and nothing of it may be sent any more. */
export function isWithdrawn({ stopped }: RunState): boolean {
  return stopped?.reason?.code === "WITHDRAWN";
}

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
