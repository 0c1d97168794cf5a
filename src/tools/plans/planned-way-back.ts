import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader } from "../../changes/changes.ts";
import { doneBy } from "../../changes/done.ts";
import type { MadeText } from "../../changes/kept-plan.ts";
import { isUndone, isWithdrawn } from "../../changes/not-planned.ts";
import type { DesiredChanges } from "../../changes/plan/desired/desired-changes.ts";
import type { Plan } from "../../changes/plan/plan.ts";
import { NOTHING_PLANNED, type StatePlan } from "../../plans/diff/plan.ts";
import { asPlanned } from "../../plans/look-again.ts";
import { type PlanDocument, planBytes, planDocument } from "../../plans/plan-document.ts";
import { readPresent } from "../../plans/read-present.ts";
import { targetingsIn, wayBack } from "../../plans/undo/undo.ts";
import type { Present, WayBack } from "../../plans/undo/way-back.ts";
import { undoAnswer } from "../../render/plans/undo-answer.ts";
import { changesOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { notKept } from "../runs/way-back-note.ts";
import { toldPlan } from "./kept-plan.ts";
import { madeInTime } from "./made-in-time.ts";

/** A way back as it was kept: what becomes of each object, and its run where anything goes back. */
interface KeptWayBack extends Pick<WayBack, "rows"> {
  readonly kept?: { readonly header: ChangeHeader; readonly plan: Plan; readonly document: PlanDocument };
}

/**
 * Plans the way back from a run of the caller's own, keeps the plan as a run, `earlier` where that was not made before,
 * and answers it, or the run where planning takes longer than the call may. Throws a ToolError where the run cannot be
 * undone.
 */
export async function planWayBack(runId: string, context: ToolContext, earlier?: ChangeHeader): Promise<ToolAnswer> {
  const { targetings, make } = await wayBackOf(runId, context);
  return madeInTime<Planned>(
    {
      ...{ ...byUndo(runId), from: { given: { runId } }, targetings, make },
      textOf: (made) => textOf(runId, made, context),
      async answer(made) {
        const { environment, readOnly } = context;
        const { rows, kept } = await keptWayBack(runId, made, context, earlier);
        if (kept === undefined) return undoAnswer({ environment, undoes: runId, rows, readOnly });
        return toldPlan(kept.document, kept.header, kept.plan, context);
      },
    },
    context,
    earlier,
  );
}

/** Plans the way back from a run of the caller's own, and keeps the plan as a run. Throws as `planWayBack`. */
export async function keepWayBack(runId: string, context: ToolContext): Promise<KeptWayBack> {
  const { make } = await wayBackOf(runId, context);
  return keptWayBack(runId, await make(context.signal), context);
}

/** The targetings that a way back is about, and how it is planned. */
async function wayBackOf(runId: string, context: ToolContext) {
  const run = await undoable(runId, context);
  const doneByRun = () => doneBy(run.state, context.runs.part(runId, "former")());
  const api = changesOf(context).api();
  const targetings = targetingsIn(await doneByRun());
  const make = async (signal: AbortSignal): Promise<Planned> => {
    // Made again, so that it takes no memory beside the plan that is made of it.
    const done = await doneByRun();
    const present = await readPresent(api, done, signal);
    return { back: wayBack(done, present), present, targetings };
  };
  return { targetings, make };
}

function byUndo(runId: string) {
  return { plannedBy: "undo_run", undoes: runId } as const;
}

/** Keeps a way back; one that is not waited for is no run where nothing goes back. */
async function keptWayBack(
  runId: string,
  made: Planned,
  context: ToolContext,
  earlier?: ChangeHeader,
): Promise<KeptWayBack> {
  const { rows, targetings } = made.back;
  if (earlier === undefined && targetings.length === 0) return { rows };
  const { document, changes, text } = textOf(runId, made, context);
  const kept = { ...byUndo(runId), text, caller: context.caller };
  return { rows, kept: { ...(await changesOf(context).keepPlan(changes, kept, earlier)), document } };
}

async function undoable(runId: string, context: ToolContext): Promise<ChangeRun> {
  const run = await context.runs.findOwn(runId, context.caller);
  if (run === undefined) throw notKept(runId, context);
  if (!isChangeRun(run)) {
    throw new ToolError("events cannot be taken back: the service keeps what it recorded", "Nothing can be done.");
  }
  const status = run.status();
  if (status === "running") {
    throw new ToolError(
      "this run is still running",
      "Wait for it with get_run, or stop it with cancel_run, then undo it.",
    );
  }
  if (status === "planned" || status === "needs_confirmation" || isWithdrawn(run.state)) {
    throw new ToolError("this run was never started, so there is nothing to take back", "get_run lists the runs.");
  }
  if (isUndone(run.state)) {
    throw new ToolError("this run was undone before", "Undo that undo, or plan the state that is wanted.");
  }
  return run;
}

/** What a way back is planned from, and the plan. */
interface Planned {
  readonly back: WayBack;
  readonly present: ReadonlyMap<string, Present>;
  readonly targetings: readonly string[];
}

/** The plan of a way back as it is kept; one where nothing goes back has no items. */
function textOf(
  runId: string,
  { back, present, targetings: [targetingId] }: Planned,
  { environment, apiUrl }: Pick<ToolContext, "environment" | "apiUrl">,
): MadeText & { readonly document: PlanDocument } {
  const [first = nothingOf(targetingId, present), ...others] = back.targetings.map(({ plan }) => plan);
  const changesIn = (plan: StatePlan): DesiredChanges => ({
    ...asPlanned(plan, undefined),
    there: optionsIn(present.get(plan.targeting._id ?? "")),
  });
  const standsFor = back.targetings.flatMap((one, targeting) => one.standsFor.map((each) => ({ targeting, ...each })));
  const document = planDocument(
    first,
    { environment, apiUrl, fileDigest: "", prune: false, byName: false },
    groupsIn(present),
    { undoes: runId, rows: back.rows, further: others, standsFor },
  );
  return {
    document,
    text: planBytes(document),
    changes: { ...changesIn(first), further: others.map(changesIn) },
  };
}

/** The plan of a targeting in which nothing goes back. */
function nothingOf(_id: string | undefined, present: Planned["present"]): StatePlan {
  const name = present.get(_id ?? "")?.targeting.name ?? "";
  return { ...NOTHING_PLANNED, targeting: { _id, name } };
}

/** Options as plans have them; Context IDs that were not read are left out, since nothing depends on them. */
function optionsIn(present: Present | undefined): DesiredChanges["there"] {
  const options = [...(present?.options.values() ?? [])];
  return new Map(options.map((option) => [option._id, { ...option, contexts: option.contexts ?? [] }]));
}

/** The names of groups, by ID. */
function groupsIn(present: ReadonlyMap<string, Present>): Readonly<Record<string, string>> {
  const all = [...present.values()].flatMap(({ options }) => [...options.values()]);
  return Object.fromEntries(all.flatMap(({ _id, name, type }) => (type === "collection" ? [[_id, name]] : [])));
}
