import { isApiError } from "../api/errors.ts";
import { failedRows } from "../files/rejects.ts";
import type { Reason } from "../runs/outcome.ts";
import { ownReason } from "../runs/reasons.ts";
import { type Reins, reinsOf } from "../runs/reins.ts";
import { countsOf, restingStatus, summaryOf } from "../runs/report.ts";
import type { Lease } from "../runs/turn.ts";
import { onExistingOf } from "./call.ts";
import { fileOf, rejectsOf } from "./call-rows.ts";
import { endingOf, objectEntries } from "./not-planned.ts";
import { areAlike, plannedRequests, type Requests } from "./pack/requests.ts";
import type { Plan } from "./plan/plan.ts";
import { removedLines } from "./plan/removed.ts";
import type { Planning } from "./planned-later.ts";
import { rememberTargetings } from "./remember-names.ts";
import type { JournalEntry } from "./rows/entries.ts";
import type { Run, RunsContext, RunWatcher } from "./run.ts";
import type { ChangeHeader, ChangeJournal } from "./run-form.ts";
import { drive } from "./send/drive.ts";
import { requestItems } from "./send/request-items.ts";
import type { Driver } from "./settle/driver.ts";
import type { ServerClock } from "./settle/service-clock.ts";
import { requestReason } from "./state/api-reasons.ts";
import type { RunState } from "./state/change-state.ts";

/** What driving a run needs of the world. */
export interface DrivingContext extends RunsContext {
  readonly serverClock: ServerClock;
}

/** What driving a run needs of it. */
export interface DrivenParts {
  readonly header: ChangeHeader;
  readonly state: RunState;
  readonly journal: ChangeJournal;
  readonly lease: Lease;
  /** How it stands until it is planned, where it is not. */
  readonly unplanned?: RunState | undefined;
}

/** Begins a run that is about to be driven; gives the requests that come first, where they are known. */
export type Begin = (driver: Driver) => Promise<Requests | undefined>;

/** How much of a plan waits in memory for the disk. */
const ENTRIES_PER_FLUSH = 64;

/** A run that this process drives. */
export interface DrivenRun extends Run {
  /** Whether another process has taken it over: then that one knows how it stands. */
  isTakenOver(): boolean;
}

/** Drives a run in the background, beginning with `begin`. It never rejects: what goes wrong stops the run. */
export function drivenRun(context: DrivingContext, of: DrivenParts, begin: Begin): DrivenRun {
  const { header } = of;
  const stateNow = (): RunState => (of.unplanned === undefined || isKnown(of.state) ? of.state : of.unplanned);
  const watchers = new Set<RunWatcher>();
  const reins = reinsOf(context.store, header.runId, () => of.lease);
  const standing: Standing = { isResting: false };
  const tell = (waitingMs: number): void => {
    for (const watcher of watchers) watcher(countsOf(stateNow()), waitingMs);
  };
  const driver = driverOf(context, { ...of, reins, tell });
  return {
    header,
    get state() {
      return stateNow();
    },
    status: () => (standing.isResting ? restingStatus(of.state) : "running"),
    asks: () => undefined,
    isTakenOver: () => of.lease.lost.aborted,
    rest: driveToRest(context, of, standing, { driver, begin, reins }),
    watch: (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    stop: (why) => {
      reins.stop(why);
      return !of.lease.lost.aborted;
    },
  };
}

/** How it stands with the driving of a run. */
interface Standing {
  isResting: boolean;
}

/** Whether a run's own journal tells how it stands. */
function isKnown({ planned, stopped }: RunState): boolean {
  return planned || stopped !== undefined;
}

async function driveToRest(
  { lock, clock, project, store, words, memory }: DrivingContext,
  { header, state, journal, lease, unplanned }: DrivenParts,
  standing: Standing,
  { driver, begin, reins }: { readonly driver: Driver; readonly begin: Begin; readonly reins: Reins },
): Promise<void> {
  const stopped = (thrown: unknown): void => {
    if (state.objects.length === 0 && unplanned !== undefined) {
      for (const entry of objectEntries(unplanned)) state.apply(entry);
    }
    state.apply({ t: "stop", cause: "interrupted", at: clock.now(), reason: stopReason(thrown) });
  };
  const endings = [
    async () => {
      const beginning = await begun(driver, begin, { cause: reins.cause, unplanned });
      if (beginning === "stopped") return;
      await drive(driver, (work) => lock.hold(project, work, driver.signal), reins.cause, beginning);
    },
    () => journal.close(),
    () => reins.end(),
    () => keepRejects({ header, state }, { store, words }),
    () => rememberTargetings(header.call, state, memory),
    () => lease.check(),
    () => store.summarise(header.runId, summaryOf(header, state, restingStatus(state))),
    () => lease.release(),
  ];
  for (const end of endings) {
    try {
      await end();
    } catch (thrown) {
      // What else belongs to the run is for the process that has taken it over.
      if (lease.lost.aborted) break;
      stopped(thrown);
    }
  }
  if (lease.lost.aborted) {
    await journal.close().catch(() => undefined);
    await reins.end();
    // A confession that cannot be written leaves what the other process finds out by itself.
    if (state.late.length > 0)
      await journal.confess({ t: "late", steps: state.late, at: clock.now() }).catch(() => undefined);
  }
  standing.isResting = true;
}

/**
 * Begins a run that may be stopped while it is planned, or may not be planned at all: its journal then tells what it was
 * to do, and why nothing of it was sent.
 */
async function begun(
  driver: Driver,
  begin: Begin,
  { cause: causeOf, unplanned }: { readonly cause: Reins["cause"]; readonly unplanned: RunState | undefined },
): Promise<Requests | "stopped" | undefined> {
  const { state, signal, clock } = driver;
  try {
    return await begin(driver);
  } catch (thrown) {
    const cause = causeOf();
    const stopped = { cause, reason: ownReason(cause === "cancelled" ? "CANCELLED" : "INTERRUPTED") };
    const ending = signal.aborted ? stopped : endingOf(thrown);
    if (ending === undefined || state.planned) throw thrown;
    if (state.objects.length === 0 && unplanned !== undefined) {
      for (const entry of objectEntries(unplanned)) driver.record(entry);
    }
    driver.record({ t: "stop", ...ending, at: clock.now() });
    return "stopped";
  }
}

/** The rows of a run's file that failed. */
async function keepRejects(
  { header: { runId, call }, state }: Pick<DrivenParts, "header" | "state">,
  { store, words }: Pick<DrivingContext, "store" | "words">,
): Promise<void> {
  if (fileOf(call) === undefined) return;
  const failed = failedRows(state);
  await store.keep(runId, "rejects", rejectsOf(call, store.part(runId, "input"), { failed, words }));
}

/**
 * Puts a plan, once it is made, into the state and the journal of a run. What it takes away is kept before it counts as
 * planned: nothing leaves before. Gives the requests that come first, where looking again could only find the same.
 */
export async function recordPlan(
  { api, store, clock }: DrivingContext,
  { driver, journal, header: { runId } }: Pick<DrivenParts, "journal" | "header"> & { readonly driver: Driver },
  planning: Plan | Planning,
): Promise<Requests | undefined> {
  const plan = "plan" in planning ? await madeBy(planning, driver.signal) : planning;
  driver.state.adopt(plan);
  let waiting = 0;
  for (const entry of plan.entries()) {
    journal.append(entry);
    // Rows are in memory once, wherever they are named.
    if (entry.t !== "rows") waiting += 1;
    if (waiting === ENTRIES_PER_FLUSH) {
      await journal.flush();
      waiting = 0;
    }
  }
  // What comes next goes on meanwhile; the first request waits for it.
  journal.write();
  if (plan.removed.length > 0) {
    await driver.lease.renew();
    await store.keep(runId, "removed", removedLines(plan.removed, api, driver.signal));
  }
  const requests = plannedRequests(plan.steps);
  driver.record({ t: "planned", requests: requests.length, at: clock.now() });
  return driver.apartBy === undefined && areAlike(plan.steps, requests) ? requests : undefined;
}

function driverOf(
  { api, clock, random, retryBudgetMs, routes, serverClock }: DrivingContext,
  of: DrivenParts & { readonly reins: Reins; readonly tell: (waitingMs: number) => void },
): Driver {
  const { state, journal, lease, reins, tell } = of;
  const perTargeting = routes.addOptions.path.includes("{targetingId}");
  const record = (entry: JournalEntry): void => {
    journal.append(entry);
    state.apply(entry);
  };
  return {
    api,
    state,
    clock,
    serverClock,
    random,
    retryBudgetMs,
    onExisting: onExistingOf(of.header.call),
    signal: reins.signal,
    record,
    change: (changes, more = {}) => {
      record({ t: "answer", at: clock.now(), changes, ...more });
      tell(0);
    },
    flush: () => journal.flush(),
    withhold: () => record({ t: "withheld", at: clock.now() }),
    intend: (turn) => journal.intend(turn),
    mayLeave: reins.mayLeave,
    lease,
    connect: async (operation) => api.connect?.(operation),
    send: (operation, ids, fence) => {
      const inPath = operation === "addOptions" && perTargeting;
      const items = requestItems(state, ids, inPath);
      const targetingId = inPath ? targetingOf(state, ids[0]) : undefined;
      return api.bulk(operation, items, { fence, ...(targetingId !== undefined && { targetingId }) });
    },
    waiting: tell,
    ...(perTargeting && {
      apartBy: (step: number) =>
        state.steps.partAt(step)?.operation === "addOptions" ? (targetingOf(state, step) ?? "") : "",
    }),
  };
}

/** The plan, once it is made; a run that is stopped gives it up. */
async function madeBy({ plan, stop }: Planning, signal: AbortSignal): Promise<Plan> {
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await plan;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Why nothing more was sent: an error of this machine, or a read without which nothing may be deleted. */
export function stopReason(thrown: unknown): Reason {
  if (isApiError(thrown)) {
    const reason = requestReason("deleteTargetings", thrown);
    return thrown.effect === "rejected" ? reason : ownReason("RUN_ENDED", { because: reason.code });
  }
  return ownReason("STOPPED_BY_ERROR", { error: thrown instanceof Error ? thrown.message : String(thrown) });
}

function targetingOf(state: RunState, step = -1): string | undefined {
  const binding = state.steps.partAt(step)?.bindings.find(({ field }) => field === "targeting");
  return binding === undefined ? undefined : state.boundId(binding);
}
