import { beyondCall } from "../platform/clock.ts";
import { messageOf } from "../platform/text.ts";
import type { Run, RunAccess, RunExecution, RunKind, RunsContext, RunView, RunWatcher, ToolCall } from "./kind.ts";
import { ownReason } from "./outcome.ts";
import { countsOf, type ReportedState, restingStatus, statusAtRest, summaryOf } from "./report.ts";
import {
  type HeldRecord,
  LostEntriesError,
  moveRun,
  type RunHeader,
  type RunJournal,
  type RunRecord,
  type RunStore,
  type RunSummary,
  StoreUnavailableError,
  type Transition,
} from "./store.ts";
import { type Lease, LeaseLostError, RECENT_MS } from "./turn.ts";

export interface ExecutionParts<Call, Entry, State> {
  readonly header: RunHeader<Call>;
  readonly state: State;
  readonly meanwhile?: State | undefined;
  readonly first?: readonly Entry[] | undefined;
  readonly open: () => Promise<HeldRecord>;
  readonly carryOut: (run: RunExecution<Call, Entry, State>) => Promise<void>;
}

interface HeldRun<Call, State> {
  readonly files: RunAccess<Call, State>;
  readonly stopRequests: StopRequests;
  lease?: Lease;
  record?: RunRecord | undefined;
  journal?: RunJournal;
  appendRest?: () => void;
  readonly isKept: () => void;
  readonly progress: (waitingMs?: number) => void;
  /** Whether this process executes the run. If false, it only plans the run and then leaves it to another process. */
  readonly isOurs: boolean;
  isLeft?: true;
}

export interface ExecutedRun<Call extends ToolCall, State extends ReportedState> extends Run<Call, State> {
  /** Writes the entries that the journal still lacks. Returns false if another process has taken over the run. */
  readonly isCurrent: () => Promise<boolean>;
}

interface AfterExecution<Call extends ToolCall, State extends ReportedState> {
  /** Called when this process has stopped executing the run. */
  readonly ended: () => void;
  readonly find: () => Promise<Run<Call, State> | undefined>;
}

/**
 * Executes a run in the background. If another process takes over, the returned run shows what that other process
 * stores. Its `rest` never rejects: an error stops the run and becomes its reported reason.
 */
export function executeRun<Call extends ToolCall, Entry, State extends RunView<Entry>>(
  kind: RunKind<Call, Entry, State, never>,
  context: Pick<RunsContext, "store" | "clock" | "around" | "onRest">,
  parts: ExecutionParts<Call, Entry, State>,
  after: AfterExecution<Call, State>,
): ExecutedRun<Call, State> {
  const { header, state, meanwhile } = parts;
  const watchers = new Set<RunWatcher>();
  const stateNow = (): State => (meanwhile === undefined || state.objects.length > 0 ? state : meanwhile);
  let isResting = false;
  /** `other`: the run as stored by the process that has taken it over. `isLookedFor`: true until it has been read. */
  let other: Run<Call, State> | undefined;
  let isLookedFor = true;
  let isKept = (): void => {};
  const kept = new Promise<void>((resolve) => {
    isKept = resolve;
  });
  // A run of a kind that is planned first is already stored.
  if (kind.isPlannedFirst) isKept();
  const { left } = context.store;
  const ended = left?.drives(header.project);
  const held: HeldRun<Call, State> = {
    isOurs: left === undefined || ended !== undefined,
    files: filesOf(context.store, header, state),
    stopRequests: stopRequestsOf(context.store, header.runId, () => held.lease),
    isKept,
    progress: (waitingMs = 0) => {
      for (const watcher of watchers) watcher(countsOf(stateNow()), waitingMs);
    },
  };
  const isTakenOver = (): boolean => isLost(held) || held.isLeft === true;
  const { around = (_run, work) => work() } = context;
  const driving = beyondCall(() =>
    around({ header, state }, async () => {
      await bringToRest(kind, context, parts, held);
      return isTakenOver() ? undefined : restingStatus(state);
    }),
  );
  const rest = driving.then(async (status) => {
    isResting = true;
    ended?.();
    if (status !== undefined) context.onRest?.({ kind: kind.name, header, status, counts: countsOf(state) });
    after.ended();
    if (!isTakenOver()) return;
    let isAway = false;
    other = await after.find().catch((thrown: unknown) => {
      isAway = thrown instanceof StoreUnavailableError;
      return undefined;
    });
    isLookedFor = isAway;
    await other?.rest;
  });
  return {
    kind: kind.name,
    header,
    kept,
    rest,
    get state() {
      return other?.state ?? stateNow();
    },
    status: () => {
      // After a takeover, the run counts as running until the state that the other process stored was read.
      if (!isResting || (isTakenOver() && isLookedFor)) return "running";
      return other?.status() ?? restingStatus(state);
    },
    async isCurrent() {
      if (held.lease === undefined) return true;
      if (isLost(held) || !(await held.lease.stillHeld())) return false;
      // The next call may reach another process, which sees only the store. So this stores all results first.
      held.appendRest?.();
      await held.journal?.write();
      return !isLost(held);
    },
    watch: (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    stop: (why) => {
      held.stopRequests.stop(why);
      return !isTakenOver();
    },
  };
}

function isLost({ lease }: Pick<HeldRun<unknown, unknown>, "lease">): boolean {
  return lease?.lost.aborted === true;
}

async function carryOut<Call extends ToolCall, Entry, State extends RunView<Entry>>(
  kind: RunKind<Call, Entry, State, never>,
  { store }: Pick<RunsContext, "store">,
  { header: { runId }, state, meanwhile, first = [], open, carryOut: work }: ExecutionParts<Call, Entry, State>,
  held: HeldRun<Call, State>,
): Promise<void> {
  const { stopRequests, files, progress } = held;
  const { lease, record, wasLeft } = await open();
  held.lease = lease;
  held.record = record;
  const journal = await store.journal(runId, lease, wasLeft);
  held.journal = journal;
  const append = (entry: Entry): void => journal.append(kind.line(entry));
  for (const entry of first) append(entry);
  /** Stops the work on a run that another process is to execute. Called after planning, when the plan is on disk. */
  const leaveToOthers = (): void => {
    if (!held.isOurs) stopRequests.stop("interrupted");
  };
  await work({
    ...files,
    meanwhile,
    lease,
    append,
    progress,
    signal: stopRequests.signal,
    cause: stopRequests.cause,
    stop: stopRequests.stop,
    mayAnnounce: () => {
      leaveToOthers();
      return !stopRequests.signal.aborted;
    },
    mayLeave: async (intent) => {
      leaveToOthers();
      return stopRequests.mayLeave(intent?.stopAsked);
    },
    record: (entry) => {
      append(entry);
      state.apply(entry);
    },
    flush: () => journal.flush(),
    intend: (turn) => journal.intend(turn),
    write: () => void journal.write(),
    beforeReport: (appendRest) => {
      held.appendRest = appendRest;
    },
    markStarted: async () => {
      if (held.record?.status !== "running") held.record = await moved(store, runId, held, { status: "running" });
      held.isKept();
    },
  });
}

async function bringToRest<Call extends ToolCall, Entry, State extends RunView<Entry>>(
  kind: RunKind<Call, Entry, State, never>,
  context: Pick<RunsContext, "store" | "clock">,
  parts: ExecutionParts<Call, Entry, State>,
  held: HeldRun<Call, State>,
): Promise<void> {
  const { store, clock } = context;
  const { header, state } = parts;
  const ifHeld = (work: (lease: Lease) => Promise<unknown>) => async () => held.lease && work(held.lease);
  const steps = [
    () => carryOut(kind, context, parts, held),
    async () => held.journal?.close(),
    async () => held.stopRequests.end(),
    ifHeld(async () => held.isLeft || kind.finish?.(held.files)),
    ifHeld((lease) => lease.check(RECENT_MS)),
    ifHeld(async () => {
      // Other processes continue runs that are `running` without a lease. So a run left to them keeps this status.
      if (shouldLeaveToOthers(store, held, state)) held.isLeft = true;
      const rest = summaryAtRest(kind, header, state);
      if (!held.isLeft) await moved(store, header.runId, held, { status: statusAtRest(state), rest });
    }),
    // If the run is left to other processes, the one that continues it handles the requests to stop it. Requests that
    // cannot be removed do no harm, because resuming the run removes them as well.
    async () => held.isLeft || held.stopRequests.forget().catch(() => undefined),
    ifHeld((lease) => lease.release()),
    ifHeld(async () => held.isLeft && store.left?.leave(header.runId)),
  ];
  let reported: unknown;
  for (const step of steps) {
    try {
      await step();
    } catch (thrown) {
      if (isLost(held)) break;
      // The record stays as it is. The first process that reaches the store again continues the run.
      const isBegun = held.journal !== undefined || held.record?.status === "running";
      if (thrown instanceof StoreUnavailableError && isBegun) held.isLeft = true;
      // A journal that has lost entries throws the same error again when it is closed.
      if (held.isLeft || thrown === reported) continue;
      const error = messageOf(thrown);
      const reason = kind.reasonOf?.(thrown) ?? ownReason("STOPPED_BY_ERROR", { error });
      const stop = kind.stop({ cause: "interrupted", reason }, clock.now());
      state.apply(stop);
      // The journal does not show that entries were lost. So this entry gives other processes the reason. If it cannot
      // be stored, they still see that the run was interrupted.
      if (thrown instanceof LostEntriesError) await held.journal?.appendLate(kind.line(stop)).catch(() => undefined);
      reported = thrown;
    }
    held.isKept();
  }
  held.isKept();
  if (isLost(held)) await handOver(kind, state, held, clock.now());
}

function moved(
  store: RunStore,
  runId: string,
  { lease, record }: Pick<HeldRun<unknown, unknown>, "lease" | "record">,
  to: Transition,
): Promise<RunRecord | undefined> {
  return moveRun(store, runId, () => to, { ...(lease && { lease }), ...(record && { record }) });
}

function shouldLeaveToOthers<Call, State extends RunView<never>>(
  { left }: Pick<RunStore, "left">,
  { stopRequests }: HeldRun<Call, State>,
  state: State,
): boolean {
  const isStopped = stopRequests.signal.aborted && stopRequests.cause() === "interrupted";
  return left !== undefined && isStopped && restingStatus(state) === "interrupted";
}

async function handOver<Call extends ToolCall, Entry, State extends RunView<Entry>>(
  kind: RunKind<Call, Entry, State, never>,
  state: State,
  { journal, stopRequests }: HeldRun<Call, State>,
  at: number,
): Promise<void> {
  await journal?.close().catch(() => undefined);
  stopRequests.end();
  const entry = kind.lateEntry?.(state, at);
  // If this entry is lost, the process that has taken over the run reads from the service what was applied.
  if (entry !== undefined) await journal?.appendLate(kind.line(entry)).catch(() => undefined);
}

export function filesOf<Call, State>(
  store: Pick<RunStore, "parts">,
  header: RunHeader<Call>,
  state: State,
): RunAccess<Call, State> {
  const { runId } = header;
  return {
    header,
    state,
    part: (name) => store.parts.read(runId, name),
    keep: (name, pieces) => store.parts.keep(runId, name, pieces),
  };
}

export function summaryAtRest<Call extends ToolCall, Entry, State extends RunView<Entry>>(
  { isOpen }: Pick<RunKind<Call, Entry, State, never>, "isOpen">,
  header: RunHeader<Call>,
  state: State,
): RunSummary {
  const summary = summaryOf(header, state, restingStatus(state));
  return isOpen === undefined ? summary : { ...summary, open: isOpen(header, state) };
}

const STOP_CHECK_MS = 100;
const STOP_CHECK_IF_NOTIFIED_MS = 1000;

type StopRequests = ReturnType<typeof stopRequestsOf>;

/**
 * Watches whether a run must stop. Its `signal` is aborted when another process requests a stop or has taken the run
 * over. `lease` returns the lease of the run, or undefined before this process holds it.
 */
function stopRequestsOf(
  { stops }: Pick<RunStore, "stops">,
  runId: string,
  lease: () => Pick<Lease, "check"> | undefined,
) {
  const controller = new AbortController();
  let cause: "cancelled" | "interrupted" = "interrupted";
  const stop = (why: "cancelled" | "interrupted"): void => {
    // A confirmed request to cancel stays valid if this process is stopped as well.
    if (cause !== "cancelled") cause = why;
    controller.abort(new DOMException(`the run was ${why}`, "AbortError"));
  };
  const isAsked = async (): Promise<boolean> => (await stops.asked(runId)).length > 0;
  /**
   * Returns whether a request that the journal announces may still be sent to the service. Stops the run if a stop was
   * requested. Call it right before sending. Once a stop was confirmed to the caller, no request that is announced
   * later is sent. `asked`: whether a stop was requested when the announcement was stored, if that is known.
   */
  const mayLeave = async (asked?: boolean): Promise<boolean> => {
    if (!controller.signal.aborted && (asked ?? (await isAsked()))) stop("cancelled");
    return !controller.signal.aborted;
  };
  const look = async (): Promise<void> => {
    if ((await mayLeave()) && (await isTakenFrom(lease()))) stop("interrupted");
  };
  // A failed check has no effect: the timer repeats it, and every request is checked before it is sent.
  const lookNow = (): void => void look().catch(() => undefined);
  const notWatched = stops.watch?.(runId, lookNow);
  const timer = setInterval(lookNow, notWatched === undefined ? STOP_CHECK_MS : STOP_CHECK_IF_NOTIFIED_MS).unref();
  return {
    signal: controller.signal,
    cause: () => cause,
    stop,
    mayLeave,
    end(): void {
      clearInterval(timer);
      notWatched?.();
    },
    async forget(): Promise<void> {
      if (await isTakenFrom(lease())) return;
      await stops.forget(runId, await stops.asked(runId));
    },
  };
}

async function isTakenFrom(lease: Pick<Lease, "check"> | undefined): Promise<boolean> {
  try {
    await lease?.check(RECENT_MS);
    return false;
  } catch (thrown) {
    if (thrown instanceof LeaseLostError) return true;
    throw thrown;
  }
}
