import type { Clock } from "../api/clock.ts";
import { type Ending, objectEntries, unplannedState } from "./not-planned.ts";
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
  /** Whether it was planned: what it would do, or does, is known. */
  readonly planned: boolean;
}

/**
 * Reads a run; undefined when there is none. One that was not planned yet in its journal stands as what a person was
 * asked about, where somebody was, and else as what its caller gave.
 */
export async function readBack(store: RunStore, runId: string): Promise<KeptRun | undefined> {
  const stored = await store.read(runId);
  if (stored === undefined) return undefined;
  const { header, started } = stored;
  const journaled = started ? await stateFrom(stored.entries) : new RunState();
  const { planned } = journaled;
  if (planned || journaled.stopped !== undefined) return { header, started, planned, state: journaled };
  const proposed = await stateFrom(stored.proposed);
  if (proposed.objects.length > 0) return { header, started, planned: true, state: proposed };
  // One that is only kept is about to be planned, or to be started with its plan.
  if (!started && header.unplanned === undefined) return { header, started, planned, state: journaled };
  return { header, started, planned, state: await unplannedState(header.call, store.part(runId, "input")) };
}

async function stateFrom(entries: AsyncIterable<JournalEntry>): Promise<RunState> {
  let state = new RunState();
  for await (const entry of entries) {
    if (entry.t === "replan") state = new RunState();
    else state.apply(entry);
  }
  return state;
}

/** A run that this process does not drive. */
export function keptRun({ header, started, planned, state }: KeptRun, isDriven: boolean): Run {
  const atRest = started ? restingStatus(state) : unstartedStatus(header, planned);
  return {
    header,
    state,
    status: () => (started && isDriven ? "running" : atRest),
    asks: () => undefined,
    rest: Promise.resolve(),
    watch: () => () => {},
    stop: () => false,
  };
}

/** A run that was not started waits for a yes, unless nobody could be asked for one since it was never planned. */
function unstartedStatus({ unplanned }: RunHeader, planned: boolean): RunStatus {
  return unplanned && !planned ? "interrupted" : "needs_confirmation";
}

/** What is told of a plan to those who look at a run that waits: its objects, without what would be sent. */
export function* proposalOf(plan: Plan): Generator<JournalEntry> {
  for (const entry of plan.entries()) if (entry.t === "objects" || entry.t === "settled") yield entry;
}

/** Whether a run was cancelled before it was started: nobody agreed to it, and nothing of it may be sent any more. */
export function isWithdrawn({ stopped }: RunState): boolean {
  const code = stopped?.reason?.code;
  return code === "WITHDRAWN" || code === "DECLINED";
}

/** How a run ends that is cancelled before it was started. */
const WITHDRAWN: Ending = { cause: "cancelled", reason: ownReason("WITHDRAWN") };

/**
 * Ends a run that was not started, so that nobody can start it any more: false where somebody has. It ends with nothing
 * attempted: as cancelled, or as `ending` says, where it could not be planned.
 */
export async function withdraw(
  { store, clock }: { readonly store: RunStore; readonly clock: Clock },
  runId: string,
  ending: Ending = WITHDRAWN,
): Promise<boolean> {
  if ((await store.read(runId))?.started !== false) return false;
  const found = await readBack(store, runId);
  // Starting it is what only one can do, in whatever process.
  if (found === undefined || !(await store.start(runId))) return false;
  const lease = await store.lease(runId);
  if (lease === undefined) return true;
  try {
    const { header, state, planned } = found;
    const journal = await store.journal(runId);
    try {
      const stored = await store.read(runId);
      if (planned) for await (const entry of stored?.proposed ?? []) journal.append(entry);
      else for (const entry of objectEntries(state)) journal.append(entry);
      const stop: JournalEntry = { t: "stop", ...ending, at: clock.now() };
      journal.append(stop);
      state.apply(stop);
    } finally {
      await journal.close();
    }
    const summary = summaryOf(header, state, restingStatus(state));
    await store.summarise(runId, isWithdrawn(state) ? { ...summary, open: false } : summary);
  } finally {
    await lease.release();
  }
  return true;
}
