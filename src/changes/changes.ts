import type { ManagementApi } from "../api/management.ts";
import type { OpenedFile } from "../files/rows.ts";
import type { PlannedChanges, ResolvedRun } from "../plans/planned-undo.ts";
import { defined } from "../platform/by-key.ts";
import { FileError } from "../platform/files.ts";
import { type ByteSource, digestOf } from "../platform/held-folder.ts";
import { messageOf } from "../platform/text.ts";
import type { Ending, RunsContext } from "../runs/kind.ts";
import { KindRuns, type Requested, type RunInput, type RunMarks, startOrJoin } from "../runs/kind-runs.ts";
import { ownReason } from "../runs/outcome.ts";
import { DamagedRunError, isUnstarted, type RunHeader, RunStoreError, undefinedIfUnreadable } from "../runs/store.ts";
import type { Lease } from "../runs/turn.ts";
import type { BaseFile, PlanningTool, WriteCall } from "./call.ts";
import {
  CONFIRMATION_MS,
  changeOf,
  endingOf,
  fileOf,
  isUndone,
  isWithdrawn,
  madeBefore,
  needsConfirmation,
  settleDeletedBefore,
  UNREADABLE_FILE,
  undoingRuns,
  unfinishedPlanState,
} from "./change-kinds.ts";
import { type ChangeRun, type ChangeWorld, changeRunKind, type NewApproval } from "./change-run.ts";
import { RunState } from "./change-state.ts";
import { effectsOfRun } from "./done.ts";
import type { Loss, Plan, Planning } from "./plan/plan.ts";
import { plannedRequests, weighed } from "./plan/requests.ts";
import { preparingRun } from "./planned-later.ts";
import type { JournalEntry, Settlement } from "./rows/entries.ts";
import { StepList } from "./rows/steps.ts";

export type ChangeHeader = RunHeader<WriteCall>;

interface ArrivedWrite {
  readonly call: WriteCall;
  readonly caller: string;
  readonly arrivedAt: number;
  readonly bytes: ByteSource | undefined;
  readonly requested?: Requested | undefined;
}

interface Preparing {
  readonly meanwhile?: RunState | undefined;
  readonly ask?: ((header: ChangeHeader, plan: Plan) => Promise<void>) | undefined;
  /** Whether the run only stores a plan. If planning fails, such a run cannot be resumed. */
  readonly isForKeeping?: boolean;
}

/** Starts a planned run. Returns undefined if the run was started or ended meanwhile. */
export type StartPlanned = (plan: Plan) => Promise<ChangeRun | undefined>;

export class Changes {
  readonly runs: KindRuns<WriteCall, JournalEntry, RunState, Plan | Planning, NewApproval>;
  readonly #context: RunsContext & ChangeWorld;
  /**
   * By run ID: what the run would remove. Contains only runs that were planned after their call had been answered, and
   * whose next report must hold a confirmation token.
   */
  readonly #asked = new Map<string, { readonly losses: readonly Loss[]; readonly at: number }>();

  constructor(context: RunsContext & ChangeWorld) {
    this.#context = context;
    this.runs = new KindRuns(
      changeRunKind(context, {
        end: (header, plan) => this.#endUndone(header, plan),
        resolve: (call, signal) => this.#resolveUndone(call, signal),
        stateOf: async (runId) => (await undefinedIfUnreadable(this.runs.find(runId)))?.state,
      }),
      context,
    );
  }

  /** Returns an API for the reads of one plan. These share one limit for simultaneous reads. */
  api(): ManagementApi {
    const { api } = this.#context;
    return api.forCall?.() ?? api;
  }

  /** Plans a call without writing anything. Throws the ApiError of a failed read, or a FileError. */
  async plan(call: WriteCall, signal: AbortSignal, bytes?: ByteSource): Promise<Plan> {
    const resolve = this.#resolveUndone(call, signal);
    const plan = await changeOf(call).plan({ api: this.api(), signal, bytes, resolve });
    if (call.tool !== "apply_plan" && needsConfirmation(plan)) {
      const { noteTargetingFacts } = await import("./plan/planners.ts");
      await noteTargetingFacts(plan, { api: this.api(), signal });
    }
    plan.madeAt = this.#context.clock.now();
    return plan;
  }

  /**
   * Predicts which objects of a dry run would fail. A name that is taken only because an identical call has created the
   * object is no conflict. In `plan`, marks what an identical call has deleted as done.
   */
  async preflight(
    plan: Plan,
    { call, repeats }: { readonly call: WriteCall; readonly repeats?: string | undefined },
    signal: AbortSignal,
  ): Promise<readonly Settlement[]> {
    const { api, memory } = this.#context;
    const { deletes, onExisting } = changeOf(call);
    const mayRepeat = repeats !== undefined && (deletes || onExisting === "fail");
    const before = mayRepeat ? (await undefinedIfUnreadable(this.runs.find(repeats)))?.state : undefined;
    settleDeletedBefore(plan, call, before);
    // Loaded only here, so that the server starts fast.
    const { preflight } = await import("./plan/preflight.ts");
    return preflight(plan, { api, memory, signal, madeBefore: (object) => madeBefore(before, plan.objects, object) });
  }

  /**
   * Stores a run without starting it. If a run of an identical call already waits for approval, stores nothing and
   * returns the header of that run. A dry run is always stored.
   */
  async keep(call: WriteCall, caller: string, bytes?: ByteSource, marks?: RunMarks): Promise<ChangeHeader> {
    const repeats = await this.lastRun(call, caller);
    const waiting = marks?.dryRun ? undefined : await this.#ifWaiting(repeats);
    if (waiting !== undefined) return waiting.header;
    const file = fileOf(call);
    const input = file && bytes && { bytes, digest: file.digest };
    return this.runs.keep(call, caller, input, { ...marks, ...defined({ repeats }) });
  }

  async waitingRun(call: WriteCall, caller: string): Promise<ChangeRun | undefined> {
    return this.#ifWaiting(await this.lastRun(call, caller));
  }

  /** Returns the ID of the caller's latest run of an identical call. Dry runs do not count. */
  async lastRun(call: WriteCall, caller: string): Promise<string | undefined> {
    const [last] = await this.#context.store.list({ lastOf: this.runs.fingerprint(call, caller) });
    return last;
  }

  async #ifWaiting(last: string | undefined): Promise<ChangeRun | undefined> {
    const { store, clock } = this.#context;
    // The record is small. The run, which can be large, is read only if it waits.
    if (last === undefined || (await store.record(last))?.status !== "waiting") return undefined;
    const run = await undefinedIfUnreadable(this.runs.find(last));
    if (run?.status() !== "needs_confirmation") return undefined;
    const { until = Number.POSITIVE_INFINITY } = run.state.facts.waits ?? {};
    return until > clock.now() ? run : undefined;
  }

  /**
   * Stores a plan for a later `apply_plan`: as a new run, or in the run `earlier`, which has no plan yet. `kept.text`:
   * the text of the plan, which `checkStoredPlan` reads later.
   */
  async keepPlan(
    changes: PlannedChanges,
    kept: StoredPlan,
    earlier?: ChangeHeader,
  ): Promise<{ readonly header: ChangeHeader; readonly plan: Plan }> {
    const { planDesired } = await import("./plan/planners.ts");
    const plan = planDesired(changes, "show");
    const targetings = [changes, ...(changes.further ?? [])].map(({ targeting }) => targeting._id);
    const { call, input } = await plannedCall(kept, targetings);
    const header = earlier ?? (await this.#keepPlanned(call, kept, input));
    if (earlier !== undefined) await this.#context.store.parts.keep(header.runId, "input", input.bytes());
    await this.propose(header, plan);
    return { header, plan };
  }

  async runMakingPlan(unfinished: UnfinishedPlan): Promise<ChangeRun | undefined> {
    const { call } = await plannedCall(unfinished, unfinished.targetings);
    return this.runs.drivenLike(this.runs.fingerprint(call, unfinished.caller));
  }

  /** Plans a new run, or `earlier`, in the background. Until it is planned, its only object is the targeting. */
  async planLater(
    unfinished: UnfinishedPlan,
    { plan: making, stop }: Planning<FinishedPlan>,
    earlier?: ChangeHeader,
  ): Promise<ChangeRun> {
    reportedLater(making);
    const { call, input } = await plannedCall(unfinished, unfinished.targetings);
    const header = earlier ?? (await this.#keepPlanned(call, unfinished, input, { unplanned: true }));
    const plan = making.then(async ({ changes, text }) => {
      await this.#context.store.parts.keep(header.runId, "input", inOne(text)());
      const { planDesired } = await import("./plan/planners.ts");
      return planDesired(changes, "show");
    });
    return this.prepare(header, { plan, stop }, async () => undefined, {
      meanwhile: unfinishedPlanState(header.call),
      isForKeeping: true,
    });
  }

  async #keepPlanned(
    call: WriteCall,
    { caller, sheet, requested }: StoredPlan,
    input: RunInput,
    marks?: RunMarks,
  ): Promise<ChangeHeader> {
    const header = await this.runs.keep(call, caller, input, { ...marks, ...requested });
    if (sheet !== undefined) await this.#context.store.parts.keep(header.runId, "sheet", sheet.bytes());
    return header;
  }

  /** Stores a plan without its steps for a run that is not started. False if the run was started or ended meanwhile. */
  propose(header: ChangeHeader, plan: Plan): Promise<boolean> {
    const { runId, call } = header;
    if (call.tool === "apply_plan") {
      const foreseen = weighed(plan.steps, plannedRequests(plan.steps));
      plan.note({ tool: call.input.plannedBy, foreseen });
    }
    return this.runs.propose(runId, plan.outline(), isPlanAlone(header, plan) ? "planned" : "waiting");
  }

  /** Returns what a waiting run would remove, if its report must hold a confirmation token. Otherwise undefined. */
  asks({ header, status }: ChangeRun): readonly Loss[] | undefined {
    const isWaiting = status() === "needs_confirmation" || status() === "planned";
    return isWaiting ? this.#asked.get(header.runId)?.losses : undefined;
  }

  /** Starts a stored run in the background. Undefined if already started. Throws ExecutionRefusedError or FileError. */
  async start(header: ChangeHeader, plan: Plan | Planning, lease?: Lease): Promise<ChangeRun | undefined> {
    if ("plan" in plan) reportedLater(plan.plan);
    await this.runs.checkExecutable(header);
    if ("plan" in plan) {
      const { state, planning } = await this.#unplanned(header, plan);
      return this.runs.start(header, planning, { meanwhile: state, lease });
    }
    return this.runs.start(header, plan, { lease });
  }

  async startOrFind(header: ChangeHeader, plan: Plan): Promise<ChangeRun | undefined> {
    return (await this.start(header, plan)) ?? this.runs.find(header.runId);
  }

  /**
   * Plans a stored run in the background and starts it with `begin`. If `begin` returns undefined, `ask` requests
   * approval; without `ask`, the plan is only stored. While the plan is being made, the state of the run is
   * `meanwhile`. Default: a state that lists the whole input as pending. If the run is already planned or executed
   * elsewhere, stops `planning` and returns that run.
   */
  async prepare(
    header: ChangeHeader,
    planning: Planning,
    begin: (plan: Plan, start: StartPlanned) => Promise<ChangeRun | undefined>,
    { meanwhile, ask, isForKeeping = false }: Preparing = {},
  ): Promise<ChangeRun> {
    const { runId } = header;
    reportedLater(planning.plan);
    const unplanned = meanwhile === undefined ? await this.#unplanned(header, planning) : undefined;
    const standing = unplanned?.state ?? meanwhile ?? new RunState();
    this.#context.store.mention?.(runId);
    // The lease shows other processes that this process is alive and plans the run.
    const lease = await this.#context.store.lease(runId).catch((thrown: unknown) => {
      planning.stop();
      throw thrown;
    });
    const going = this.runs.driven(runId) ?? (lease === undefined ? await this.runs.lookAt(runId) : undefined);
    if (going !== undefined || lease === undefined) {
      planning.stop();
      await lease?.release();
      if (going === undefined) throw new RunStoreError("the run is no longer stored", "Make the call again.");
      return going;
    }
    let isStarted = false;
    const start: StartPlanned = async (plan) => {
      const started = await this.start(header, plan, lease);
      isStarted = started !== undefined;
      return started;
    };
    const run = preparingRun(header, unplanned?.planning ?? planning, {
      meanwhile: standing,
      begin: (plan) => begin(plan, start),
      propose: async (plan) => {
        await (ask === undefined ? this.propose(header, plan) : ask(header, plan));
        return isPlanAlone(header, plan) ? "planned" : "needs_confirmation";
      },
      startedElsewhere: async () => {
        const record = await this.#context.store.record(runId);
        return record === undefined || isUnstarted(record.status) ? undefined : this.runs.lookAt(runId);
      },
      // If the end cannot be stored, the run stays unstarted: it can be cancelled again, and is removed after a day.
      giveUp: (thrown) => this.#giveUp(header, thrown, isForKeeping).catch(() => undefined),
      withdraw: () => this.runs.withdraw(runId).catch(() => undefined),
      // A started run releases its lease itself. A lease that cannot be released expires.
      over: async () => (isStarted ? undefined : lease.release().catch(() => undefined)),
    });
    return this.runs.hold(run);
  }

  /** Returns the planning and a state that lists the whole input as pending. Rows of a file are added once read. */
  async #unplanned(header: ChangeHeader, planning: Planning) {
    const { call, runId } = header;
    if (fileOf(call) === undefined) {
      return { state: (await this.runs.initialState(header)) ?? new RunState(), planning };
    }
    const state = new RunState();
    const read = async (): Promise<void> => {
      const objects = await changeOf(call).objects(this.#context.store.parts.read(runId, "input"));
      state.adopt({ objects, steps: new StepList(), settlements: [] });
    };
    // Not reported here, because planning reads the same file and reports the error.
    const reading = read().catch(() => {
      if (state.objects.length === 0) state.apply(UNREADABLE_FILE);
    });
    const plan = planning.plan.catch(async (thrown: unknown) => {
      await reading;
      throw thrown;
    });
    reportedLater(plan);
    return { state, planning: { ...planning, plan } };
  }

  /**
   * Makes identical calls that arrive at the same time share one run, even in different processes. Returns the run of
   * such a call, which it resumes if it was interrupted. Otherwise returns what `make` returns. `make` gets a function
   * that returns the run to start: a waiting run of an identical call, or a new run.
   */
  once<T>(
    { call, caller, arrivedAt, bytes, requested }: ArrivedWrite,
    make: (keep: () => Promise<ChangeHeader>) => Promise<T>,
  ): Promise<T | { readonly run: ChangeRun }> {
    const fingerprint = this.runs.fingerprint(call, caller);
    return startOrJoin<T | { readonly run: ChangeRun }>(
      this.#context.store,
      { fingerprint, arrivedAt },
      {
        attach: async (runId) => {
          const record = await this.#context.store.record(runId);
          const run = await this.runs.find(runId);
          if (record === undefined || run === undefined || isWithdrawn(run.state)) return undefined;
          if (run.status() === "running") return (await this.runs.retain(runId)) ? { run } : undefined;
          // A run that waits for approval is not shared, because each caller must request the approval.
          if (isUnstarted(record.status)) return undefined;
          const going = run.status() === "interrupted" ? await this.runs.resumeRepeated(runId) : run;
          return going && { run: going };
        },
        make: () => make(() => this.keep(call, caller, bytes, requested)),
      },
    );
  }

  /**
   * Ends the run that a call undoes, so that it cannot be resumed. Does nothing if that run was undone before and
   * nothing is left to undo. Throws a FileError if that run is being executed.
   */
  async #endUndone(
    { runId, call }: Pick<ChangeHeader, "runId" | "call">,
    { steps }: Pick<Plan, "steps">,
  ): Promise<void> {
    const undoes = undoneBy(call);
    if (undoes === undefined || (await this.#context.store.record(undoes)) === undefined) return;
    const ending = (undone: RunState): Ending | undefined => {
      if (steps.length === 0 && isUndone(undone)) return undefined;
      const earlier = undoingRuns(undone).filter((id) => id !== runId);
      return {
        cause: "cancelled",
        reason: ownReason("UNDONE", { by: runId, ...(earlier.length > 0 && { earlier }) }),
      };
    };
    try {
      if (!(await this.runs.endForGood(undoes, ending))) throw resumedError();
    } catch (thrown) {
      // A damaged run cannot be resumed anyway.
      if (!(thrown instanceof DamagedRunError)) throw thrown;
    }
  }

  /**
   * Returns a function that finds out what the undone run did, including its unanswered requests. If such a request may
   * still be in progress, the function waits and reads again. Undefined if the call undoes no run.
   */
  #resolveUndone(call: WriteCall, signal: AbortSignal): (() => Promise<ResolvedRun>) | undefined {
    const undoes = undoneBy(call);
    if (undoes === undefined) return undefined;
    return async () => {
      const { store, clock, requestTimeoutMs } = this.#context;
      const run = await this.runs.lookAt(undoes);
      if (run === undefined || run.status() === "running") throw resumedError();
      const { state } = run;
      const { earlierUndos, leftOf, resolveDoubts, withoutUndone } = await import("./resolve-doubts.ts");
      const reading = { api: this.api(), signal };
      let found = await resolveDoubts(state, reading);
      // Before an earlier undo, this server has already waited until no request of the run could be in progress.
      const waitMs = isUndone(state) ? 0 : Math.min(state.updatedAt + requestTimeoutMs - clock.now(), requestTimeoutMs);
      if (!found.areApplied && waitMs > 0) {
        await clock.sleep(waitMs, signal);
        found = await resolveDoubts(state, reading);
      }
      const former = store.parts.read(undoes, "former");
      const undos = await earlierUndos(state, {
        find: (runId) => undefinedIfUnreadable(this.runs.find(runId)),
        former: (runId) => store.parts.read(runId, "former")(),
      });
      const [known, done] = [
        await effectsOfRun(state, former()),
        await effectsOfRun(state, former(), leftOf(found, state, undos)),
      ];
      return { known: withoutUndone(known, undos), done: withoutUndone(done, undos) };
    };
  }

  /** Ends a run whose planning failed. With `isOver`, it cannot be resumed. Otherwise the error decides how it ends. */
  async #giveUp({ runId }: ChangeHeader, thrown: unknown, isOver: boolean): Promise<ChangeRun | undefined> {
    const reason = ownReason("NOT_PLANNED", { error: messageOf(thrown) });
    const ending = endingOf(thrown) ?? ({ cause: "interrupted", reason } as const);
    const detail = { ...ending.reason?.detail, isOver };
    const over = { cause: "ended", reason: ownReason("NOT_PLANNED", detail) } as const;
    await undefinedIfUnreadable(this.runs.withdraw(runId, isOver ? over : ending));
    return undefinedIfUnreadable(this.runs.lookAt(runId));
  }

  /** Remembers what a run would remove, at least for as long as its confirmation token is valid. */
  remember(runId: string, losses: readonly Loss[]): void {
    const at = this.#context.clock.now();
    for (const [id, asked] of this.#asked) if (at - asked.at > CONFIRMATION_MS) this.#asked.delete(id);
    this.#asked.set(runId, { losses, at });
  }
}

/**
 * Marks an error of planning as handled: the run reports it once it is stored. Until then, nothing waits for `planning`,
 * and Node ends the process after an error that nothing handles.
 */
function reportedLater(planning: Promise<unknown>): void {
  planning.catch(() => undefined);
}

/** Returns whether a run only stores a plan until it is applied. Storing a plan needs no approval. */
function isPlanAlone({ call, dryRun }: ChangeHeader, plan: Plan): boolean {
  return (call.tool === "apply_plan" || dryRun === true) && plan.facts.waits === undefined;
}

function undoneBy({ tool, input }: WriteCall): string | undefined {
  return tool === "apply_plan" ? input.undoes : undefined;
}

function resumedError(): FileError {
  return new FileError(
    "the run to undo is being executed or undone by another call",
    "Wait until that call has ended, then call undo_run again.",
  );
}

type PlanText = string | ByteSource;

/** A plan to store. `text`: the plan as JSON. `undoes`: the ID of the run to undo. */
export interface StoredPlan {
  readonly text: PlanText;
  readonly plannedBy: PlanningTool;
  readonly base?: BaseFile | undefined;
  readonly undoes?: string | undefined;
  readonly sheet?: Pick<OpenedFile, "file" | "bytes"> | undefined;
  readonly caller: string;
  readonly requested?: Requested | undefined;
}

/** A plan that is still being made. Until it is made, `text` contains the input from which it can be made again. */
interface UnfinishedPlan extends StoredPlan {
  readonly targetings: readonly string[];
}

export interface FinishedPlan {
  readonly changes: PlannedChanges;
  readonly text: PlanText;
}

async function plannedCall(
  { text, plannedBy, base, undoes, sheet }: StoredPlan,
  targetings: readonly (string | undefined)[],
): Promise<{ readonly call: WriteCall<"apply_plan">; readonly input: RunInput }> {
  const bytes = inOne(text);
  const digest = await digestOf(bytes);
  const [targetingId, ...further] = targetings;
  const furtherIds = further.flatMap((id) => id ?? []);
  const about = defined({ base, undoes, sheet: sheet?.file, targetingId });
  const call = { plannedBy, ...about, ...(furtherIds.length > 0 && { furtherIds }), digest };
  return { call: { tool: "apply_plan", input: call }, input: { bytes, digest } };
}

function inOne(text: PlanText): ByteSource {
  if (typeof text !== "string") return text;
  return async function* () {
    yield Buffer.from(text);
  };
}
