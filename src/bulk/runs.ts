import { createHash } from "node:crypto";
import type { Clock } from "../api/clock.ts";
import { isApiError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import type { RouteTable } from "../spec/routes.ts";
import { onExistingOf, planCall, type WriteCall } from "./call.ts";
import { fileOf, rejectsOf } from "./call-file.ts";
import { drive } from "./drive.ts";
import type { Driver } from "./driver.ts";
import type { ByteSource } from "./files/bytes.ts";
import { FileError } from "./files/file-error.ts";
import { failedRows } from "./files/rejects.ts";
import { removedLines } from "./files/removed.ts";
import type { Lease } from "./lease.ts";
import type { Plan } from "./plan/plan.ts";
import type { ProjectLock } from "./project-lock.ts";
import { ownReason, requestReason } from "./reasons.ts";
import { countsOf, type ReportCounts, type RunStatus, restingStatus, summaryOf } from "./report.ts";
import { requestItems } from "./request-items.ts";
import { plannedRequests } from "./requests.ts";
import { RunState } from "./run-state.ts";
import { ServerClock } from "./server-clock.ts";
import {
  type RunHeader,
  type RunJournal,
  type RunPart,
  type RunStore,
  RunStoreError,
  type RunSummary,
  type StoredRun,
} from "./store.ts";
import type { Binding, JournalEntry, Reason } from "./work.ts";

/** What running needs of the world. */
export interface RunsContext {
  readonly api: ManagementApi;
  readonly routes: RouteTable;
  readonly store: RunStore;
  readonly lock: ProjectLock;
  readonly clock: Clock;
  /** Numbers in [0, 1). */
  readonly random: () => number;
  readonly newRunId: () => string;
  readonly project: string;
  readonly environment: "live" | "sandbox";
  /** How long one request is retried, in milliseconds. */
  readonly retryBudgetMs: number;
  /** Says in words why something failed, for reject files. */
  readonly words: (reason: Reason) => string;
}

/** Who watches a run: told after every answer, and when the run waits for so many milliseconds. */
type RunWatcher = (counts: ReportCounts, waitingMs: number) => void;

/** A run: what it is, where it stands, and when it rests. */
export interface Run {
  readonly header: RunHeader;
  readonly state: RunState;
  /** Where it stands as a whole. */
  status(): RunStatus;
  /** Resolves when nobody drives it any more. Never rejects. */
  readonly rest: Promise<void>;
  /** Calls the watcher until the given function is called. */
  watch(watcher: RunWatcher): () => void;
  /** Stops it between two requests; false when this process does not drive it. */
  stop(cause: "cancelled" | "interrupted"): boolean;
}

/** What driving a run needs of it. */
interface DrivenParts {
  readonly header: RunHeader;
  readonly state: RunState;
  readonly journal: RunJournal;
  readonly lease: Lease;
}

/** How many runs are looked at for an unfinished one of the same call. */
const RECENT_RUNS = 50;

/** How much of a plan waits in memory for the disk. */
const ENTRIES_PER_FLUSH = 64;

/** What listing the runs tells about each. */
export interface ListedRun extends RunSummary {
  readonly runId: string;
}

/** Plans, starts, resumes and finds the runs of one project. */
export class Runs {
  readonly #context: RunsContext;
  readonly #serverClock = new ServerClock();
  /** The runs that this process drives. */
  readonly #driven = new Map<string, Run>();

  constructor(context: RunsContext) {
    this.#context = context;
  }

  /**
   * Takes a call apart without writing anything; `bytes` is the content of its file, where it has one. Throws an
   * ApiError when a read that it needs fails, and a FileError when the file cannot be read.
   */
  plan(call: WriteCall, signal: AbortSignal, bytes?: ByteSource): Promise<Plan> {
    return planCall(call, { api: this.#context.api, signal, bytes });
  }

  /** Keeps a planned run, with the content of its file, without starting it; gives its header. */
  async keep(call: WriteCall, caller: string, bytes?: ByteSource): Promise<RunHeader> {
    const { store, clock, project, environment, newRunId } = this.#context;
    const fingerprint = this.#fingerprint(call, caller);
    const createdAt = clock.now();
    const header: RunHeader = { runId: newRunId(), call, project, caller, environment, createdAt, fingerprint };
    await store.create(header);
    const file = fileOf(call);
    if (file !== undefined && bytes !== undefined)
      await store.keep(header.runId, "input", unchanged(bytes, file.digest));
    return header;
  }

  /**
   * Starts a kept run with its plan and drives it in the background. Undefined when it was started before: then `find`
   * gives it.
   */
  async start(header: RunHeader, plan: Plan): Promise<Run | undefined> {
    const { store } = this.#context;
    const { runId } = header;
    if (!(await store.start(runId))) return undefined;
    const lease = await store.lease(runId);
    if (lease === undefined) return undefined;
    const journal = await store.journal(runId);
    return this.#drive({ header, state: stateOf(plan), journal, lease }, (driver) =>
      this.#recordPlan(driver, runId, journal, plan),
    );
  }

  /**
   * Takes up a run where it stopped. Gives the run as it is when somebody drives it already, here or in another
   * process, and when it was never started, since it waits for a person's yes; undefined when there is none.
   */
  async resume(runId: string): Promise<Run | undefined> {
    const { store, clock } = this.#context;
    const lease = this.#driven.has(runId) ? undefined : await this.#leaseOf(runId);
    if (lease === undefined) return this.find(runId);
    try {
      const found = await this.#readBack(runId);
      if (found === undefined) return undefined;
      const { header, state } = found;
      const plan = state.planned
        ? undefined
        : await this.plan(header.call, new AbortController().signal, this.part(runId, "input"));
      const from = plan === undefined ? state : stateOf(plan);
      const journal = await store.journal(runId);
      return this.#drive({ header, state: from, journal, lease }, async (driver) => {
        if (plan !== undefined) {
          journal.append({ t: "replan" });
          await this.#recordPlan(driver, runId, journal, plan);
        }
        driver.change(from.lostInFlight().map((step) => ({ step, to: "suspect" })));
        driver.record({ t: "resume", at: clock.now() });
      });
    } catch (thrown) {
      await lease.release();
      throw thrown;
    }
  }

  /**
   * An unfinished run of the same call by the same caller, to be attached to instead of starting another one. One that
   * was interrupted is taken up again, but for deletions: what they meant may be something else by now.
   */
  async unfinished(call: WriteCall, caller: string): Promise<Run | undefined> {
    const fingerprint = this.#fingerprint(call, caller);
    for (const run of this.#driven.values()) if (run.header.fingerprint === fingerprint) return run;
    if (call.tool === "delete_targeting" || call.tool === "delete_options") return undefined;
    const { store } = this.#context;
    for (const runId of (await store.list()).slice(0, RECENT_RUNS)) {
      const told = await store.summary(runId);
      const isOpen = told === undefined || told.status === "interrupted";
      if (!isOpen || (told !== undefined && told.fingerprint !== fingerprint)) continue;
      const stored = await this.#readable(runId);
      if (stored?.started && stored.header.fingerprint === fingerprint) return this.resume(runId);
    }
    return undefined;
  }

  /** Whether this process drives any run now. */
  get isDriving(): boolean {
    return this.#driven.size > 0;
  }

  /** Stops all runs between two requests and resolves when the requests in flight are answered and journaled. */
  async stopAll(): Promise<void> {
    const runs = [...this.#driven.values()];
    for (const run of runs) run.stop("interrupted");
    await Promise.all(runs.map((run) => run.rest));
  }

  /** A run by its ID, driven or at rest; undefined when there is none. */
  async find(runId: string): Promise<Run | undefined> {
    const driven = this.#driven.get(runId);
    if (driven !== undefined) return driven;
    const found = await this.#readBack(runId);
    if (found === undefined) return undefined;
    const { header, started, state } = found;
    const elsewhere = await this.#context.store.isDriven(runId);
    return {
      header,
      state,
      status: () => (!started ? "needs_confirmation" : elsewhere ? "running" : restingStatus(state)),
      rest: Promise.resolve(),
      watch: () => () => {},
      stop: () => false,
    };
  }

  /** The runs of a caller, the newest first; those that were planned but never started are left out. */
  async *list(caller: string): AsyncGenerator<ListedRun> {
    const { store } = this.#context;
    for (const runId of await store.list()) {
      const driven = this.#driven.get(runId);
      if (driven !== undefined) {
        if (driven.header.caller === caller)
          yield { runId, ...summaryOf(driven.header, driven.state, driven.status()) };
        continue;
      }
      const told = await store.summary(runId);
      if (told !== undefined) {
        if (told.caller === caller) yield { runId, ...told };
        continue;
      }
      const stored = await this.#readable(runId);
      if (!stored?.started || stored.header.caller !== caller) continue;
      const run = await this.find(runId);
      if (run !== undefined) yield { runId, ...summaryOf(run.header, run.state, run.status()) };
    }
  }

  /** A run as it was kept, and whether it was started; undefined when there is none. */
  async stored(runId: string): Promise<{ readonly header: RunHeader; readonly started: boolean } | undefined> {
    const stored = await this.#context.store.read(runId);
    return stored && { header: stored.header, started: stored.started };
  }

  /** What was kept of a run beside its journal. */
  part(runId: string, part: RunPart): ByteSource {
    return this.#context.store.part(runId, part);
  }

  /** A run that cannot be read, such as one of a newer version, is none of a list's business. */
  async #readable(runId: string): Promise<StoredRun | undefined> {
    try {
      return await this.#context.store.read(runId);
    } catch (thrown) {
      if (thrown instanceof RunStoreError) return undefined;
      throw thrown;
    }
  }

  #fingerprint(call: WriteCall, caller: string): string {
    const { project, environment } = this.#context;
    return createHash("sha256")
      .update(JSON.stringify([call, caller, project, environment]))
      .digest("base64url");
  }

  async #leaseOf(runId: string): Promise<Lease | undefined> {
    const { store } = this.#context;
    return (await store.read(runId))?.started ? store.lease(runId) : undefined;
  }

  async #readBack(
    runId: string,
  ): Promise<{ readonly header: RunHeader; readonly started: boolean; readonly state: RunState } | undefined> {
    const stored = await this.#context.store.read(runId);
    if (stored === undefined) return undefined;
    let state = new RunState();
    for await (const entry of stored.entries) {
      if (entry.t === "replan") state = new RunState();
      else state.apply(entry);
    }
    return { header: stored.header, started: stored.started, state };
  }

  /** What a plan takes away is kept before it counts as planned: nothing leaves before. */
  async #recordPlan(driver: Driver, runId: string, journal: RunJournal, plan: Plan): Promise<void> {
    const { api, store } = this.#context;
    let waiting = 0;
    for (const entry of plan.entries()) {
      journal.append(entry);
      waiting += 1;
      if (waiting % ENTRIES_PER_FLUSH === 0) await journal.flush();
    }
    if (plan.removed.length > 0) {
      await store.keep(runId, "removed", removedLines(plan.removed, api, driver.signal));
    }
    const requests = plannedRequests(plan.steps).length;
    driver.record({ t: "planned", requests, at: this.#context.clock.now() });
  }

  /** The rows of a run's file that failed. */
  async #keepRejects({ runId, call }: RunHeader, state: RunState): Promise<void> {
    const { store, words } = this.#context;
    if (fileOf(call) === undefined) return;
    const failed = failedRows(state);
    await store.keep(runId, "rejects", rejectsOf(call, store.part(runId, "input"), { failed, words }));
  }

  #drive(of: DrivenParts, begin: (driver: Driver) => Promise<void>): Run {
    const { header, state } = of;
    const watchers = new Set<RunWatcher>();
    const controller = new AbortController();
    let cause: "cancelled" | "interrupted" = "interrupted";
    const tell = (waitingMs: number): void => {
      for (const watcher of watchers) watcher(countsOf(state), waitingMs);
    };
    const driver = this.#driver({ ...of, signal: controller.signal, tell });
    const rest = this.#driveToRest(of, driver, begin, () => cause);
    const run: Run = {
      header,
      state,
      status: () => (this.#driven.has(header.runId) ? "running" : restingStatus(state)),
      rest,
      watch: (watcher) => {
        watchers.add(watcher);
        return () => watchers.delete(watcher);
      },
      stop: (why) => {
        cause = why;
        controller.abort(new DOMException(`the run was ${why}`, "AbortError"));
        return true;
      },
    };
    this.#driven.set(header.runId, run);
    return run;
  }

  /** Never rejects: what goes wrong on this machine stops the run, and says so in it. */
  async #driveToRest(
    { header, state, journal, lease }: DrivenParts,
    driver: Driver,
    begin: (driver: Driver) => Promise<void>,
    cause: () => "cancelled" | "interrupted",
  ): Promise<void> {
    const { lock, clock, project, store } = this.#context;
    const stopped = (thrown: unknown): void => {
      const reason = stopReason(thrown);
      state.apply({ t: "stop", cause: "interrupted", at: clock.now(), reason });
    };
    try {
      await begin(driver);
      await drive(driver, (work) => lock.hold(project, work, driver.signal), cause);
    } catch (thrown) {
      stopped(thrown);
    }
    const endings = [
      () => journal.close(),
      () => this.#keepRejects(header, state),
      () => store.summarise(header.runId, summaryOf(header, state, restingStatus(state))),
      () => lease.release(),
    ];
    for (const end of endings) {
      try {
        await end();
      } catch (thrown) {
        stopped(thrown);
      }
    }
    this.#driven.delete(header.runId);
  }

  #driver(of: DrivenParts & { readonly signal: AbortSignal; readonly tell: (waitingMs: number) => void }): Driver {
    const { api, clock, random, retryBudgetMs, routes } = this.#context;
    const { state, journal, signal, tell } = of;
    const perTargeting = routes.addOptions.path.includes("{targetingId}");
    const record = (entry: JournalEntry): void => {
      journal.append(entry);
      state.apply(entry);
    };
    return {
      api,
      state,
      clock,
      serverClock: this.#serverClock,
      random,
      retryBudgetMs,
      onExisting: onExistingOf(of.header.call),
      signal,
      record,
      change: (changes, more = {}) => {
        record({ t: "answer", at: clock.now(), changes, ...more });
        tell(0);
      },
      flush: () => journal.flush(),
      send: (operation, steps) => {
        const inPath = operation === "addOptions" && perTargeting;
        const ids = steps.map(({ id }) => id);
        const items = requestItems(state.steps, ids, {
          idOf: (binding) => state.boundId(binding),
          targetingInPath: inPath,
        });
        const targetingId = inPath ? targetingOf(state, steps[0]?.bindings ?? []) : undefined;
        return api.bulk(operation, items, targetingId === undefined ? {} : { targetingId });
      },
      waiting: tell,
      apartBy: (step) =>
        perTargeting && state.steps.operationOf(step) === "addOptions"
          ? (targetingOf(state, state.steps.bindingsOf(step)) ?? "")
          : "",
    };
  }
}

function stateOf({ tables, settlements }: Plan): RunState {
  return new RunState(tables, settlements);
}

/** What is to be kept must be what was read and hashed before. */
async function* unchanged(bytes: ByteSource, digest: string): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of bytes()) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest("hex") === digest) return;
  throw new FileError("the file changed while it was being read; nothing was sent", "Call again once it is complete.");
}

/** Why nothing more was sent: an error of this machine, or a read without which nothing may be deleted. */
function stopReason(thrown: unknown): Reason {
  if (isApiError(thrown)) {
    const reason = requestReason("deleteTargetings", thrown);
    return thrown.effect === "rejected" ? reason : ownReason("RUN_ENDED", { because: reason.code });
  }
  return ownReason("STOPPED_BY_ERROR", { error: thrown instanceof Error ? thrown.message : String(thrown) });
}

function targetingOf(state: RunState, bindings: readonly Binding[]): string | undefined {
  const binding = bindings.find(({ field }) => field === "targeting");
  return binding === undefined ? undefined : state.boundId(binding);
}
