import { createHash } from "node:crypto";
import { type ByteSource, unchanged } from "../platform/bytes.ts";
import { cancelKept, leaseToResume } from "../runs/reins.ts";
import { type Interrupted, interruptedRuns, type MadeBefore, madeBefore, oneOf } from "../runs/same-call.ts";
import { orUnreadable, type RunPart, RunStoreError, type RunSummary } from "../runs/store.ts";
import type { WriteCall } from "./call.ts";
import { fileOf } from "./call-rows.ts";
import { CONFIRMATION_MS, mayNeedConfirmation } from "./confirmation.ts";
import { type Begin, type DrivenParts, type DrivingContext, drivenRun, recordPlan, stopReason } from "./driven-run.ts";
import { cancelInterrupted, startedBy, withdraw } from "./ended-runs.ts";
import { isWithdrawn, KeptRuns, listedRuns, proposalOf, readBack } from "./kept-runs.ts";
import { type Ending, endingOf, unplannedState } from "./not-planned.ts";
import type { Plan } from "./plan/plan.ts";
import { type Planning, preparingRun } from "./planned-later.ts";
import type { Settlement } from "./rows/entries.ts";
import type { ListedRun, Run, RunsContext } from "./run.ts";
import type { ChangeHeader } from "./run-form.ts";
import { ServerClock } from "./settle/service-clock.ts";
import { RunState } from "./state/change-state.ts";

/** As long as a confirmation. */
const KEEP_PREPARED_MS = CONFIRMATION_MS;

/** Plans, starts, resumes and finds the runs of one project. */
export class Runs {
  readonly #context: DrivingContext;
  /** The runs that this process drives or plans. */
  readonly #driven = new Map<string, Run>();
  /** Runs that this process is just about to drive. */
  readonly #starting = new Map<string, Promise<Run | undefined>>();
  readonly #kept: KeptRuns;
  /** Runs that this process planned, and that were not started. */
  readonly #prepared = new Map<string, Run>();

  constructor(context: RunsContext) {
    this.#context = { ...context, serverClock: new ServerClock() };
    this.#kept = new KeptRuns(context);
  }

  /**
   * Takes a call apart without writing anything; `bytes` is the content of its file, where it has one. Throws an
   * ApiError when a read that it needs fails, and a FileError when the file cannot be read.
   */
  async plan(call: WriteCall, signal: AbortSignal, bytes?: ByteSource): Promise<Plan> {
    const { api } = this.#context;
    // Only a call that writes needs it, so that no start pays for it.
    const { planCall } = await import("./plan-call.ts");
    return planCall(call, { api: api.forCall?.() ?? api, signal, bytes });
  }

  /** What would fail of a plan if it were sent now. Throws the ApiError of a read that fails. */
  async foresee(plan: Plan, signal: AbortSignal): Promise<readonly Settlement[]> {
    const { api, memory } = this.#context;
    // Only a dry run needs it, so that no start pays for it.
    const { foresee } = await import("./plan/foresee.ts");
    return foresee(plan, { api, memory, signal });
  }

  /** Keeps a run, with the content of its file, without starting it; gives its header. */
  async keep(call: WriteCall, caller: string, bytes?: ByteSource, unplanned?: true): Promise<ChangeHeader> {
    const { store, clock, project, environment, newRunId } = this.#context;
    const fingerprint = this.#fingerprint(call, caller);
    const createdAt = clock.now();
    const about = { runId: newRunId(), call, project, caller, environment, createdAt, fingerprint };
    const header: ChangeHeader = { ...about, ...(unplanned && { unplanned }) };
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
  async start(header: ChangeHeader, plan: Plan | Planning): Promise<Run | undefined> {
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

  async #begin(header: ChangeHeader, plan: Plan | Planning): Promise<Run | undefined> {
    const { store } = this.#context;
    const { runId } = header;
    const lease = await startedBy(this.#context, runId);
    if (lease === undefined) return undefined;
    const journal = await store.journal(runId, lease);
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
    header: ChangeHeader,
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
      startedElsewhere: async () => ((await this.stored(runId))?.started ? this.#kept.find(runId) : undefined),
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
    return this.#kept.find(runId);
  }

  /** How a run stands that is not planned yet. */
  #unplanned({ call, runId }: ChangeHeader): Promise<RunState> {
    return unplannedState(call, this.part(runId, "input"));
  }

  /** Ends a run that could not be planned, with the reason in its journal. */
  async #giveUp(runId: string, thrown: unknown): Promise<Run | undefined> {
    const ending = endingOf(thrown) ?? { cause: "interrupted", reason: stopReason(thrown) };
    await orUnreadable(withdraw(this.#context, runId, ending));
    return orUnreadable(this.#kept.find(runId));
  }

  /** Another process may have started it meanwhile. */
  async #startOrFind(header: ChangeHeader, plan: Plan): Promise<Run | undefined> {
    return (await this.start(header, plan)) ?? this.#kept.find(header.runId);
  }

  /**
   * Takes up a run where it stopped. Gives the run as it is when somebody drives it already, here or in another
   * process, and when it was never started, since it waits for a person's yes; undefined when there is none.
   */
  async resume(runId: string): Promise<Run | undefined> {
    const { store, clock } = this.#context;
    const isStarted = !this.#driven.has(runId) && (await store.read(runId))?.started === true;
    const lease = isStarted ? await leaseToResume(store, runId) : undefined;
    if (lease === undefined) return this.find(runId);
    try {
      const found = await readBack(store, runId);
      if (found === undefined) throw new RunStoreError(`run ${runId} is gone`, "Look for it with get_run.");
      const { header, state } = found;
      await store.reopen(header);
      const from = state.planned ? state : new RunState();
      const journal = await store.journal(runId, lease);
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
   * What there is of the same call by the same caller. A run that was cut short, or that stopped a short while ago with
   * something never sent, is taken up again instead of starting another one; but for deletions, which may mean something
   * else by now: of these only a run that somebody drives is attached to.
   */
  async madeBefore(call: WriteCall, caller: string): Promise<MadeBefore<Run>> {
    const { store, clock } = this.#context;
    const fingerprint = this.#fingerprint(call, caller);
    for (const run of this.#driven.values()) if (run.header.fingerprint === fingerprint) return { going: run };
    const isMeant = ({ status, open, counts }: RunSummary, isRecent: boolean): boolean =>
      status === "interrupted" || (isRecent && open && (counts.unattempted ?? 0) > 0);
    return madeBefore(store, fingerprint, {
      now: clock.now,
      isMeant,
      unstartedWaits: true,
      takeUp: (runId) => this.#takeUp(runId),
    });
  }

  /** Goes on with a run for a call that is made again; undefined where that may not be the same as it was. */
  async #takeUp(runId: string): Promise<Run | undefined> {
    const run = await this.find(runId);
    if (run === undefined || run.status() === "running") return run;
    const { call } = run.header;
    if (call.tool === "delete_targeting" || call.tool === "delete_options") return undefined;
    // What was not planned yet would be planned anew: a person may have to be asked.
    return run.state.planned || !mayNeedConfirmation(call) ? this.resume(runId) : undefined;
  }

  /**
   * Gives the one run of the same calls that are made at one time, in whatever process: what another of them has started
   * since this one arrived, or what `make` starts. `make` is given the run to start: one that another of them has kept
   * and that waits for a person's yes, or a new one.
   */
  once<T>(
    { call, caller, arrivedAt, bytes }: KeptCall,
    make: (keep: () => Promise<ChangeHeader>) => Promise<T>,
  ): Promise<T | { readonly run: Run }> {
    const fingerprint = this.#fingerprint(call, caller);
    let waiting: ChangeHeader | undefined;
    return oneOf<T | { readonly run: Run }>(
      this.#context.store,
      { fingerprint, arrivedAt },
      {
        attach: async (runId) => {
          const stored = await this.stored(runId);
          if (stored?.started === false) {
            const { createdAt, unplanned } = stored.header;
            if (createdAt >= arrivedAt && !unplanned) waiting = stored.header;
            return undefined;
          }
          const run = await this.find(runId);
          if (run === undefined || isWithdrawn(run.state)) return undefined;
          const going = run.status() === "interrupted" ? await this.#takeUp(runId) : run;
          return going && { run: going };
        },
        make: () => make(async () => waiting ?? (await this.keep(call, caller, bytes))),
      },
    );
  }

  /** The runs of a caller that were cut short and that nobody goes on with, the newest first; a few of them. */
  async interrupted(caller: string): Promise<readonly Interrupted[]> {
    const { store, project, environment } = this.#context;
    return (await interruptedRuns(store, { caller, project, environment })).filter(
      ({ runId }) => !this.#driven.has(runId),
    );
  }

  /**
   * Cancels a run, whoever drives it: it sends nothing more once this has resolved, but for a request whose intent is on
   * the disk. Gives the run; undefined when there is none.
   */
  async cancel(runId: string): Promise<Run | undefined> {
    const driven = this.#driven.get(runId);
    if (driven?.stop("cancelled")) return driven;
    if ((await this.stored(runId))?.started)
      await cancelKept(this.#context.store, runId, (lease) => cancelInterrupted(this.#context, runId, lease));
    return this.find(runId);
  }

  /** Whether this process drives any run now. */
  get isDriving(): boolean {
    return this.#driven.size > 0;
  }

  /** Removes runs that need not be kept any longer. */
  tidy(): Promise<void> {
    return this.#context.store.tidy();
  }

  /** Stops all runs between two requests and resolves when the requests in flight are answered and journaled. */
  async stopAll(): Promise<void> {
    const runs = [...this.#driven.values()];
    this.#kept.end();
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
    return this.#kept.find(runId);
  }

  /** The runs of a caller, the newest first; of those that were not started the ones that wait for a person's yes. */
  list(caller: string): AsyncGenerator<ListedRun> {
    return listedRuns(this.#context.store, caller, {
      driven: (runId) => this.#driven.get(runId),
      find: (runId) => this.find(runId),
    });
  }

  /** A run as it was kept, and whether it was started; undefined when there is none. */
  async stored(runId: string): Promise<{ readonly header: ChangeHeader; readonly started: boolean } | undefined> {
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

  #drive(of: DrivenParts, begin: Begin): Run {
    const { runId } = of.header;
    const run = drivenRun(this.#context, of, begin);
    /** What another process makes of it that has taken it over. */
    let other: Run | undefined;
    let isLookedFor = true;
    const rest = run.rest.then(async () => {
      this.#driven.delete(runId);
      if (!run.isTakenOver()) return;
      other = await this.#kept.find(runId).catch(() => undefined);
      isLookedFor = false;
      await other?.rest;
    });
    const known: Run = {
      ...run,
      get state() {
        return other?.state ?? run.state;
      },
      // Until it is known what the other process makes of it, it goes on.
      status: () => (run.isTakenOver() && isLookedFor ? "running" : (other ?? run).status()),
      rest,
    };
    this.#driven.set(runId, known);
    return known;
  }
}

/** A call to be kept, and when it arrived: milliseconds since 1970. `bytes` is the content of its file. */
interface KeptCall {
  readonly call: WriteCall;
  readonly caller: string;
  readonly arrivedAt: number;
  readonly bytes: ByteSource | undefined;
}
