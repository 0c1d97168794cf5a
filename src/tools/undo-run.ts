import * as z from "zod";
import { undoAnswer } from "../answers/plan-answers.ts";
import type { ManagementApi } from "../api/management.ts";
import { isUndone, isWithdrawn, undoingRuns, undoneByRun } from "../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import type { ChangeHeader } from "../changes/changes.ts";
import { effectsOfRun, possibleRemovals } from "../changes/done.ts";
import { type EarlierUndo, earlierUndos, hasNoEffect, withoutUndone } from "../changes/resolve-doubts.ts";
import { type PlannedUndo, planUndo } from "../plans/planned-undo.ts";
import { unlessMissing } from "../plans/read-targeting.ts";
import { targetingsIn } from "../plans/undo.ts";
import { mayBeUndoneLater, type UndoRow } from "../plans/undo-plan.ts";
import { undefinedIf } from "../platform/files.ts";
import { amount } from "../platform/text.ts";
import type { Done } from "../runs/kind.ts";
import { DamagedRunError, type RunHeader, undefinedIfUnreadable } from "../runs/store.ts";
import { changesOf, undefinedIfLate } from "./apis.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError } from "./define-tool.ts";
import { checkNoEventDryRun } from "./event-report.ts";
import { newPlanAnswer, planNowOrInBackground } from "./plan-in-time.ts";
import { notKept } from "./run-reports.ts";

const input = () => z.strictObject({ runId: z.string() });

export const undoRun = {
  name: "undo_run",
  title: "Plan how to undo a run",
  description:
    "Plans how to undo, revert or take back what a run did, or restore what it deleted, and stores the plan. Labels each object: exact, caveat (restored with differences), notOurs (changed by others), impossible or unresolved (result unknown). Sends nothing; apply_plan applies it.",
  toolset: "targeting",
  effect: "reads",
  idempotent: false,
  input,
  output: () =>
    z.looseObject({ environment: z.string(), runId: z.string().optional(), undo: z.looseObject({}).optional() }),
  handler: ({ runId }, context) => startUndoPlan(runId, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

/** Plans the undo of a run. Stores the plan in a new run, or in `earlier`, the run of an interrupted call. */
export async function startUndoPlan(runId: string, context: ToolContext, earlier?: ChangeHeader): Promise<ToolAnswer> {
  const { targetings, make, undoes, notes, undone } = await undoPlanOf(runId, context);
  return planNowOrInBackground<PlannedUndo>(
    {
      plannedBy: "undo_run",
      undoes,
      from: { given: { runId: undoes } },
      targetings,
      make,
      textOf: (made) => made,
      async answer(made, keep) {
        const { environment, readOnly } = context;
        const { rows, already, isEmpty, document } = made;
        // A plan without changes is stored only if its run already exists.
        const kept = isEmpty && earlier === undefined ? undefined : await keep();
        if (kept === undefined && rows.length === 0 && undone !== undefined) throw undone;
        const all = [
          ...(notes ?? []),
          ...goneNote(made.gone),
          ...((await undefinedIfLate(context, laterRunsNote(undoes, made, context))) ?? []),
        ];
        if (kept === undefined) return undoAnswer({ environment, undoes, rows, already, readOnly, notes: all });
        return newPlanAnswer(document, kept.header, kept.plan, { ...context, notes: all });
      },
    },
    context,
    earlier,
  );
}

/** Returns a note about targetings that no longer exist. At most 5 of them are listed. */
function goneNote(ids: readonly string[]): readonly string[] {
  const [first, ...others] = ids;
  if (first === undefined) return [];
  const more = ids.length > 5 ? `, and ${ids.length - 5} more` : "";
  return others.length === 0
    ? [`Targeting ${first} no longer exists. If it was restored, it has a new ID, and this undo changes nothing in it.`]
    : [
        `These targetings no longer exist: ${ids.slice(0, 5).join(", ")}${more}. Those that were restored have new IDs, and this undo changes nothing in them.`,
      ];
}

/** Where to look for later changes: how many of the caller's latest runs are listed and read at most. */
const LATER_RUNS = { listed: 100, read: 10 } as const;

/** Returns a note about the caller's later runs that must be undone before a part of this undo is possible. */
async function laterRunsNote(
  undoes: string,
  { rows }: Pick<PlannedUndo, "rows">,
  context: ToolContext,
): Promise<readonly string[]> {
  const open = new Set(rows.filter(mayBeUndoneLater));
  if (open.size === 0) return [];
  const undone = await changeRunOf(undoes, context);
  const targetings = new Set(rows.flatMap(({ targeting }) => targeting ?? []));
  const found: string[] = [];
  let [listed, read] = [0, 0];
  for await (const { runId, status, targetingId, updatedAt } of context.runs.list(context.caller)) {
    listed += 1;
    if (listed > LATER_RUNS.listed || read >= LATER_RUNS.read || open.size === 0) break;
    const isElsewhere = targetingId !== undefined && !targetings.has(targetingId);
    const isEarlier = undone !== undefined && updatedAt < undone.header.createdAt;
    if (runId === undoes || status === "planned" || isElsewhere || isEarlier) continue;
    const run = await changeRunOf(runId, context);
    if (run === undefined || isUndone(run.state) || run.header.project !== context.project.id) continue;
    read += 1;
    const prevents = preventing(await effectsOfRun(run.state, context.runs.part(runId, "former")()));
    const own = [...open].filter(prevents);
    for (const row of own) open.delete(row);
    const tool = run.state.facts.tool ?? run.header.call.tool;
    if (own.length > 0) found.push(`run ${runId} (${tool}, ${amount(own.length, "object")})`);
  }
  if (found.length === 0) return [];
  const [runs, first] =
    found.length === 1
      ? ["A later run prevents", "undo that run"]
      : ["Later runs prevent", "undo these runs, the latest first"];
  return [
    `${runs} a part of this undo: ${found.join(", ")}. To undo that part too, ${first}, and plan this undo again.`,
  ];
}

/**
 * Returns a function that tells whether a later run is why a row of an undo plan cannot be undone: it changed the
 * object of the row, put options into it, or gave its previous name to another object.
 */
function preventing({ options, targetings }: Pick<Done, "options" | "targetings">): (row: UndoRow) => boolean {
  const changed = new Set([...options, ...targetings].map(({ _id }) => _id));
  const filled = new Set<string>();
  const names = new Set<string>();
  for (const option of options) {
    if (option.did === "deleted") continue;
    const { name, parent } =
      option.did === "created" ? option.left : { name: option.name?.to, parent: option.parent?.to };
    if (name !== undefined) names.add(name);
    if (typeof parent === "string") filled.add(parent);
    if (option.did === "created") filled.add(option.targeting);
  }
  return ({ _id = "", undo, reasons = [], field, now }) => {
    if (undo === "notOurs") return (field === "subOptions" || field === "added" ? filled : changed).has(_id);
    return reasons.includes("nameTaken") && typeof now === "string" && names.has(now);
  };
}

/** Plans the undo of a run and stores the plan. `kept` is undefined if the plan has no changes. */
export async function keepUndoPlan(runId: string, context: ToolContext) {
  const { make, undoes, undone } = await undoPlanOf(runId, context);
  const { rows, already, isEmpty, document, changes, text } = await make(context.signal);
  if (isEmpty && rows.length === 0 && undone !== undefined) throw undone;
  const { caller, requested } = context;
  const about = { plannedBy: "undo_run", undoes, text, caller, requested } as const;
  return { rows, already, document, kept: isEmpty ? undefined : await changesOf(context).keepPlan(changes, about) };
}

async function undoPlanOf(runId: string, context: ToolContext) {
  const api = changesOf(context).api();
  const { doneByRun, undoes = runId, ...more } = await doneOf(runId, api, context);
  const targetings = targetingsIn(await doneByRun());
  // The changes are computed again here. Otherwise they would take up memory until the plan is made.
  const make = async (signal: AbortSignal): Promise<PlannedUndo> =>
    planUndo(
      await doneByRun(),
      { undoes, environment: context.environment, apiUrl: context.apiUrl },
      { api, signal, memory: context.memory },
    );
  return { targetings, make, undoes, ...more };
}

interface Undoable {
  readonly doneByRun: () => Promise<Done>;
  /** The run that is undone. Only set if it is a later run that made the changes of the requested one again. */
  readonly undoes?: string;
  readonly notes?: readonly string[];
  /** The error to throw if nothing is left to undo. Only set if the requested run was undone before. */
  readonly undone?: ToolError;
}

/** Returns which run to undo, and what it changed. Throws if it cannot be undone. */
async function doneOf(runId: string, api: ManagementApi, context: ToolContext): Promise<Undoable> {
  const former = context.runs.part(runId, "former");
  try {
    const run = await undoable(runId, context);
    return isUndone(run.state)
      ? await undoableAgain(run, context)
      : { doneByRun: () => effectsOfRun(run.state, former()) };
  } catch (thrown) {
    if (!(thrown instanceof DamagedRunError && thrown.holdsRemoved)) throw thrown;
    const { header } = thrown;
    if (header !== undefined) checkProject(header, context);
    // A targeting is not found if it was deleted, or if the key is of another project. The header of the run, if it can
    // be read, shows that the key is of the right project.
    const isGone = async (_id: string): Promise<boolean> =>
      header !== undefined && (await unlessMissing(api.getTargeting(_id, { signal: context.signal }))) === undefined;
    const doneByRun = async () => {
      const done = await possibleRemovals(former(), context.runs.part(runId, "removed")(), isGone);
      if (done === undefined) throw thrown;
      return done;
    };
    return { doneByRun };
  }
}

function checkProject({ project, environment }: RunHeader, context: ToolContext): void {
  if (project === context.project.id && environment === context.environment) return;
  throw new ToolError(
    "this run belongs to another project or environment than the keys of this server",
    "Use a server with the same address and key as the run.",
  );
}

async function undoable(runId: string, context: ToolContext): Promise<ChangeRun> {
  const run = await context.runs.findOwn(runId, context.caller);
  if (run === undefined) throw notKept(runId, context);
  checkProject(run.header, context);
  checkNoEventDryRun(run, "there is nothing to undo");
  if (!isChangeRun(run)) {
    throw new ToolError(
      "this run cannot be undone: it changed no targeting, and the service keeps the events that it recorded",
      "Nothing can be done.",
    );
  }
  const status = run.status();
  if (status === "running") {
    throw new ToolError(
      "this run is still running",
      "Wait for it with get_run, or stop it with cancel_run, then undo it.",
    );
  }
  if (status === "planned" || status === "needs_confirmation" || isWithdrawn(run.state)) {
    throw new ToolError("this run was never started, so there is nothing to undo", "get_run lists the runs.");
  }
  return run;
}

/**
 * Returns what can still be undone of a run that was undone before: changes that its undo left, or the changes of a
 * later run that undid this undo and so made them again. Throws a ToolError if nothing is left to undo.
 */
async function undoableAgain(run: ChangeRun, context: ToolContext): Promise<Undoable> {
  const { runId } = run.header;
  const undos = await undosOf(run, context);
  const effective = undos.filter(({ done }) => !hasNoEffect(done)).map((undo) => undo.run.header.runId);
  const last = await lastUndo(run, context);
  const error = undoneError(last !== undefined && effective.includes(last) ? effective : [last ?? []].flat());
  const again = await runToUndo(run, undos, context);
  if (again === undefined) throw error;
  const { header, state } = again.run;
  const part = context.runs.part(header.runId, "former");
  const doneByRun = async () => withoutUndone(await effectsOfRun(state, part()), again.undos);
  const by = undoneByRun(run.state);
  if (header.runId !== runId) {
    const note = `Run ${runId} was undone by run ${by}, and that undo was undone. To undo the change again, this undoes run ${header.runId}.`;
    return { doneByRun, undoes: header.runId, notes: [note] };
  }
  const [runs, have] = effective.length > 1 ? ["Runs", "have"] : ["Run", "has"];
  const notes = effective.length > 0 ? [`${runs} ${effective.join(", ")} ${have} undone the rest before.`] : [];
  return { doneByRun, notes, undone: error };
}

/** Returns whether `undo_run` would still change something after a run was undone. */
export async function isLeftToUndo(run: ChangeRun, context: ToolContext): Promise<boolean> {
  const isRefusal = (thrown: unknown): boolean => thrown instanceof ToolError;
  return (await undefinedIf(isRefusal, undoableAgain(run, context))) !== undefined;
}

function undoneError(by: readonly string[]): ToolError {
  const calls = by.toReversed().map((runId) => `undo_run {"runId":"${runId}"}`);
  const runs = `by run${by.length > 1 ? "s" : ""} ${by.join(" and ")}`;
  return new ToolError(
    `this run was undone before${by.length === 0 ? "" : ` ${runs}`}`,
    calls.length > 1
      ? `${calls.join(" and ")} plan to restore what each of them undid.`
      : `${calls[0] ?? "undo_run with the run that undid it"} plans to restore what that run undid.`,
  );
}

/** Returns the runs that undid a run. Throws if one of them has not finished, because its effect is not known yet. */
async function undosOf({ state }: ChangeRun, context: ToolContext): Promise<readonly EarlierUndo[]> {
  const undos = await earlierUndos(state, {
    find: (runId) => changeRunOf(runId, context),
    former: (runId) => context.runs.part(runId, "former")(),
  });
  for (const { run } of undos) {
    const { runId } = run.header;
    if (run.status() === "running") {
      throw new ToolError(`run ${runId} is undoing this run now`, "Wait for it with get_run.");
    }
    if (!isUndone(run.state) && (run.status() === "interrupted" || run.state.inDoubt().size > 0)) {
      throw new ToolError(
        `run ${runId}, which undoes this run, is not finished`,
        `resume_run {"runId":"${runId}"} finishes it.`,
      );
    }
  }
  return undos;
}

async function changeRunOf(runId: string, { runs }: Pick<ToolContext, "runs">): Promise<ChangeRun | undefined> {
  const run = await undefinedIfUnreadable(runs.find(runId));
  return run !== undefined && isChangeRun(run) ? run : undefined;
}

/**
 * Returns the run whose changes are in effect and can be undone: `run` itself, if some of its changes were not undone,
 * or a run that undid an undo of `run`. Undefined if none of the changes is in effect.
 */
async function runToUndo(
  run: ChangeRun,
  undos: readonly EarlierUndo[],
  context: ToolContext,
): Promise<{ readonly run: ChangeRun; readonly undos: readonly EarlierUndo[] } | undefined> {
  for (const undo of undos.toReversed()) {
    for (const { run: again } of isUndone(undo.run.state) ? (await undosOf(undo.run, context)).toReversed() : []) {
      const found = await runToUndo(again, await undosOf(again, context), context);
      if (found !== undefined) return found;
    }
  }
  // If an undo is not stored any more, nobody knows what it did. So no further undo can be planned.
  if (undos.length < undoingRuns(run.state).length || (isUndone(run.state) && undos.length === 0)) return undefined;
  const former = context.runs.part(run.header.runId, "former");
  const left = withoutUndone(await effectsOfRun(run.state, former()), undos);
  return hasNoEffect(left) ? undefined : { run, undos };
}

async function lastUndo({ state }: ChangeRun, context: ToolContext): Promise<string | undefined> {
  const by = undoneByRun(state);
  const undo = by === undefined ? undefined : await changeRunOf(by, context);
  const again = undo && undoneByRun(undo.state);
  const run = again === undefined ? undefined : await changeRunOf(again, context);
  return run !== undefined && isUndone(run.state) ? lastUndo(run, context) : by;
}
