import type { Clock } from "../api/clock.ts";
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

/** A run that this process does not drive. */
export function keptRun({ header, started, state }: KeptRun, isDriven: boolean): Run {
  const atRest = started ? restingStatus(state) : unstartedStatus(header, state);
  return {
    header,
    state,
    status: () => (started && isDriven ? "running" : atRest),
    problem: () => undefined,
    asks: () => undefined,
    rest: Promise.resolve(),
    watch: () => () => {},
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
  // Starting it is what only one can do, in whatever process.
  if (found === undefined || !(await store.start(runId))) return false;
  const lease = await store.lease(runId);
  if (lease === undefined) return true;
  try {
    const { header, state } = found;
    const reason = ownReason("WITHDRAWN");
    const at = clock.now();
    const journal = await store.journal(runId, lease);
    const settled: JournalEntry = {
      t: "settled",
      settlements: range(state.objects.length).flatMap((object) =>
        state.standing(object) === "pending" ? [{ object, outcome: "unattempted" as const, reason }] : [],
      ),
    };
    const stop: JournalEntry = { t: "stop", cause: "cancelled", at, reason };
    try {
      const stored = await store.read(runId);
      for await (const entry of stored?.proposed ?? []) journal.append(entry);
      for (const entry of [settled, stop]) {
        journal.append(entry);
        state.apply(entry);
      }
    } finally {
      await journal.close();
    }
    await store.summarise(runId, { ...summaryOf(header, state, restingStatus(state)), open: false });
  } finally {
    await lease.release();
  }
  return true;
}

function range(length: number): readonly number[] {
  return Array.from({ length }, (_, at) => at);
}
