import type { Driving, Finishing, Run, RunKind, RunsContext, RunView, RunWatcher, ToolCall } from "./kind.ts";
import type { Reason } from "./outcome.ts";
import { ownReason } from "./reasons.ts";
import { type Reins, reinsOf } from "./reins.ts";
import { countsOf, restingStatus, summaryOf } from "./report.ts";
import type { RunHeader, RunJournal, RunStore, RunSummary } from "./store.ts";
import type { Lease } from "./turn.ts";

/** What driving a run begins with. */
export interface DrivenParts<Call, Entry, State> {
  readonly header: RunHeader<Call>;
  readonly state: State;
  /** How it stands as long as `state` has no objects. */
  readonly meanwhile?: State | undefined;
  /** What the journal takes first; `state` knows it. */
  readonly first?: readonly Entry[] | undefined;
  /** How this process comes to drive it. */
  readonly open: () => Promise<Lease>;
  /** Begins it, or goes on with it, and drives it until it stops. */
  readonly carryOut: (run: Driving<Call, Entry, State>) => Promise<void>;
}

/** A run that this process drives. */
export interface DrivenRun<Call extends ToolCall, State extends RunView<never>> extends Run<Call, State> {
  /** Whether another process has taken it over: then that one knows how it stands. */
  isTakenOver(): boolean;
}

/** How a driven run is stopped, and what it holds meanwhile. */
interface Held {
  readonly reins: Reins;
  lease?: Lease;
  journal?: RunJournal;
}

/** Drives a run in the background. It never rejects: what goes wrong on this machine stops the run, and says so in it. */
export function drivenRun<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>(
  kind: RunKind<Call, Entry, State, Given>,
  { store, clock }: Pick<RunsContext, "store" | "clock">,
  parts: DrivenParts<Call, Entry, State>,
): DrivenRun<Call, State> {
  const { header, state, meanwhile, first = [] } = parts;
  const { runId } = header;
  const watchers = new Set<RunWatcher>();
  const held: Held = { reins: reinsOf(store, runId, () => held.lease) };
  const { reins } = held;
  const isTakenOver = (): boolean => held.lease?.lost.aborted === true;
  const stateNow = (): State => (meanwhile === undefined || state.objects.length > 0 ? state : meanwhile);
  const progress = (waitingMs = 0): void => {
    for (const watcher of watchers) watcher(countsOf(stateNow()), waitingMs);
  };
  let isResting = false;
  let isKept = (): void => {};
  const kept = new Promise<void>((resolve) => {
    isKept = resolve;
  });
  const files = filesOf(store, header, state);
  const carryOut = async (): Promise<void> => {
    const lease = await parts.open();
    held.lease = lease;
    const journal = await store.journal(runId, lease);
    held.journal = journal;
    const append = (entry: Entry): void => journal.append(kind.line(entry));
    for (const entry of first) append(entry);
    await parts.carryOut({
      ...{ ...files, meanwhile, lease, append, progress },
      ...{ signal: reins.signal, cause: reins.cause, stop: reins.stop },
      record: (entry) => {
        append(entry);
        state.apply(entry);
      },
      flush: () => journal.flush(),
      intend: (turn) => journal.intend(turn),
      write: () => journal.write(),
      started: async () => {
        await store.start(runId);
        isKept();
      },
      mayLeave: async () => reins.mayLeave(),
    });
  };
  const stopped = (thrown: unknown): void => {
    const reason = kind.reasonOf?.(thrown) ?? machineError(thrown);
    state.apply(kind.stop({ cause: "interrupted", reason }, clock.now()));
  };
  const confess = async (): Promise<void> => {
    const entry = kind.confession?.(state, clock.now());
    // One that cannot be written leaves what the other process finds out by itself.
    if (entry !== undefined) await held.journal?.confess(kind.line(entry)).catch(() => undefined);
  };
  const rest = async (): Promise<void> => {
    const ifHeld = (work: (lease: Lease) => Promise<void>) => async () => held.lease && work(held.lease);
    const steps = [
      carryOut,
      async () => held.journal?.close(),
      () => reins.end(),
      ifHeld(() => kind.finish(files)),
      ifHeld((lease) => lease.check()),
      ifHeld(() => store.summarise(runId, inShort(kind, header, state))),
      ifHeld((lease) => lease.release()),
    ];
    for (const step of steps) {
      try {
        await step();
      } catch (thrown) {
        // What else belongs to the run is for the process that has taken it over.
        if (isTakenOver()) break;
        stopped(thrown);
      }
      isKept();
    }
    isKept();
    if (isTakenOver()) {
      await held.journal?.close().catch(() => undefined);
      await reins.end();
      await confess();
    }
    isResting = true;
  };
  return {
    kind: kind.name,
    header,
    get state() {
      return stateNow();
    },
    status: () => (isResting ? restingStatus(state) : "running"),
    isTakenOver,
    kept,
    rest: rest(),
    watch: (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    stop: (why) => {
      reins.stop(why);
      return !isTakenOver();
    },
  };
}

/** What the kind of a run may keep of it. */
export function filesOf<Call, State>(
  store: Pick<RunStore, "part" | "keep">,
  header: RunHeader<Call>,
  state: State,
): Finishing<Call, State> {
  const { runId } = header;
  return {
    header,
    state,
    part: (name) => store.part(runId, name),
    keep: (name, pieces) => store.keep(runId, name, pieces),
  };
}

/** A run at rest in short. */
export function inShort<Call extends ToolCall, Entry, State extends RunView<Entry>, Given>(
  { isOpen }: Pick<RunKind<Call, Entry, State, Given>, "isOpen">,
  header: RunHeader<Call>,
  state: State,
): RunSummary {
  const summary = summaryOf(header, state, restingStatus(state));
  return isOpen === undefined ? summary : { ...summary, open: isOpen(header, state) };
}

/** Why an error of this machine stopped a run. */
function machineError(thrown: unknown): Reason {
  return ownReason("STOPPED_BY_ERROR", { error: thrown instanceof Error ? thrown.message : String(thrown) });
}
