import { createHash } from "node:crypto";
import { planCall, type WriteCall } from "./call.ts";
import { fileOf } from "./call-file.ts";
import { CONFIRMATION_MS, mayNeedConfirmation } from "./confirmation.ts";
import { type Begin, type DrivenParts, type DrivingContext, drivenRun, recordPlan, stopReason } from "./driven-run.ts";
import { type ByteSource, unchanged } from "./files/bytes.ts";
import { foresee } from "./foresee.ts";
import { type KeptRun, keptRun, proposalOf, readBack, withdraw } from "./kept-runs.ts";
import { LastRead } from "./last-read.ts";
import type { Lease } from "./lease.ts";
import { type Ending, endingOf, unplannedState } from "./not-planned.ts";
import type { Plan } from "./plan/plan.ts";
import { type Planning, preparingRun } from "./preparing.ts";
import { summaryOf } from "./report.ts";
import type { ListedRun, Run, RunsContext } from "./run.ts";
import { RunState } from "./run-state.ts";
import { ServerClock } from "./server-clock.ts";
import { orUnreadable, type RunHeader, type RunPart } from "./store.ts";
import type { Settlement } from "./work.ts";

/** How many runs of the same call are looked at for an unfinished one. */
const RECENT_RUNS = 50;

/** As long as a confirmation. */
const KEEP_PREPARED_MS = CONFIRMATION_MS;

/** Plans, starts, resumes and finds the runs of one project. */
export class Runs {
  readonly #context: DrivingContext;
  /** The runs that this process drives or plans. */
  readonly #driven = new Map<string, Run>();
  /** By fingerprint: the last of the same calls that look for their run. */
  readonly #turns = new Map<string, Promise<unknown>>();
  /** Runs that this process is just about to drive. */
  readonly #starting = new Map<string, Promise<Run | undefined>>();
  readonly #lastRead = new LastRead<KeptRun>();
  /** Runs that this process planned, and that were not started. */
  readonly #prepared = new Map<string, Run>();

  constructor(context: RunsContext) {
    this.#context = { ...context, serverClock: new ServerClock() };
  }

  /**
   * Takes a call apart without writing anything; `bytes` is the content of its file, where it has one. Throws an
   * ApiError when a read that it needs fails, and a FileError when the file cannot be read.
   */
  plan(call: WriteCall, signal: AbortSignal, bytes?: ByteSource): Promise<Plan> {
    return planCall(call, { api: this.#context.api, signal, bytes });
  }

  /** What would fail of a plan if it were sent now. Throws the ApiError of a read that fails. */
  foresee(plan: Plan, signal: AbortSignal): Promise<readonly Settlement[]> {
    const { api, memory } = this.#context;
    return foresee(plan, { api, memory, signal });
  }

  /** Keeps a run, with the content of its file, without starting it; gives its header. */
  async keep(call: WriteCall, caller: string, bytes?: ByteSource, unplanned?: true): Promise<RunHeader> {
    const { store, clock, project, environment, newRunId } = this.#context;
    const fingerprint = this.#fingerprint(call, caller);
    const createdAt = clock.now();
    const about = { runId: newRunId(), call, project, caller, environment, createdAt, fingerprint };
    const header: RunHeader = { ...about, ...(unplanned && { unplanned }) };
    await store.create(header);
    const file = fileOf(call);
    if (file !== undefined && bytes !== undefined)
      await store.keep(header.runId, "input", unchanged(bytes, file.digest));
    return header;
  }

  /** Keeps what a kept run would do, for those who look at it while it waits for a person's yes. */
  propose(runId: string, plan: Plan): Promise<void> {
    return this.#context.store.propose(runId, proposalOf(plan));
  }

  /**
   * Starts a kept run with its plan, or with one that is still being made, and drives it in the background. Undefined
   * when it was started before: then `find` gives it.
   */
  async start(header: RunHeader, plan: Plan | Planning): Promise<Run | undefined> {
    const { runId } = header;
    if (this.#starting.has(runId)) return undefined;
    const starting = this.#begin(header, plan);
    this.#starting.set(runId, starting);
    try {
      return await starting;
    } finally {
      this.#starting.delete(runId);
    }
  }

  async #begin(header: RunHeader, plan: Plan | Planning): Promise<Run | undefined> {
    const { store } = this.#context;
    const { runId } = header;
    if (!(await store.start(runId))) return undefined;
    const lease = await store.lease(runId);
    if (lease === undefined) return undefined;
    const journal = await store.journal(runId);
    const unplanned = "plan" in plan ? await this.#unplanned(header) : undefined;
    return this.#drive({ header, state: new RunState(), journal, lease, unplanned }, (driver) =>
      recordPlan(this.#context, { driver, journal, header }, plan),
    );
  }

  /**
   * Goes on planning a kept run in the background, and starts it then if it `mayStart` without a person's yes. What was
   * planned and not started is remembered until a confirmation would have expired. It stands as `meanwhile` until then,
   * or else as what its caller gave.
   */
  async prepare(
    header: RunHeader,
    planning: Planning,
    mayStart: (plan: Plan) => boolean,
    meanwhile?: RunState,
  ): Promise<Run> {
    const { runId } = header;
    const standing = meanwhile ?? (await this.#unplanned(header));
    const driven = this.#driven.get(runId);
    if (driven !== undefined) {
      planning.stop();
      return driven;
    }
    const run = preparingRun(header, planning, {
      meanwhile: standing,
      mayStart,
      propose: (plan) => this.propose(runId, plan),
      start: (plan) => this.#startOrFind(header, plan),
      giveUp: (thrown) => this.#giveUp(runId, thrown),
      // Where it cannot be written down, it is left as nobody has started it.
      withdraw: () => orUnreadable(this.withdraw(runId)),
    });
    const { clock } = this.#context;
    for (const [id, { header: earlier }] of this.#prepared) {
      if (clock.now() - earlier.createdAt > KEEP_PREPARED_MS) this.#prepared.delete(id);
    }
    const known: Run = Object.assign(run, {
      rest: run.rest.then(() => {
        if (this.#driven.get(runId) === known) this.#driven.delete(runId);
        if (run.asks() !== undefined) this.#prepared.set(runId, known);
      }),
    });
    this.#driven.set(runId, known);
    return known;
  }

  /**
   * Ends a run that was not started as cancelled, so that nobody can start it any more, in whatever process. Undefined
   * when it was started, or there is none.
   */
  async withdraw(runId: string, ending?: Ending): Promise<Run | undefined> {
    if (!(await withdraw(this.#context, runId, ending))) return undefined;
    this.#prepared.delete(runId);
    return this.#kept(runId);
  }

  /** How a run stands that is not planned yet. */
  #unplanned({ call, runId }: RunHeader): Promise<RunState> {
    return unplannedState(call, this.part(runId, "input"));
  }

  /** Ends a run that could not be planned, with the reason in its journal. */
  async #giveUp(runId: string, thrown: unknown): Promise<Run | undefined> {
    const ending = endingOf(thrown) ?? { cause: "interrupted", reason: stopReason(thrown) };
    await orUnreadable(withdraw(this.#context, runId, ending));
    return orUnreadable(this.#kept(runId));
  }

  /** Another process may have started it meanwhile. */
  async #startOrFind(header: RunHeader, plan: Plan): Promise<Run | undefined> {
    return (await this.start(header, plan)) ?? this.#kept(header.runId);
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
      const found = await readBack(store, runId);
      if (found === undefined) return undefined;
      const { header, state } = found;
      const from = state.planned ? state : new RunState();
      const journal = await store.journal(runId);
      const unplanned = state.planned ? undefined : await this.#unplanned(header);
      return this.#drive({ header, state: from, journal, lease, unplanned }, async (driver) => {
        if (!state.planned) {
          journal.append({ t: "replan" });
          const plan = this.plan(header.call, driver.signal, this.part(runId, "input"));
          await recordPlan(this.#context, { driver, journal, header }, { plan, stop: () => {} });
        }
        driver.change(from.lostInFlight().map((step) => ({ step, to: "suspect" })));
        driver.record({ t: "resume", at: clock.now() });
        return undefined;
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
    for (const runId of (await store.unfinished(fingerprint)).slice(0, RECENT_RUNS)) {
      const told = await store.summary(runId);
      if (told !== undefined && told.status !== "interrupted") continue;
      const stored = await orUnreadable(store.read(runId));
      if (!stored?.started || stored.header.fingerprint !== fingerprint) continue;
      // What was not planned yet would be planned anew: a person may have to be asked.
      const isPlanned = (await this.find(runId))?.state.planned ?? false;
      if (isPlanned || !mayNeedConfirmation(call)) return this.resume(runId);
    }
    return undefined;
  }

  /** Lets calls that are the same look for their run, and start it, one after the other. */
  async inTurn<T>(call: WriteCall, caller: string, work: () => Promise<T>): Promise<T> {
    const fingerprint = this.#fingerprint(call, caller);
    const before = this.#turns.get(fingerprint);
    const turn = (async () => {
      await Promise.allSettled([before]);
      return work();
    })();
    this.#turns.set(fingerprint, turn);
    try {
      return await turn;
    } finally {
      if (this.#turns.get(fingerprint) === turn) this.#turns.delete(fingerprint);
    }
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
    await Promise.allSettled([this.#starting.get(runId)]);
    const driven = this.#driven.get(runId);
    if (driven !== undefined) return driven;
    const prepared = this.#prepared.get(runId);
    if (prepared !== undefined && !(await this.#context.store.read(runId))?.started) return prepared;
    return this.#kept(runId);
  }

  /** A run as the disk has it. */
  async #kept(runId: string): Promise<Run | undefined> {
    const { store } = this.#context;
    const revision = await store.revision(runId);
    const found = await this.#lastRead.get(runId, revision, () => readBack(store, runId));
    return found && keptRun(found, await store.isDriven(runId));
  }

  /** The runs of a caller, the newest first; of those that were not started the ones that wait for a person's yes. */
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
      const stored = await orUnreadable(store.read(runId));
      if (stored?.header.caller !== caller) continue;
      const run = await orUnreadable(this.find(runId));
      // Without anything to agree to, it is about to be started, or its server died before it was.
      if (run === undefined || (!stored.started && run.state.objects.length === 0)) continue;
      yield { runId, ...summaryOf(run.header, run.state, run.status()) };
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

  #drive(of: DrivenParts, begin: Begin): Run {
    const { runId } = of.header;
    const run = drivenRun(this.#context, of, begin);
    const rest = run.rest.then(() => {
      this.#driven.delete(runId);
    });
    const known = Object.assign(run, { rest });
    this.#driven.set(runId, known);
    return known;
  }
}
