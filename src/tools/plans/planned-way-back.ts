import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader } from "../../changes/changes.ts";
import { doneBy } from "../../changes/done.ts";
import { isUndone, isWithdrawn } from "../../changes/not-planned.ts";
import { plannedRequests, weighed } from "../../changes/pack/requests.ts";
import type { Plan } from "../../changes/plan/plan.ts";
import { digestOfContexts, type ServiceTargeting } from "../../plans/base/service-targeting.ts";
import type { StatePlan } from "../../plans/diff/plan.ts";
import { asPlanned } from "../../plans/look-again.ts";
import { type PlanDocument, planDocument } from "../../plans/plan-document.ts";
import { readPresent } from "../../plans/read-present.ts";
import { wayBack } from "../../plans/undo/undo.ts";
import type { Present, WayBack } from "../../plans/undo/way-back.ts";
import { type AnsweredWayBack, undoAnswer } from "../../render/plans/undo-answer.ts";
import { changesOf, managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { ownRun } from "../runs/run-reports.ts";
import { withinWait } from "../within-wait.ts";

/** A way back as it was kept: what it answers, and its run where anything goes back. */
interface KeptWayBack {
  readonly told: AnsweredWayBack;
  readonly kept?: { readonly header: ChangeHeader; readonly plan: Plan; readonly document: PlanDocument };
}

/**
 * Plans the way back from a run of the caller's own, keeps the plan as a run, and answers it. Throws a ToolError where
 * the run cannot be undone.
 */
export async function planWayBack(runId: string, context: ToolContext): Promise<ToolAnswer> {
  return undoAnswer((await keepWayBack(runId, context)).told);
}

/** Plans the way back from a run of the caller's own, and keeps the plan as a run. Throws as `planWayBack`. */
export async function keepWayBack(runId: string, context: ToolContext): Promise<KeptWayBack> {
  const run = await undoable(runId, context);
  const done = await doneBy(run.state, context.runs.part(runId, "former")());
  const api = managementOf(context);
  const present = await withinWait(context, context.signal, (signal) => readPresent(api, done, signal));
  return keptWayBack(runId, { back: wayBack(done, present), present }, context);
}

async function undoable(runId: string, context: ToolContext): Promise<ChangeRun> {
  const run = await ownRun(runId, context);
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
}

async function keptWayBack(runId: string, { back, present }: Planned, context: ToolContext): Promise<KeptWayBack> {
  const { environment, apiUrl, caller, readOnly } = context;
  const about = { environment, undoes: runId, rows: back.rows, readOnly };
  const [first, ...others] = back.targetings.map(({ plan }) => plan);
  if (first === undefined) return { told: about };
  const thereOf = ({ targeting }: StatePlan) => serviceTargeting(present.get(targeting._id ?? ""));
  const standsFor = back.targetings.flatMap((one, targeting) => one.standsFor.map((each) => ({ targeting, ...each })));
  const document = planDocument(
    first,
    { environment, apiUrl, fileDigest: "", prune: false, byName: false },
    groupsIn(present),
    { undoes: runId, rows: back.rows, further: others, standsFor },
  );
  const further = others.map((plan) => asPlanned(plan, thereOf(plan)));
  const kept = { text: JSON.stringify(document), plannedBy: "undo_run", undoes: runId, caller } as const;
  const { header, plan } = await changesOf(context).keepPlan({ ...asPlanned(first, thereOf(first)), further }, kept);
  const requests = weighed(plan.steps, plannedRequests(plan.steps));
  const planned = { runId: header.runId, document, requests };
  return { told: { ...about, planned }, kept: { header, plan, document } };
}

/** A targeting as plans have it; Context IDs that were not read are left out, since nothing depends on them. */
function serviceTargeting(present: Present | undefined): ServiceTargeting | undefined {
  if (present === undefined) return undefined;
  const options = [...present.options.values()].map(({ contextCount, contexts = [], ...option }) => {
    return { ...option, contexts, digest: digestOfContexts(contexts) };
  });
  return { targeting: present.targeting, options };
}

/** The names of groups, by ID. */
function groupsIn(present: ReadonlyMap<string, Present>): Readonly<Record<string, string>> {
  const all = [...present.values()].flatMap(({ options }) => [...options.values()]);
  return Object.fromEntries(all.flatMap(({ _id, name, type }) => (type === "collection" ? [[_id, name]] : [])));
}
