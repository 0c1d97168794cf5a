import type { Clock } from "../api/clock.ts";
import type { ManagementApi } from "../api/management.ts";
import type { RouteTable } from "../spec/routes.ts";
import { onExistingOf, planCall, type WriteCall } from "./call.ts";
import { drive } from "./drive.ts";
import type { Driver } from "./driver.ts";
import type { Plan } from "./plan/plan.ts";
import type { ProjectLock } from "./project-lock.ts";
import { ownReason } from "./reasons.ts";
import { countsOf, type ReportCounts, type RunStatus, restingStatus } from "./report.ts";
import { plannedRequests } from "./requests.ts";
import { RunState } from "./run-state.ts";
import { ServerClock } from "./server-clock.ts";
import { entryOf } from "./steps.ts";
import type { RunHeader, RunJournal, RunStore } from "./store.ts";
import type { JournalEntry, Step } from "./work.ts";

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
}

/** Who watches a run: told after every answer, and when the run waits for so many milliseconds. */
export type RunWatcher = (counts: ReportCounts, waitingMs: number) => void;

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
  /** Stops it between two requests, if it is being driven. */
  stop(cause: "cancelled" | "interrupted"): void;
}

/** Plans, starts, resumes and remembers runs of one project. */
export class Runs {
  readonly #context: RunsContext;
  readonly #serverClock = new ServerClock();
  readonly #driven = new Map<string, Run>();

  constructor(context: RunsContext) {
    this.#context = context;
  }

  /** Takes a call apart without writing anything. Throws an ApiError when a read that it needs fails. */
  plan(call: WriteCall, signal: AbortSignal): Promise<Plan> {
    return planCall(call, { api: this.#context.api, signal });
  }

  /** Keeps a planned run without starting it; gives its header. */
  async keep(call: WriteCall, caller: string): Promise<RunHeader> {
    const { store, clock, project, environment, newRunId } = this.#context;
    const header: RunHeader = { runId: newRunId(), call, project, caller, environment, createdAt: clock.now() };
    await store.create(header);
    return header;
  }

  /**
   * Starts a kept run with its plan and drives it in the background. Undefined when it was started before: then `find`
   * gives it.
   */
  async start(header: RunHeader, plan: Plan): Promise<Run | undefined> {
    const { store, clock } = this.#context;
    if (!(await store.start(header.runId))) return undefined;
    await store.keepRemoved(header.runId, plan.removed);
    const state = new RunState();
    const journal = await store.journal(header.runId);
    return this.#drive(header, state, journal, (driver) => {
      for (const entry of plan.entries()) driver.record(entry);
      driver.record({ t: "planned", requests: plannedRequests(plan.steps).length, at: clock.now() });
    });
  }

  /** Takes up a run where it stopped. Gives the run as it is when it is being driven already; undefined when unknown. */
  async resume(runId: string): Promise<Run | undefined> {
    const driven = this.#driven.get(runId);
    if (driven !== undefined) return driven;
    const found = await this.#readBack(runId);
    if (found === undefined) return undefined;
    const { header, state } = found;
    const plan = state.planned ? undefined : await this.plan(header.call, new AbortController().signal);
    const journal = await this.#context.store.journal(runId);
    return this.#drive(header, state, journal, (driver) => {
      const at = this.#context.clock.now();
      for (const entry of plan?.entries() ?? []) driver.record(entry);
      if (plan !== undefined) driver.record({ t: "planned", requests: plannedRequests(plan.steps).length, at });
      driver.change(state.lostInFlight().map((step) => ({ step, to: "suspect" })));
      driver.record({ t: "resume", at });
    });
  }

  /** Stops all runs between two requests and resolves when the requests in flight are answered and journaled. */
  async stopAll(): Promise<void> {
    const runs = [...this.#driven.values()];
    for (const run of runs) run.stop("interrupted");
    await Promise.all(runs.map((run) => run.rest));
  }

  /** A run by its ID, driven now or at rest; undefined when there is none. */
  async find(runId: string): Promise<Run | undefined> {
    const driven = this.#driven.get(runId);
    if (driven !== undefined) return driven;
    const found = await this.#readBack(runId);
    if (found === undefined) return undefined;
    const { header, state } = found;
    return {
      header,
      state,
      status: () => (state.planned ? restingStatus(state) : "interrupted"),
      rest: Promise.resolve(),
      watch: () => () => {},
      stop: () => {},
    };
  }

  /** A run as it was kept, and whether it was started; undefined when there is none. */
  async stored(runId: string): Promise<{ readonly header: RunHeader; readonly started: boolean } | undefined> {
    const stored = await this.#context.store.read(runId);
    return stored === undefined ? undefined : { header: stored.header, started: stored.started };
  }

  async #readBack(runId: string): Promise<{ readonly header: RunHeader; readonly state: RunState } | undefined> {
    const stored = await this.#context.store.read(runId);
    if (stored === undefined) return undefined;
    const state = new RunState();
    for await (const entry of stored.entries) state.apply(entry);
    return { header: stored.header, state };
  }

  #drive(header: RunHeader, state: RunState, journal: RunJournal, begin: (driver: Driver) => void): Run {
    const watchers = new Set<RunWatcher>();
    const controller = new AbortController();
    let cause: "cancelled" | "interrupted" = "interrupted";
    const tell = (waitingMs: number): void => {
      for (const watcher of watchers) watcher(countsOf(state), waitingMs);
    };
    const driver = this.#driver({ header, state, journal, signal: controller.signal, tell });
    const rest = this.#driveToRest(driver, journal, begin, () => cause).finally(() =>
      this.#driven.delete(header.runId),
    );
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
      },
    };
    this.#driven.set(header.runId, run);
    return run;
  }

  async #driveToRest(
    driver: Driver,
    journal: RunJournal,
    begin: (driver: Driver) => void,
    cause: () => "cancelled" | "interrupted",
  ): Promise<void> {
    const { lock, clock, project } = this.#context;
    try {
      begin(driver);
      await drive(driver, (work) => lock.hold(project, work, driver.signal), cause);
      await journal.flush();
    } catch (thrown) {
      const reason = ownReason("STOPPED_BY_ERROR", {
        error: thrown instanceof Error ? thrown.message : String(thrown),
      });
      driver.state.apply({ t: "stop", cause: "interrupted", at: clock.now(), reason });
    } finally {
      await journal.close();
    }
  }

  #driver(of: {
    readonly header: RunHeader;
    readonly state: RunState;
    readonly journal: RunJournal;
    readonly signal: AbortSignal;
    readonly tell: (waitingMs: number) => void;
  }): Driver {
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
        const entries = steps.map((step) => entryOf(step, (binding) => state.boundId(binding), inPath));
        const targetingId = inPath ? targetingOf(state, steps) : undefined;
        return api.bulk(operation, entries, targetingId === undefined ? {} : { targetingId });
      },
      waiting: tell,
      apartBy: (step) => (step.operation === "addOptions" && perTargeting ? (targetingOf(state, [step]) ?? "") : ""),
    };
  }
}

function targetingOf(state: RunState, [first]: readonly Step[]): string | undefined {
  const binding = first?.bindings.find(({ field }) => field === "targeting");
  return binding === undefined ? undefined : state.boundId(binding);
}
