import { beyondCall, type Clock } from "../platform/clock.ts";
import { filesOf, summaryAtRest } from "./driving.ts";
import {
  type Ending,
  type ReadBack,
  type Run,
  type RunKind,
  type RunsContext,
  type RunView,
  type RunWatcher,
  type ToolCall,
  understood,
} from "./kind.ts";
import { ownReason } from "./outcome.ts";
import { countsOf, type ReportedState, reportedStatus, restingStatus, statusAtRest } from "./report.ts";
import {
  type HeldRecord,
  isAtRest,
  isOver,
  isUnstarted,
  moveRun,
  type Revision,
  type RunHeader,
  type RunRecord,
  RunStoreError,
  type Status,
  type StoredRun,
  transition,
  undefinedIfUnreadable,
} from "./store.ts";
import type { Lease } from "./turn.ts";

const WITHDRAWN: Ending = { cause: "cancelled", reason: ownReason("WITHDRAWN") };
const CANCELLED: Ending = { cause: "cancelled", reason: ownReason("CANCELLED") };

const LOOK_AGAIN_MS = 20;

export interface LoadedRun<Call, Entry, State> extends ReadBack<Entry, State> {
  readonly header: RunHeader<Call>;
  readonly record: RunRecord;
}

export class LoadedRuns<Call extends ToolCall, Entry, State extends RunView<Entry>> {
  readonly #kind: RunKind<Call, Entry, State, never>;
  readonly #of: Pick<RunsContext, "store" | "clock" | "onRest">;
  readonly #lastRead = new RunCache<LoadedRun<Call, Entry, State>>();
  readonly #followed = new Map<string, { readonly run: Run<Call, State>; readonly look: () => Promise<boolean> }>();
  readonly #ending = new AbortController();

  constructor(kind: RunKind<Call, Entry, State, never>, of: Pick<RunsContext, "store" | "clock" | "onRest">) {
    this.#kind = kind;
    this.#of = of;
  }

  /** Finds a stored run. If another process executes it, the run shows what that process stores once `rest` is read. */
  async find(runId: string): Promise<Run<Call, State> | undefined> {
    const followed = this.#followed.get(runId);
    if (followed !== undefined && (await followed.look())) return followed.run;
    const found = await this.#lastReadOf(runId);
    if (found === undefined) return undefined;
    // A planned, waiting or ended run is not executed, even if leased: a process may be planning it again.
    const { status } = found.record;
    const mayBeDriven = status !== "planned" && status !== "waiting" && !isOver(found.record);
    const isDriven = () => this.#of.store.isDriven(runId);
    if (mayBeDriven && (await isDriven())) return this.#follow(found, isDriven);
    // The run may have stopped after the first read, so it is read again.
    return this.#atRest((mayBeDriven ? await this.#lastReadOf(runId) : undefined) ?? found);
  }

  async stored(runId: string): Promise<StoredRun<Call, Entry> | undefined> {
    const stored = await this.#of.store.read(runId);
    return stored && understood(this.#kind, stored);
  }

  /** Reads a run. Undefined if it is just being started or not stored. `isDrivenHere`: its lease is held here. */
  async read(runId: string, isDrivenHere = false): Promise<LoadedRun<Call, Entry, State> | undefined> {
    const stored = await this.stored(runId);
    return stored && this.#readFrom(stored, isDrivenHere);
  }

  /** Reads a run whose process has ended, to continue it. Throws a RunStoreError if only `resume_run` may do so. */
  async readLeft(stored: StoredRun<Call, Entry>): Promise<LoadedRun<Call, Entry, State> | undefined> {
    const found = await this.#readFrom(stored, true);
    if (found === undefined || (this.#kind.mayBeClaimed?.(found, this.#of.clock.now()) ?? true)) return found;
    throw new RunStoreError(
      `run ${stored.header.runId} waits until a call resumes it`,
      "Call resume_run with the ID of the run.",
    );
  }

  async #readFrom(
    stored: StoredRun<Call, Entry>,
    isDrivenHere: boolean,
  ): Promise<LoadedRun<Call, Entry, State> | undefined> {
    const { store } = this.#of;
    const { header, record } = stored;
    const { runId } = header;
    const read = await this.#kind.readBack({
      ...stored,
      part: (name) => store.parts.read(runId, name),
      isDriven: async () => !isDrivenHere && (await store.isDriven(runId)),
    });
    const { ending } = record;
    if (ending !== undefined) read?.state.apply(this.#kind.stop(ending, ending.at));
    return read && { header, record, ...read };
  }

  /** Takes the lease of a run. Waits while another process plans it. Undefined if that process starts or ends it. */
  async leaseToStart(runId: string): Promise<Lease | undefined> {
    const { store, clock } = this.#of;
    for (;;) {
      const lease = await store.lease(runId);
      if (lease !== undefined) return lease;
      const record = await store.record(runId);
      if (record === undefined || !isUnstarted(record.status)) return undefined;
      await clock.sleep(LOOK_AGAIN_MS);
    }
  }

  /** Marks a run as running. Undefined if it was started or ended before. */
  async markStarted(runId: string, lease: Lease): Promise<HeldRecord | undefined> {
    const start = ({ status }: RunRecord) => (isUnstarted(status) ? { status: "running" as const } : undefined);
    const record = await moveRun(this.#of.store, runId, start, { lease });
    return record && { lease, record };
  }

  /** Ends a run that is not started, so that no process can start it any more. Returns false if that is impossible. */
  async withdraw(runId: string, { reason, cause } = WITHDRAWN): Promise<boolean> {
    const { store, clock } = this.#of;
    for (;;) {
      const found = this.#kind.isPlannedFirst ? await this.read(runId) : undefined;
      if (found === undefined || !isUnstarted(found.record.status)) return false;
      const at = clock.now();
      const ending = reason === undefined ? { cause, at } : { cause, reason, at };
      found.state.apply(this.#kind.stop(ending, at));
      const status = endedAs(ending);
      const isFinal = cause === "cancelled" ? { isFinal: true as const } : {};
      const rest = summaryAtRest(this.#kind, found.header, found.state);
      const after = transition(found.record, { status, ending, rest, ...isFinal });
      if (after === undefined) return false;
      if (!(await store.update(runId, after))) continue;
      this.#noteRest(found);
      return true;
    }
  }

  /** Cancels a run unless it is finished. If another process plans or executes it, only asks that process to stop. */
  async cancel(runId: string): Promise<void> {
    const stored = await this.stored(runId);
    if (stored === undefined) return;
    if (isUnstarted(stored.record.status) && (await this.withdraw(runId))) return;
    const { store } = this.#of;
    let free = await store.lease(runId);
    if (free === undefined) {
      await store.stops.ask(runId);
      // The lease is free if the executing process ended before it saw the request to stop.
      free = (await store.isDriven(runId)) ? undefined : await store.lease(runId);
    }
    await this.#withLease(free, runId, async (found, lease) => {
      await store.stops.forget(runId, await store.stops.asked(runId));
      const lost = this.#asLeft(found.state);
      if (restingStatus(found.state) === "interrupted") await this.#end(found, CANCELLED, lease, lost);
      else if (isAtRest(found.record.status)) return;
      await this.#bringToRest(found, lease);
      this.#noteRest(found);
    });
  }

  /** Reads a run, calls `work` with it, and releases the lease. Returns undefined if there is no lease or no run. */
  async #withLease<T>(
    lease: Lease | undefined,
    runId: string,
    work: (found: LoadedRun<Call, Entry, State>, lease: Lease) => Promise<T>,
  ): Promise<T | undefined> {
    if (lease === undefined) return undefined;
    try {
      const found = await this.read(runId, true);
      return found && (await work(found, lease));
    } finally {
      await lease.release();
    }
  }

  /**
   * Ends a started run so that it cannot be resumed, unless `endingOf` returns undefined for its state. Returns false if
   * it is not started or is being executed.
   */
  async endForGood(runId: string, endingOf: (state: State) => Ending | undefined): Promise<boolean> {
    const isEnded = await this.#withLease(await this.#of.store.lease(runId), runId, async (found, lease) => {
      if (isUnstarted(found.record.status)) return false;
      const ending = endingOf(found.state);
      if (ending === undefined) return true;
      await this.#end(found, ending, lease, this.#asLeft(found.state));
      await this.#putToRest(found, lease, { status: "cancelled", isFinal: true });
      this.#noteRest(found);
      return true;
    });
    return isEnded === true;
  }

  async recoverOrphans(isDrivenHere: (runId: string) => boolean): Promise<void> {
    for (const runId of await this.#of.store.list({ unfinished: "all" })) {
      if (!isDrivenHere(runId)) await undefinedIfUnreadable(this.settle(runId));
    }
  }

  stopFollowing(): void {
    this.#ending.abort();
  }

  /** Stores the status and summary of a run, if the process that executed it ended before it could do so. */
  async settle(runId: string): Promise<void> {
    const { store } = this.#of;
    const record = await store.record(runId);
    if (record === undefined || isAtRest(record.status)) return;
    const unfinished = await this.read(runId);
    // A dry run needs no process until it is applied, so it is not an orphan.
    if (unfinished === undefined || unfinished.header.dryRun || (await store.isDriven(runId))) return;
    await this.#withLease(await store.lease(runId), runId, async (found, lease) => {
      this.#asLeft(found.state);
      await this.#bringToRest(found, lease);
    });
  }

  async #end(
    { header, state, first = [], unwritten }: LoadedRun<Call, Entry, State>,
    ending: Ending,
    lease: Lease,
    lost: readonly Entry[] = [],
  ): Promise<void> {
    const journal = await this.#of.store.journal(header.runId, lease);
    const append = (entry: Entry): void => journal.append(this.#kind.line(entry));
    try {
      for (const entry of first) append(entry);
      for await (const entry of unwritten?.() ?? []) append(entry);
      const stop = this.#kind.stop(ending, this.#of.clock.now());
      for (const entry of [...lost, stop]) append(entry);
      state.apply(stop);
    } finally {
      await journal.close();
    }
  }

  async #bringToRest(run: LoadedRun<Call, Entry, State>, lease: Lease): Promise<void> {
    await this.#kind.finish?.(filesOf(this.#of.store, run.header, run.state));
    await this.#putToRest(run, lease, { status: statusAtRest(run.state) });
  }

  #noteRest({ header, state }: LoadedRun<Call, Entry, State>): void {
    const status = restingStatus(state);
    this.#of.onRest?.({ kind: this.#kind.name, header, status, counts: countsOf(state) });
  }

  async #putToRest(
    { header, state, record }: LoadedRun<Call, Entry, State>,
    lease: Lease,
    to: Pick<RunRecord, "status" | "isFinal">,
  ): Promise<void> {
    const rest = summaryAtRest(this.#kind, header, state);
    await moveRun(this.#of.store, header.runId, () => ({ ...to, rest }), { lease, record });
  }

  /**
   * Gives the items of requests that a crash left unanswered the outcome `unknown`, only in the state. Returns the
   * journal entries for this, which the caller can write.
   */
  #asLeft(state: State): readonly Entry[] {
    const lost = this.#kind.lost?.(state) ?? [];
    for (const entry of lost) state.apply(entry);
    return lost;
  }

  async #lastReadOf(runId: string): Promise<LoadedRun<Call, Entry, State> | undefined> {
    return this.#lastRead.get(runId, await this.#of.store.revision(runId), () => this.read(runId));
  }

  #atRest(found: LoadedRun<Call, Entry, State>): Run<Call, State> {
    const { header, state } = found;
    this.#asLeft(state);
    state.settleUnanswered?.();
    const status = reportedStatus(found.record, state);
    return {
      kind: this.#kind.name,
      header,
      state,
      kept: Promise.resolve(),
      rest: Promise.resolve(),
      status: () => status,
      watch: () => () => {},
      stop: () => false,
    };
  }

  #follow(found: LoadedRun<Call, Entry, State>, isDriven: () => Promise<boolean>): Run<Call, State> {
    const { header } = found;
    const { runId } = header;
    let last = found;
    const driven = followedRun(found.state, {
      clock: this.#of.clock,
      signal: this.#ending.signal,
      isDriven,
      read: async () => {
        last = (await this.#lastReadOf(runId)) ?? last;
        return last.state;
      },
      changes: this.#of.store.watch && ((listener) => this.#of.store.watch?.(runId, listener)),
      whileFollowed: async (rest) => {
        const followed = { run, look: driven.look };
        this.#followed.set(runId, followed);
        await rest;
        if (this.#followed.get(runId) === followed) this.#followed.delete(runId);
      },
    });
    const run: Run<Call, State> = {
      kind: this.#kind.name,
      header,
      kept: Promise.resolve(),
      get state() {
        return driven.state();
      },
      status: () => (driven.isDriven() ? "running" : reportedStatus(last.record, last.state)),
      get rest() {
        return driven.rest();
      },
      watch: (watcher) => driven.watch(watcher),
      stop: () => false,
    };
    return run;
  }
}

function endedAs({ cause, reason }: Ending): Status {
  if (cause !== "cancelled") return cause === "interrupted" ? "interrupted" : "finished";
  if (reason?.code === "DECLINED") return "declined";
  return reason?.code === "NOT_DECIDED" ? "expired" : "cancelled";
}

const MAX_RUNS = 4;
/** The maximum size of cached runs in bytes on disk. In memory, a run takes several times as much. */
const MAX_BYTES = 24 * 1024 * 1024;

export class RunCache<T> {
  readonly #kept = new Map<string, Revision & { readonly found: T }>();

  async get(runId: string, revision: Revision | undefined, read: () => Promise<T | undefined>): Promise<T | undefined> {
    const known = this.#kept.get(runId);
    this.#kept.delete(runId);
    if (known !== undefined && known.text === revision?.text) {
      this.#kept.set(runId, known);
      return known.found;
    }
    const found = await read();
    if (found === undefined || revision === undefined || revision.bytes > MAX_BYTES) return found;
    this.#kept.delete(runId);
    this.#kept.set(runId, { ...revision, found });
    this.#leaveOutOldest();
    return found;
  }

  #leaveOutOldest(): void {
    let bytes = 0;
    for (const one of this.#kept.values()) bytes += one.bytes;
    for (const [runId, one] of this.#kept) {
      if (this.#kept.size <= MAX_RUNS && bytes <= MAX_BYTES) return;
      this.#kept.delete(runId);
      bytes -= one.bytes;
    }
  }
}

const LOOK_MS = 100;
const CHECK_IF_NOTIFIED_MS = 500;
/** The time between two reads, as a multiple of the duration of a read. `PAUSE_MS` limits it. */
const READ_SHARE = 10;
const READ_SHARE_IF_NOTIFIED = 4;
const PAUSE_MS = { notified: 250, least: 1000, most: 2000 } as const;

interface Following<S> {
  readonly read: () => Promise<S | undefined>;
  readonly isDriven: () => Promise<boolean>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly whileFollowed: (rest: Promise<void>) => Promise<void>;
  readonly changes?: ((listener: () => void) => (() => void) | undefined) | undefined;
}

/** Follows a run that another process executes: reads its journal until no process executes the run any more. */
export function followedRun<S extends ReportedState>(
  first: S,
  { read, isDriven, clock, signal, whileFollowed, changes }: Following<S>,
) {
  const watchers = new Set<RunWatcher>();
  let state = first;
  let driven = true;
  let resting: Promise<void> | undefined;
  /** Checks if a process executes the run, then reads it. In the other order, an end could come with an old state. */
  const look = atOnce(async () => {
    const goesOn = await isDriven();
    state = (await read()) ?? state;
    driven = goesOn;
    for (const watcher of watchers) watcher(countsOf(state), 0);
    return goesOn;
  });
  const follow = async (hint: Hint): Promise<void> => {
    let due = clock.now();
    let soonest = due;
    for (;;) {
      const pause = changes === undefined ? LOOK_MS : CHECK_IF_NOTIFIED_MS;
      await hint.orSleep(hint.isGiven ? Math.min(pause, soonest - clock.now()) : pause);
      const now = clock.now();
      const isDue = now >= due || (hint.isGiven && now >= soonest);
      if (!isDue && (await isDriven())) continue;
      hint.isGiven = false;
      if (!(await look())) return;
      const tookMs = clock.now() - now;
      soonest = clock.now() + Math.max(PAUSE_MS.notified, READ_SHARE_IF_NOTIFIED * tookMs);
      due = now + Math.max(PAUSE_MS.least, Math.min(PAUSE_MS.most, READ_SHARE * tookMs), 2 * tookMs);
    }
  };
  return {
    state: () => state,
    isDriven: () => driven,
    look,
    /** Resolves when no process executes the run, or it cannot be followed any more. The first call starts checks. */
    rest(): Promise<void> {
      if (resting === undefined) {
        const hint = hintOf(clock, signal);
        const off = changes?.(hint.give);
        resting = beyondCall(() => follow(hint))
          .catch(() => undefined)
          .finally(off);
        void whileFollowed(resting);
      }
      return resting;
    },
    watch(watcher: RunWatcher): () => void {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
}

/** Simultaneous callers share a call of `work`, but none gets the result of a call that began before it asked. */
function atOnce<T>(work: () => Promise<T>): () => Promise<T> {
  let going: Promise<T> | undefined;
  let next: Promise<T> | undefined;
  const begin = (): Promise<T> => {
    const begun = work().finally(() => {
      if (going === begun) going = undefined;
    });
    going = begun;
    return begun;
  };
  return () => {
    if (going === undefined) return begin();
    next ??= going
      .catch(() => undefined)
      .then(() => {
        next = undefined;
        return begin();
      });
    return next;
  };
}

type Hint = ReturnType<typeof hintOf>;

function hintOf(clock: Clock, signal: AbortSignal) {
  let wake = (): void => {};
  const hint = {
    isGiven: false,
    give: (): void => {
      hint.isGiven = true;
      wake();
    },
    /** Sleeps until a hint arrives or the time is over. Rejects when the signal is aborted. */
    async orSleep(ms: number): Promise<void> {
      signal.throwIfAborted();
      const woken = new Promise<void>((resolve) => {
        // A hint that was given before this sleep does not end it, because the caller already considered it in `ms`.
        wake = hint.isGiven ? () => {} : resolve;
      });
      await Promise.race([clock.sleep(Math.max(0, ms), signal), woken]);
    },
  };
  return hint;
}
