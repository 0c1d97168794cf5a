import { hash } from "node:crypto";
import { beyondCall } from "../platform/clock.ts";
import { undefinedIf } from "../platform/files.ts";
import { type ByteSource, unchanged } from "../platform/held-folder.ts";
import { type ExecutedRun, type ExecutionParts, executeRun } from "./driving.ts";
import { type LoadedRun, LoadedRuns } from "./kept-runs.ts";
import type { Ending, Run, RunExecution, RunKind, RunsContext, RunView, ToolCall } from "./kind.ts";
import { ExecutionRefusedError, type Refusal, understood } from "./kind.ts";
import {
  CREATED,
  DamagedRunError,
  type HeldRecord,
  inLines,
  isUnstarted,
  moveRun,
  NothingStoredError,
  type RunHeader,
  type RunRecord,
  type RunStore,
  RunStoreError,
  type RunSummary,
  type StoredRun,
  StoreUnavailableError,
  undefinedIfUnreadable,
} from "./store.ts";
import { type Lease, releaseOnError } from "./turn.ts";

export interface RunInput {
  readonly bytes: ByteSource;
  readonly digest: string;
}

export type RunMarks = Pick<RunHeader, "unplanned" | "dryRun" | "repeats"> & Requested;

/** The fields of a header that show where a run comes from. Calls that differ only in these count as identical. */
export type Requested = Pick<RunHeader, "client" | "fileName" | "person">;

/**
 * How many milliseconds after a takeover the run is read, so that late entries of its previous process are included.
 * This delays no request, because none may be sent so soon after a takeover.
 */
const READ_LATER_MS = 250;
const ASK_AGAIN_MS = 250;

export class KindRuns<Call extends ToolCall, Entry, State extends RunView<Entry>, Given, Again = Given> {
  readonly kind: RunKind<Call, Entry, State, Given, Again>;
  readonly #context: RunsContext;
  readonly #driven = new Map<string, Run<Call, State> & Partial<Pick<ExecutedRun<Call, State>, "isCurrent">>>();
  readonly #starting = new Map<string, Promise<Run<Call, State> | undefined>>();
  readonly #kept: LoadedRuns<Call, Entry, State>;
  /** The runs whose stop was requested here and could not be stored yet. */
  readonly #owedStops = new Set<string>();
  #isStopping = false;
  readonly #tidyOnce = onceDone(() => this.#kept.recoverOrphans((runId) => this.#driven.has(runId)));

  constructor(kind: RunKind<Call, Entry, State, Given, Again>, context: RunsContext) {
    this.kind = kind;
    this.#context = context;
    this.#kept = new LoadedRuns(kind, context);
  }

  get isDriving(): boolean {
    return this.#driven.size > 0;
  }

  /** Returns a hash of a call and its caller, by which a repeated call finds its runs. Dry runs get another hash. */
  fingerprint(call: Call, caller: string, dryRun?: true): string {
    const { project, environment } = this.#context;
    const about = [this.kind.identity?.(call) ?? call, caller, project, environment];
    return hash("sha256", JSON.stringify(dryRun ? [...about, "dryRun"] : about), "base64url");
  }

  async keep(call: Call, caller: string, input?: RunInput, marks: RunMarks = {}): Promise<RunHeader<Call>> {
    const fingerprint = this.fingerprint(call, caller, marks.dryRun);
    const header = { ...this.#headerOf(call, caller), ...marks, fingerprint };
    const { store } = this.#context;
    await store.create(header);
    if (input !== undefined) await store.parts.keep(header.runId, "input", unchanged(input.bytes, input.digest));
    return header;
  }

  /** Stores the plan of a run. Returns false if the run was started or ended in the meantime. */
  async propose(runId: string, entries: Iterable<Entry>, status: "planned" | "waiting"): Promise<boolean> {
    const { store } = this.#context;
    const { line } = this.kind;
    const lines = function* () {
      for (const entry of entries) yield line(entry);
    };
    await store.parts.keep(runId, "proposed", inLines(lines()));
    const wait = (from: RunRecord) => (isUnstarted(from.status) ? { status } : undefined);
    return (await moveRun(store, runId, wait)) !== undefined;
  }

  async checkExecutable(header: RunHeader<Call>): Promise<void> {
    const refusal = await this.#refusal(header);
    if (refusal !== undefined) throw new ExecutionRefusedError(refusal);
  }

  async #refusal(header: RunHeader<Call>): Promise<Refusal | undefined> {
    return this.#context.mayExecute?.({ kind: this.kind.name, header });
  }

  /**
   * Starts a stored run and executes it in the background. Until it is known which objects the run changes,
   * `meanwhile` is shown as its state. `lease`: set if this process already holds the run's lease. Returns undefined if
   * the run was already started or ended. Throws an ExecutionRefusedError.
   */
  async start(
    header: RunHeader<Call>,
    given: Given,
    { meanwhile, lease }: { readonly meanwhile?: State | undefined; readonly lease?: Lease | undefined } = {},
  ): Promise<Run<Call, State> | undefined> {
    const { runId } = header;
    this.#context.store.mention?.(runId);
    await this.checkExecutable(header);
    const held = lease ?? (await this.#kept.leaseToStart(runId));
    if (held === undefined) return undefined;
    const state = this.kind.newState();
    const carryOut = (run: RunExecution<Call, Entry, State>) => this.kind.start(run, given);
    const starting = this.#kept
      .markStarted(runId, held)
      .then((found) => found && this.#drive({ header, state, meanwhile, open: async () => found, carryOut }))
      .finally(() => this.#starting.delete(runId));
    // Set only now, because `find` waits for it. While this process still plans the run, planning may call `find`.
    this.#starting.set(runId, starting);
    if (lease !== undefined) return starting;
    const run = await releaseOnError(held, () => starting);
    if (run === undefined) await held.release();
    return run;
  }

  /** Stores and starts a run. Its journal begins with `first`. If the run cannot be stored, it ends with that error. */
  startAtOnce(
    call: Call,
    caller: string,
    of: {
      readonly input: RunInput;
      readonly first: ((at: number) => Entry) | undefined;
      readonly given: Given;
      readonly requested?: Requested | undefined;
    },
  ): Run<Call, State> {
    const { input, first, given, requested } = of;
    const { store } = this.#context;
    const header = { ...this.#headerOf(call, caller), ...requested };
    const { runId } = header;
    store.mention?.(runId);
    const open = async (): Promise<HeldRecord> => {
      await this.checkExecutable(header);
      await store.create(header);
      const lease = await store.lease(runId);
      if (lease === undefined)
        throw new RunStoreError("another process executes this run", "get_run shows its progress.");
      await releaseOnError(lease, () => store.parts.keep(runId, "input", unchanged(input.bytes, input.digest)));
      return { lease, record: CREATED };
    };
    const state = this.kind.newState();
    const begin = first === undefined ? [] : [first(header.createdAt)];
    for (const entry of begin) state.apply(entry);
    return this.#drive({ header, state, first: begin, open, carryOut: (run) => this.kind.start(run, given) });
  }

  /**
   * Resumes a run and withdraws earlier requests to stop it. If it is being executed or only planned, just returns it.
   * Throws an ExecutionRefusedError.
   */
  async resume(runId: string, given?: Again): Promise<Run<Call, State> | undefined> {
    const { store } = this.#context;
    this.#owedStops.delete(runId);
    const stored = this.#driven.has(runId) ? undefined : await this.stored(runId);
    const isUnbegun = stored !== undefined && isUnstarted(stored.record.status);
    const isPlanned = isUnbegun && (this.kind.isPlannedFirst || stored.header.dryRun === true);
    if (stored === undefined || isPlanned) return this.find(runId);
    // The run cannot be read yet, because another process is just starting it.
    if (isUnbegun && (await this.#kept.read(runId)) === undefined) return undefined;
    const refusal = await this.#refusal(stored.header);
    // If another process executes the run, this call only shows its progress, which is always allowed.
    if (refusal !== undefined && !(await store.isDriven(runId))) throw new ExecutionRefusedError(refusal);
    const lease = refusal === undefined ? await leaseToResume(store, runId) : undefined;
    return lease === undefined ? this.find(runId) : this.#resume(lease, () => this.#kept.read(runId, true), given);
  }

  async #resume(
    lease: Lease,
    read: () => Promise<LoadedRun<Call, Entry, State> | undefined>,
    given?: Again,
  ): Promise<Run<Call, State>> {
    const parts = await releaseOnError(lease, async () => {
      const found = await read();
      if (found === undefined) throw new RunStoreError("the run is no longer stored", "get_run lists the stored runs.");
      const { header, state, from, first } = found;
      // Each resume stores a new version. A suspended process that has the old version can then no longer write.
      const record = await moveRun(this.#context.store, header.runId, () => ({ status: "running" }), {
        lease,
        record: found.record,
      });
      if (record === undefined)
        throw new RunStoreError("the run is over and cannot be continued", "get_run shows its results.");
      const meanwhile = from && (await this.initialState(header));
      return { record, wasLeft: found.record.status === "running", header, state: from ?? state, meanwhile, first };
    });
    const { record, wasLeft, ...driven } = parts;
    const open = async () => ({ lease, record, wasLeft });
    return this.#drive({ ...driven, open, carryOut: (run) => this.kind.resume(run, given) });
  }

  async initialState({ call, runId }: RunHeader<Call>): Promise<State | undefined> {
    return this.kind.initialState?.(call, this.#context.store.parts.read(runId, "input"));
  }

  /** Finds or resumes an earlier run of an identical call. Otherwise finds one that recently ended unfinished. */
  async findEarlierRun(call: Call, caller: string): Promise<EarlierRuns<Run<Call, State>>> {
    const { store, clock } = this.#context;
    const fingerprint = this.fingerprint(call, caller);
    const driven = this.drivenLike(fingerprint);
    const going = driven && (await this.find(driven.header.runId));
    if (going !== undefined && (await this.retain(going.header.runId))) return { going };
    let ended: EndedRun | undefined;
    for (const runId of (await store.list({ unfinished: { fingerprint } })).slice(0, RECENT_RUNS)) {
      const record = await store.record(runId);
      if (record === undefined || record.rest?.isDamaged) continue;
      // A run that is not started only counts while a process is planning it.
      const isPlanned = this.kind.isPlannedFirst && isUnstarted(record.status);
      const isPlanning = record.status === "planning" && (await store.isDriven(runId)) && (await this.retain(runId));
      if (isPlanned && !isPlanning) continue;
      const summary = record.rest;
      const isRecent = summary !== undefined && clock.now() - summary.updatedAt < SAME_CALL_MS;
      const isMeant = summary === undefined || this.kind.isMeant?.(summary, isRecent) === true;
      const stored = isMeant ? await undefinedIfUnreadable(store.read(runId)) : undefined;
      if (stored?.header.fingerprint === fingerprint) {
        const resumed = await undefinedIf(hasNothingToContinue, this.resumeRepeated(runId));
        if (resumed !== undefined) return { going: resumed };
      }
      if (isRecent) ended ??= { runId, status: summary.status, open: summary.open };
    }
    return ended === undefined ? {} : { ended };
  }

  /** Keeps a run for a call that joins it, even if the call that created it fails. Returns false if it was removed. */
  async retain(runId: string): Promise<boolean> {
    return !this.kind.isPlannedFirst || ((await this.#context.store.retain?.(runId)) ?? true);
  }

  async lastDeclined(call: Call, caller: string): Promise<Run<Call, State> | undefined> {
    const { store, clock } = this.#context;
    const [last] = await store.list({ lastOf: this.fingerprint(call, caller) });
    const record = last === undefined ? undefined : await store.record(last);
    if (last === undefined || record?.status !== "declined") return undefined;
    const isRecent = clock.now() - (record.ending?.at ?? 0) < DECLINED_MS;
    return isRecent ? undefinedIfUnreadable(this.find(last)) : undefined;
  }

  /** Resumes the run of a repeated call. Undefined if the call needs a new run instead, as a deletion does. */
  async resumeRepeated(runId: string): Promise<Run<Call, State> | undefined> {
    const run = await this.find(runId);
    if (run === undefined || run.status() === "running") return run;
    return (this.kind.mayGoOn?.(run) ?? true) ? this.resume(runId) : undefined;
  }

  /**
   * Continues a run whose process has ended. Undefined if another process was faster, or if the run is not `running` any
   * more. Throws a RunStoreError or an ExecutionRefusedError.
   */
  async claim(stored: StoredRun): Promise<Run<Call, State> | undefined> {
    const { store, clock } = this.#context;
    const left = understood(this.kind, stored);
    if (left === undefined) return undefined;
    await this.checkExecutable(left.header);
    if (this.#owedStops.has(left.header.runId)) await store.stops.ask(left.header.runId);
    const lease = await store.lease(left.header.runId);
    if (lease === undefined) return undefined;
    if (lease.isTakenOver) {
      this.kind.takenOver?.();
      await clock.sleep(READ_LATER_MS);
    }
    // Between the search for orphaned runs and here, another process may have brought the run to rest.
    const record = await releaseOnError(lease, () => store.record(left.header.runId));
    if (record?.status === "running") return this.#resume(lease, () => this.#kept.readLeft({ ...left, record }));
    await lease.release();
    return undefined;
  }

  drivenLike(fingerprint: string): Run<Call, State> | undefined {
    return [...this.#driven.values()].find(({ header }) => header.fingerprint === fingerprint);
  }

  driven(runId: string): Run<Call, State> | undefined {
    return this.#driven.get(runId);
  }

  hold(run: Run<Call, State>): Run<Call, State> {
    const { runId } = run.header;
    const rest = run.rest.then(() => {
      if (this.#driven.get(runId) === held) this.#driven.delete(runId);
    });
    const held = Object.assign(run, { rest });
    this.#driven.set(runId, held);
    return held;
  }

  async find(runId: string): Promise<Run<Call, State> | undefined> {
    await Promise.allSettled([this.#starting.get(runId)]);
    const driven = this.#driven.get(runId);
    if (driven !== undefined && ((await driven.isCurrent?.()) ?? true)) return driven;
    return this.#kept.find(runId);
  }

  lookAt(runId: string): Promise<Run<Call, State> | undefined> {
    return this.#kept.find(runId);
  }

  stored(runId: string): Promise<StoredRun<Call, Entry> | undefined> {
    return this.#kept.stored(runId);
  }

  /** Cancels a run in any process. Calls `onUnstored` if only this process, which executes it, knows of it yet. */
  async cancel(runId: string, onUnstored = () => {}): Promise<Run<Call, State> | undefined> {
    const driven = this.#driven.get(runId);
    if (driven?.stop("cancelled")) {
      // Also stored, for a process that takes over the run. If the store is unavailable, this process still stops it.
      if (this.#context.store.left !== undefined && !(await this.#isStopStored(runId))) onUnstored();
      return driven;
    }
    await this.#kept.cancel(runId);
    return this.find(runId);
  }

  /** Stores a request to stop a run of this process. If the store is unavailable, returns false and stores it later. */
  async #isStopStored(runId: string): Promise<boolean> {
    const { clock, store } = this.#context;
    this.#owedStops.add(runId);
    const again = async (): Promise<void> => {
      await clock.sleep(ASK_AGAIN_MS);
      if (this.#owedStops.has(runId) && !this.#isStopping) await this.#isStopStored(runId);
    };
    let isAway = false;
    try {
      await store.stops.ask(runId);
    } catch (thrown) {
      isAway = thrown instanceof StoreUnavailableError;
      if (!isAway) throw thrown;
      void beyondCall(() => again().catch(() => undefined));
    } finally {
      if (!isAway) this.#owedStops.delete(runId);
    }
    return !isAway;
  }

  /** Ends a run that is not started. Undefined if it is started, not stored, or of a kind that is not planned first. */
  async withdraw(runId: string, ending?: Ending): Promise<Run<Call, State> | undefined> {
    return (await this.#kept.withdraw(runId, ending)) ? this.#kept.find(runId) : undefined;
  }

  settle(runId: string): Promise<void> {
    return this.#driven.has(runId) ? Promise.resolve() : this.#kept.settle(runId);
  }

  /** Removes a dry run that was not applied yet. Returns false if there is none. */
  async removeDryRun(runId: string): Promise<boolean> {
    const { store } = this.#context;
    const stored = await this.stored(runId);
    if (!stored?.header.dryRun || stored.record.status !== "planned") return false;
    await store.discard(runId);
    return true;
  }

  endForGood(runId: string, endingOf: (state: State) => Ending | undefined): Promise<boolean> {
    return this.#driven.has(runId) ? Promise.resolve(false) : this.#kept.endForGood(runId, endingOf);
  }

  /** Stops all runs of this process. Resolves when the answers to all requests in progress are in the journals. */
  async stopAll(): Promise<void> {
    this.#isStopping = true;
    this.#kept.stopFollowing();
    await Promise.allSettled(this.#starting.values());
    const runs = [...this.#driven.values()];
    for (const run of runs) run.stop("interrupted");
    await Promise.all(runs.map((run) => run.rest));
  }

  recoverOrphans(): Promise<void> {
    return this.kind.recoversOrphans ? this.#tidyOnce() : Promise.resolve();
  }

  #headerOf(call: Call, caller: string): RunHeader<Call> {
    const { clock, project, environment, sandbox, newRunId } = this.#context;
    const fingerprint = this.fingerprint(call, caller);
    return {
      runId: newRunId(),
      kind: this.kind.name,
      call,
      project,
      caller,
      environment,
      ...(sandbox !== undefined && { sandbox }),
      createdAt: clock.now(),
      fingerprint,
    };
  }

  #drive(parts: ExecutionParts<Call, Entry, State>): Run<Call, State> {
    const { runId } = parts.header;
    const known = executeRun(this.kind, this.#context, parts, {
      find: () => this.#kept.find(runId),
      ended: () => {
        // After an outage, this process may execute the run again, and this is the end of the former execution.
        if (this.#driven.get(runId) === known) this.#driven.delete(runId);
        void this.recoverOrphans().catch(() => undefined);
      },
    });
    this.#driven.set(runId, known);
    if (this.#isStopping) known.stop("interrupted");
    return known;
  }
}

interface MadeCall {
  readonly fingerprint: string;
  readonly arrivedAt: number;
}

/** The earlier runs of a call. `going`: one that is executed now. `ended`: the newest that ended unfinished. */
export interface EarlierRuns<R> {
  readonly going?: R;
  readonly ended?: EndedRun;
}

export type EndedRun = Pick<RunSummary, "status" | "open"> & { readonly runId: string };

/** Returns whether an error says that a run has nothing to continue. An identical call then may need a new run. */
function hasNothingToContinue(thrown: unknown): boolean {
  return thrown instanceof NothingStoredError || thrown instanceof DamagedRunError;
}

const RECENT_RUNS = 50;
/** How long an identical call is declined as well after a person has declined a run, in milliseconds. */
const DECLINED_MS = 600_000;
/** How long an ended run counts as recent, in ms: an identical call may resume or report it. */
export const SAME_CALL_MS = 3_600_000;

type AnyStore = Pick<RunStore, "withCallLock" | "list" | "lastChanged" | "record" | "isDriven" | "read">;

/**
 * Returns the last run of an identical call, read by `attach`, if it had no result yet when this call arrived.
 * Otherwise, starts a run with `make`.
 */
export function startOrJoin<R>(
  store: AnyStore,
  { fingerprint, arrivedAt }: MadeCall,
  { attach, make }: { readonly attach: (runId: string) => Promise<R | undefined>; readonly make: () => Promise<R> },
): Promise<R> {
  return store.withCallLock(fingerprint, async () => {
    const last = await lastRun(store, fingerprint);
    if (last !== undefined && (await isOfSameTime(store, last, arrivedAt))) {
      // A run that cannot be read is not joined. Mostly, its process ended while storing it, so it was never started.
      const found = await undefinedIfUnreadable(attach(last.runId));
      if (found !== undefined) return found;
    }
    return make();
  });
}

interface LastRun {
  readonly runId: string;
  readonly endedAt: number | undefined;
}

async function lastRun(store: AnyStore, fingerprint: string): Promise<LastRun | undefined> {
  if (store.lastChanged !== undefined) return store.lastChanged(fingerprint);
  const [runId] = await store.list({ lastOf: fingerprint });
  return runId === undefined ? undefined : { runId, endedAt: (await store.record(runId))?.rest?.updatedAt };
}

async function isOfSameTime(store: AnyStore, { runId, endedAt }: LastRun, arrivedAt: number): Promise<boolean> {
  return endedAt === undefined || endedAt > arrivedAt || store.isDriven(runId);
}

/** Returns a function that calls `work` once for all callers. After a failure, the next caller calls it again. */
export function onceDone<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined;
  return () => {
    done ??= work().catch((thrown: unknown) => {
      done = undefined;
      throw thrown;
    });
    return done;
  };
}

/** Takes the lease of a run and withdraws earlier requests to stop the run. Undefined if a process executes the run. */
async function leaseToResume(
  store: Pick<RunStore, "stops" | "lease" | "mention">,
  runId: string,
): Promise<Lease | undefined> {
  store.mention?.(runId);
  const asked = await store.stops.asked(runId);
  const lease = await store.lease(runId);
  if (lease !== undefined) await releaseOnError(lease, () => store.stops.forget(runId, asked));
  return lease;
}
