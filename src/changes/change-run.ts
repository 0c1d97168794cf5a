import { isApiError } from "../api/errors.ts";
import type { BulkItems, ManagementApi, Reading } from "../api/management.ts";
import type { InputFile } from "../files/input-file.ts";
import type { ResolvedRun } from "../plans/planned-undo.ts";
import type { Clock } from "../platform/clock.ts";
import { inPieces } from "../platform/files.ts";
import { placedOptions, savedOption, withContexts } from "../reads/saved-options.ts";
import type { ProjectLock, TargetingMemory } from "../runs/backend.ts";
import type {
  ExecutableRun,
  ReadBack,
  Run,
  RunAccess,
  RunExecution,
  RunForm,
  RunKind,
  StoredParts,
} from "../runs/kind.ts";
import { ownReason, type Reason } from "../runs/outcome.ts";
import { isUnstarted } from "../runs/store.ts";
import type { Turn } from "../runs/turn.ts";
import type { RouteTable } from "../spec/routes.ts";
import { requestReason } from "./api-reasons.ts";
import type { WriteCall } from "./call.ts";
import {
  changeOf,
  endingOf,
  fileOf,
  isUndone,
  isWithdrawn,
  madeBefore,
  mayBeClaimed,
  mayGoOn,
  notPlannedForGood,
  objectEntries,
  settleDeletedBefore,
  unfinishedPlanState,
  unplannedState,
  WRITE_TOOLS,
  writeCall,
} from "./change-kinds.ts";
import { RunState } from "./change-state.ts";
import { isGoing, type Plan, type Planning } from "./plan/plan.ts";
import { canSendInAnyOrder, plannedRequests, type Requests } from "./plan/requests.ts";
import { type JournalEntry, journalEntry, journalLine, type RunFacts, type Step } from "./rows/entries.ts";
import { RowBlock } from "./rows/row-block.ts";
import { rowOf } from "./rows/steps.ts";
import { COMPARE_AGAIN, drive } from "./settle/drive.ts";
import { type ChangeDriver, ServerClock } from "./settle/evidence.ts";
import { existingIds } from "./settle/reconcile.ts";

export interface ChangeWorld extends FinishingWorld {
  readonly routes: RouteTable;
  readonly lock: ProjectLock;
  readonly clock: Clock;
  readonly random: () => number;
  readonly project: string;
  /** The time limit of a request, in milliseconds. This long after a run has ended, none of its requests is open. */
  readonly requestTimeoutMs: number;
}

export type ChangeRun = Run<WriteCall, RunState>;

export function isChangeRun(run: Run): run is ChangeRun {
  return run.kind === CHANGE_FORM.name;
}

/** Returns whether a run changes targetings or options. The state of the run is not needed. */
export function isChangeKind(run: ExecutableRun): run is Pick<ChangeRun, "kind" | "header"> {
  return run.kind === CHANGE_FORM.name;
}

type DrivenChange = RunExecution<WriteCall, JournalEntry, RunState>;

export const CHANGE_FORM: RunForm<WriteCall, JournalEntry> = {
  name: "changes",
  tools: WRITE_TOOLS,
  call: writeCall,
  entry: journalEntry,
  line: journalLine,
};

/** How long `takenOver` waits at most, both for the write lock and for the previous process, in milliseconds. */
const TURN_MS = 10_000;
/** How many plan entries, without blocks of rows, are collected in memory before they are written to disk. */
const ENTRIES_PER_FLUSH = 64;

export type NewApproval = Pick<RunFacts, "asked" | "decided">;

type ChangeRunKind = RunKind<WriteCall, JournalEntry, RunState, Plan | Planning, NewApproval>;

interface OtherRuns {
  /** Ends the run that the call undoes, if any, so that it cannot be resumed. */
  end(header: { readonly runId: string; readonly call: WriteCall }, plan: Pick<Plan, "steps">): Promise<void>;
  /** If the call undoes a run, returns a function that finds out what that run did, including unanswered requests. */
  resolve(call: WriteCall, signal: AbortSignal): (() => Promise<ResolvedRun>) | undefined;
  stateOf(runId: string): Promise<RunState | undefined>;
}

export function changeRunKind(world: ChangeWorld, others: OtherRuns): ChangeRunKind {
  const serverClock = new ServerClock();
  const goOn = async (
    run: DrivenChange,
    begin: (driver: ChangeDriver) => Promise<Requests | undefined>,
  ): Promise<void> => {
    const driver = driverOf(run, world, serverClock, others);
    const beginning = await begun(run, () => begin(driver), world.clock);
    if (beginning === "stopped") return;
    const { signal, header } = run;
    const hold = <T>(work: (turn: Turn) => Promise<T>): Promise<T> =>
      world.lock.hold(
        world.project,
        async (turn) => {
          await turn.settled(signal);
          return work(turn);
        },
        signal,
        header.caller,
      );
    await drive(driver, hold, run.cause, beginning);
  };
  return {
    ...CHANGE_FORM,
    newState: () => new RunState(),
    // Leaves out the settings that were detected in the file, because one of two identical calls may have them and the
    // other may not.
    identity: (call) => ({ ...call, input: { ...call.input, file: withoutFound(fileOf(call)) } }),
    isPlannedFirst: true,
    recoversOrphans: false,
    readBack,
    initialState: unplannedState,
    start: (run, plan) => goOn(run, (driver) => recordPlan(run, driver, plan, { ...world, ...others })),
    resume: (run, agreed) =>
      goOn(run, async (driver) => {
        if (!run.state.planned) {
          const { api } = world;
          const { call } = run.header;
          const reading = { api: api.forCall?.() ?? api, signal: run.signal, bytes: run.part("input") };
          const plan = await changeOf(call).plan({ ...reading, resolve: others.resolve(call, run.signal) });
          await recordPlan(run, driver, plan, { ...world, ...others });
        }
        driver.change(run.state.lostInFlight().map((step) => ({ step, to: "suspect" })));
        if (agreed !== undefined) run.record({ t: "facts", facts: agreed });
        run.record({ t: "resume", at: world.clock.now() });
        return undefined;
      }),
    // Waits in the background until the previous process can no longer write, so that the run need not wait later.
    takenOver() {
      const signal = AbortSignal.timeout(TURN_MS);
      void world.lock.hold(world.project, (turn) => turn.settled(signal), signal).catch(() => undefined);
    },
    stop: (ending, at) => ({ t: "stop", ...ending, at }),
    reasonOf,
    finish: (run) => finishChange(run, world),
    isOpen: (_, state) => {
      const { unknown, notApplied, pending } = state.counts();
      const isOver = isWithdrawn(state) || isUndone(state) || notPlannedForGood(state) !== undefined;
      return !isOver && unknown + notApplied + pending > 0;
    },
    lateEntry: ({ late }, at) => (late.length > 0 ? { t: "late", steps: late, at } : undefined),
    isMeant: ({ status, open, counts }, isRecent) =>
      status === "interrupted" || (isRecent && open && (counts.notApplied ?? 0) + (counts.unknown ?? 0) > 0),
    mayBeClaimed,
    mayGoOn,
  };
}

function withoutFound(file: InputFile | undefined) {
  if (file?.given === undefined) return file;
  const { digest, format, encoding, given } = file;
  return { digest, format, encoding, given };
}

/**
 * Reads the state of a run from its journal. If that has neither a plan nor an end, reads it from the proposed plan or,
 * without one, makes it from the call.
 */
async function readBack({
  header,
  record,
  entries,
  proposed,
  part,
}: StoredParts<WriteCall, JournalEntry>): Promise<ReadBack<JournalEntry, RunState>> {
  const { status } = record;
  const state = isUnstarted(status) ? new RunState() : await stateFrom(entries);
  if (state.planned) return { state };
  const restart = { from: new RunState(), first: [{ t: "replan" }] } as const;
  if (state.stopped !== undefined) return { ...restart, state, unwritten: () => objectEntries(state) };
  const asked = status === "planning" ? state : await stateFrom(proposed);
  // A plan that changes nothing has no objects, but it has a `facts.tool`.
  const isThere = asked.objects.length > 0 || asked.facts.tool !== undefined;
  if (isThere) return { ...restart, state: asked, unwritten: () => proposed };
  const given = await unplanned(status === "planning", header, part);
  return { ...restart, state: given, unwritten: () => objectEntries(given) };
}

function unplanned(
  isPlanning: boolean,
  { call, unplanned }: StoredParts<WriteCall, JournalEntry>["header"],
  part: StoredParts<WriteCall, JournalEntry>["part"],
): RunState | Promise<RunState> {
  if (call.tool === "apply_plan") return unfinishedPlanState(call);
  // The run was just stored and is being planned, so nothing is known about it yet.
  return isPlanning && unplanned === undefined ? new RunState() : unplannedState(call, part("input"));
}

async function stateFrom(entries: AsyncIterable<JournalEntry>): Promise<RunState> {
  let state = new RunState();
  for await (const entry of entries) {
    if (entry.t === "replan") state = new RunState();
    else state.apply(entry);
  }
  return state;
}

/**
 * Starts or resumes a run. If planning is stopped, or fails with an ApiError or a FileError, records the objects and
 * the reason, and returns "stopped".
 */
async function begun(
  run: DrivenChange,
  begin: () => Promise<Requests | undefined>,
  clock: Clock,
): Promise<Requests | "stopped" | undefined> {
  const { state, signal, meanwhile } = run;
  try {
    return await begin();
  } catch (thrown) {
    if (state.objects.length === 0 && meanwhile !== undefined) {
      for (const entry of objectEntries(meanwhile)) run.record(entry);
    }
    const cause = run.cause();
    const stopped = { cause, reason: ownReason(cause === "cancelled" ? "CANCELLED" : "INTERRUPTED") };
    const ending = signal.aborted ? stopped : endingOf(thrown);
    if (ending === undefined || state.planned) throw thrown;
    run.record({ t: "stop", ...ending, at: clock.now() });
    return "stopped";
  }
}

/**
 * Writes a plan to the journal, and ends the run that it undoes. The previous values are stored before the last entry,
 * `planned`, because requests may be sent after that entry. Returns the requests if they can be sent in any order.
 */
async function recordPlan(
  run: DrivenChange,
  driver: ChangeDriver,
  given: Plan | Planning,
  world: ChangeWorld & Pick<OtherRuns, "stateOf" | "end">,
): Promise<Requests | undefined> {
  const { clock } = world;
  const plan = isGoing(given) ? await madeBy(given, run.signal) : given;
  const { call, repeats } = run.header;
  if (repeats !== undefined) settleDeletedBefore(plan, call, await world.stateOf(repeats));
  run.state.adopt(plan);
  let waiting = 0;
  for (const entry of plan.entries()) {
    run.append(entry);
    // Blocks of rows need no memory of their own, because they share it with the plan. So they are not counted.
    if (entry.t !== "rows") waiting += 1;
    if (waiting === ENTRIES_PER_FLUSH) {
      await run.flush();
      waiting = 0;
    }
  }
  // Begins to write the entries now, because the first request has to wait until they are on disk.
  run.write();
  // Ends the run to undo only now: an undo that is declined or cancelled before its start must not end that run.
  if (plan.facts.stale === undefined) await world.end(run.header, plan);
  await storePreviousValues(plan, run, world);
  driver.compareAt = clock.monotonic() + COMPARE_AGAIN.ms;
  const requests = plannedRequests(plan.steps);
  run.record({ t: "planned", requests: requests.length, at: clock.now() });
  return driver.apartBy === undefined && canSendInAnyOrder(plan.steps, requests) ? requests : undefined;
}

async function madeBy({ plan, stop }: Planning, signal: AbortSignal): Promise<Plan> {
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    return await plan;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function driverOf(
  run: DrivenChange,
  { api, clock, random, retryBudgetMs, routes }: ChangeWorld,
  serverClock: ServerClock,
  others: OtherRuns,
): ChangeDriver {
  const { state, record, lease, signal, header, flush, intend, mayAnnounce, mayLeave, progress } = run;
  let repeated: Promise<RunState | undefined> | undefined;
  const perTargeting = routes.addOptions.path.includes("{targetingId}");
  return {
    ...{ api, clock, serverClock, random, retryBudgetMs },
    ...{ state, signal, record, lease, flush, intend, mayAnnounce, mayLeave, progress },
    onExisting: changeOf(header.call).onExisting,
    compareAt: Number.NEGATIVE_INFINITY,
    lostCreates: "before",
    changedSince: async (isFull) => {
      // Imported only when needed, because most runs end before their first comparison is due.
      const { changedSince } = await import("./settle/changed-since.ts");
      return changedSince(run, isFull, { api, signal });
    },
    change: (changes, more = {}) => {
      record({ t: "answer", at: clock.now(), changes, ...more });
      progress();
    },
    madeBefore: async (object) => {
      if (header.repeats === undefined) return undefined;
      repeated ??= others.stateOf(header.repeats);
      return madeBefore(await repeated, state.objects, object);
    },
    connect: async (operation) => api.connect?.(operation),
    send: (operation, ids, fence) => {
      const inPath = operation === "addOptions" && perTargeting;
      const items = requestItems(state, ids, inPath);
      const targetingId = inPath ? state.boundId(state.steps.partAt(ids[0] ?? -1), "targeting") : undefined;
      return api.bulk(operation, items, { fence, targetingId });
    },
    ...(perTargeting && {
      apartBy: (id: number) => {
        const part = state.steps.partAt(id);
        return part?.operation === "addOptions" ? (state.boundId(part, "targeting") ?? "") : "";
      },
    }),
  };
}

/** Returns why a run ends after a failed read. Undefined if the error is not from the API. */
function reasonOf(thrown: unknown): Reason | undefined {
  if (!isApiError(thrown)) return undefined;
  const reason = requestReason(undefined, thrown);
  if (thrown.effect !== "rejected") return ownReason("RUN_ENDED", { because: reason.code });
  return { ...reason, detail: { ...reason.detail, operation: thrown.operation } };
}

/** How long the values that a plan has read count as current, in milliseconds. */
const FRESH_MS = 60_000;

/**
 * Stores what the run will remove (part `removed`) and the previous values of what it changes (part `former`). Throws
 * if a read fails: without these values, the run must not delete anything.
 */
async function storePreviousValues(
  plan: Plan,
  { lease, keep, signal }: DrivenChange,
  { api, clock }: ChangeWorld,
): Promise<void> {
  if (plan.removed.length > 0) {
    await lease.renew();
    const isFresh = plan.madeAt !== undefined && clock.now() - plan.madeAt <= FRESH_MS;
    await keep("removed", inPieces(removedLines(plan, isFresh, { api, signal })));
  }
  if (plan.former.size > 0) await keep("former", inPieces(plan.former.lines()));
}

/** Yields the lines of the part `removed`. Adds the options that are read for these lines to the previous values. */
async function* removedLines(
  { removed, former }: Plan,
  isFresh: boolean,
  { api, signal }: Reading,
): AsyncGenerator<string> {
  for (const one of removed) {
    if (one.kind === "row") yield `${JSON.stringify(one.row)}\n`;
    else if (isFresh && one.kind === "options" && one.areRead) {
      for (const placed of one.options) yield `${JSON.stringify(savedOption(placed, placed.contexts))}\n`;
    } else {
      const options = one.kind === "options" ? one.options : placedOptions(api, one._id, signal);
      const within = one.kind === "targeting" ? { targeting: one._id } : {};
      for await (const read of withContexts(api, options, { signal })) {
        const { option, contexts } = read;
        // Recorded here, because an undo creates the options of a deleted targeting again in this order.
        former.record({ ...option, ...within });
        former.option({ _id: option._id, held: [...contexts] });
        yield `${JSON.stringify(savedOption(read, read.contexts))}\n`;
      }
    }
  }
}

/**
 * Returns the items of a request as JSON. The bound fields of a step, such as `parent`, come first in its item.
 * `targetingInPath`: the ID of the targeting is in the URL, not in the items. Throws a RangeError if a required ID is
 * unknown.
 */
export function requestItems(state: RunState, ids: readonly number[], targetingInPath: boolean): BulkItems {
  const pieces: Uint8Array[] = [OPENING];
  for (let at = 0; at < ids.length; ) {
    if (at > 0) pieces.push(COMMA);
    const id = ids[at] ?? 0;
    const part = state.steps.partAt(id);
    if (part instanceof RowBlock && !targetingInPath) {
      let rows = 1;
      while (ids[at + rows] === id + rows && state.steps.partAt(id + rows) === part) rows += 1;
      pieces.push(part.items(rowOf(part, id), rowOf(part, id) + rows));
      at += rows;
    } else {
      const step = state.steps.at(id);
      if (step !== undefined) pieces.push(Buffer.from(itemText(state, step, targetingInPath)));
      at += 1;
    }
  }
  pieces.push(CLOSING);
  return { count: ids.length, json: Buffer.concat(pieces) };
}

const OPENING = Buffer.from("[");
const COMMA = Buffer.from(",");
const CLOSING = Buffer.from("]");

function itemText(state: RunState, { id: step, item, bindings }: Step, targetingInPath: boolean): string {
  const bound: Record<string, string> = {};
  for (const binding of bindings) {
    const id = state.idOfBinding(binding);
    if (id === undefined) throw new RangeError(`step ${step} needs the ID of an object that was not created`);
    if (!(targetingInPath && binding.field === "targeting")) bound[binding.field] = id;
  }
  return JSON.stringify(item === undefined ? bound._id : { ...bound, ...item });
}

interface FinishingWorld {
  readonly api: ManagementApi;
  readonly retryBudgetMs: number;
  /** Returns the sentence that explains a reason, for the file of failed rows. */
  readonly words: (reason: Reason) => string | Promise<string>;
  readonly memory: TargetingMemory;
}

/** Stores the failed rows of an ended run. Updates the known names of targetings, and the base of an applied file. */
async function finishChange(
  { header: { call }, state, part, keep }: RunAccess<WriteCall, RunState>,
  { words, memory, api, retryBudgetMs }: FinishingWorld,
): Promise<void> {
  const { rejects } = changeOf(call);
  const file = fileOf(call);
  const failed = file === undefined ? undefined : (await import("../files/result-sheet.ts")).failedRows(state);
  try {
    if (file !== undefined && failed !== undefined) {
      const rows = failed.size > 0 ? rejects?.(part("input"), file, { failed, words }) : undefined;
      await keep("rejects", rows ?? nothing());
    }
  } finally {
    const { named, gone } = targetingsOf(state);
    if (named.length > 0) await memory.remember(named);
    if (gone.length > 0) await memory.forget(gone);
  }
  const base = call.tool === "apply_plan" ? call.input.base : undefined;
  if (base === undefined) return;
  const reading = { api, signal: AbortSignal.timeout(retryBudgetMs) };
  const { renewBaseAt } = await import("../plans/look-again.ts");
  await renewBaseAt(base, { plan: part("input"), objects: state }, reading);
}

function targetingsOf(state: RunState) {
  const { steps, objects } = state;
  const named: { readonly _id: string; readonly name: string }[] = [];
  const gone: string[] = [];
  for (const step of steps.parts()) {
    const { operation } = step;
    const isDelete = operation === "deleteTargetings";
    if (!(isDelete || operation === "createTargetings" || operation === "renameTargetings")) continue;
    const [object = -1] = step.objects;
    const _id = state.idOf(object);
    const outcome = state.standing(object);
    const reason = isDelete ? undefined : state.reason(object);
    // The refusal contains the ID of the targeting that has the name. It is remembered for the next plan or dry run.
    const [holder] = reason?.code === "TARGETING_NAME_DUPLICATE" ? existingIds(reason) : [];
    if (holder !== undefined) named.unshift({ _id: holder, name: objects.at(object)?.name ?? "" });
    if (_id === undefined) continue;
    if (isDelete && state.hasSucceeded(object)) gone.push(_id);
    if (!isDelete && outcome === "succeeded") named.push({ _id, name: objects.at(object)?.name ?? "" });
  }
  return { named, gone };
}

async function* nothing(): AsyncGenerator<never> {}
