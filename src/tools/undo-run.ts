import * as z from "zod";
import { undoAnswer } from "../answers/plan-answers.ts";
import type { ManagementApi } from "../api/management.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import type { ChangeHeader } from "../changes/changes.ts";
import { effectsOfRun, possibleRemovals } from "../changes/done.ts";
import type { Plan } from "../changes/plan/plan.ts";
import { isUndone, isWithdrawn, undoneByRun } from "../changes/run-rules.ts";
import type { PlanDocument } from "../plans/plan-document.ts";
import { type PlannedUndo, planUndo } from "../plans/planned-undo.ts";
import { unlessMissing } from "../plans/read-targeting.ts";
import { targetingsIn } from "../plans/undo.ts";
import type { Done } from "../runs/kind.ts";
import { didCounts } from "../runs/report.ts";
import { DamagedRunError, type RunHeader, undefinedIfUnreadable } from "../runs/store.ts";
import { changesOf } from "./apis.ts";
import type { ToolContext } from "./context.ts";
import { type ToolAnswer, type ToolDefinition, ToolError } from "./define-tool.ts";
import { newPlanAnswer, planNowOrInBackground } from "./plan-in-time.ts";
import { notKept } from "./run-reports.ts";

const input = () => z.strictObject({ runId: z.string() });

export const undoRun = {
  name: "undo_run",
  title: "Plan how to undo a run",
  description:
    "Plans how to undo, revert or take back what a run did, or restore what it deleted, and stores the plan. Each object is exact, caveat (restored with differences), notOurs (changed by others), impossible or unresolved (result unknown). Sends nothing; apply_plan applies it.",
  toolset: "targeting",
  effect: "reads",
  idempotent: false,
  input,
  output: () =>
    z.looseObject({ environment: z.string(), runId: z.string().optional(), undo: z.looseObject({}).optional() }),
  handler: ({ runId }, context) => startUndoPlan(runId, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

interface StoredUndoPlan extends Pick<PlannedUndo, "rows" | "already"> {
  readonly kept?: { readonly header: ChangeHeader; readonly plan: Plan; readonly document: PlanDocument };
}

/** Plans how to undo a run, and stores the plan as a run. `earlier` is the run of an interrupted plan. */
export async function startUndoPlan(runId: string, context: ToolContext, earlier?: ChangeHeader): Promise<ToolAnswer> {
  const { targetings, make } = await undoPlanOf(runId, context);
  return planNowOrInBackground<PlannedUndo>(
    {
      ...byUndo(runId),
      from: { given: { runId } },
      targetings,
      make,
      textOf: (made) => made,
      async answer(made) {
        const { environment, readOnly } = context;
        const { kept, ...undone } = await storeUndoPlan(runId, made, context, earlier);
        if (kept === undefined) return undoAnswer({ environment, undoes: runId, ...undone, readOnly });
        return newPlanAnswer(kept.document, kept.header, kept.plan, context);
      },
    },
    context,
    earlier,
  );
}

export async function keepUndoPlan(runId: string, context: ToolContext): Promise<StoredUndoPlan> {
  const { make } = await undoPlanOf(runId, context);
  return storeUndoPlan(runId, await make(context.signal), context);
}

async function undoPlanOf(runId: string, context: ToolContext) {
  const api = changesOf(context).api();
  const doneByRun = await doneOf(runId, api, context);
  const targetings = targetingsIn(await doneByRun());
  // Computed again, so that no copy of the result stays in memory beside the plan.
  const make = async (signal: AbortSignal): Promise<PlannedUndo> =>
    planUndo(
      await doneByRun(),
      { undoes: runId, environment: context.environment, apiUrl: context.apiUrl },
      { api, signal, memory: context.memory },
    );
  return { targetings, make };
}

/** Returns a function that computes what a run changed. Throws if the run cannot be undone. */
async function doneOf(runId: string, api: ManagementApi, context: ToolContext): Promise<() => Promise<Done>> {
  const former = context.runs.part(runId, "former");
  try {
    const run = await undoable(runId, context);
    return () => effectsOfRun(run.state, former());
  } catch (thrown) {
    if (!(thrown instanceof DamagedRunError && thrown.holdsRemoved)) throw thrown;
    const { header } = thrown;
    if (header !== undefined) checkProject(header, context);
    // Keys of another project cannot read a targeting either, but a known header means that the project is right.
    const isGone = async (_id: string): Promise<boolean> =>
      header !== undefined && (await unlessMissing(api.getTargeting(_id, { signal: context.signal }))) === undefined;
    return async () => {
      const done = await possibleRemovals(former(), context.runs.part(runId, "removed")(), isGone);
      if (done === undefined) throw thrown;
      return done;
    };
  }
}

function checkProject({ project, environment }: RunHeader, context: ToolContext): void {
  if (project === context.project.id && environment === context.environment) return;
  throw new ToolError(
    "this run belongs to another project or environment than the keys of this server",
    "Use the server whose address and key the run was started with.",
  );
}

function byUndo(runId: string) {
  return { plannedBy: "undo_run", undoes: runId } as const;
}

/** Stores an undo plan. A plan without changes is stored only if a run waits for it. */
async function storeUndoPlan(
  runId: string,
  { rows, already, isEmpty, document, changes, text }: PlannedUndo,
  context: ToolContext,
  earlier?: ChangeHeader,
): Promise<StoredUndoPlan> {
  if (earlier === undefined && isEmpty) return { rows, already };
  const kept = { ...byUndo(runId), text, caller: context.caller, requested: context.requested };
  return { rows, already, kept: { ...(await changesOf(context).keepPlan(changes, kept, earlier)), document } };
}

async function undoable(runId: string, context: ToolContext): Promise<ChangeRun> {
  const run = await context.runs.findOwn(runId, context.caller);
  if (run === undefined) throw notKept(runId, context);
  checkProject(run.header, context);
  if (!isChangeRun(run)) {
    throw new ToolError(
      "events cannot be undone: the service keeps every event that it recorded",
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
  if (isUndone(run.state)) {
    const by = undoneByRun(run.state);
    if (by !== undefined && (await hasFailed(by, context))) return run;
    throw new ToolError(
      `this run was undone before${by === undefined ? "" : ` by run ${by}`}`,
      `${by === undefined ? "undo_run with the run that undid it" : `undo_run {"runId":"${by}"}`} plans to restore what it undid.`,
    );
  }
  return run;
}

/** Returns whether an undo failed, at least in part, and created nothing that planning it again would create twice. */
async function hasFailed(runId: string, { runs }: Pick<ToolContext, "runs">): Promise<boolean> {
  const undo = await undefinedIfUnreadable(runs.find(runId));
  const status = undo?.status();
  if (undo === undefined || (status !== "failed" && status !== "partial")) return false;
  return (didCounts(undo.state)?.created ?? 0) === 0;
}
