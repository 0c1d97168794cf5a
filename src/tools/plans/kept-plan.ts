import type { ChangeRun } from "../../changes/change-run.ts";
import type { DesiredChanges } from "../../changes/plan/desired/desired-changes.ts";
import { requestsOf } from "../../changes/plan/desired/planned-requests.ts";
import type { PlannedRequest } from "../../changes/rows/entries.ts";
import { isApplicable, itemCount, type StatePlan } from "../../plans/diff/plan.ts";
import { asPlanned, textOf } from "../../plans/look-again.ts";
import type { PlanDocument } from "../../plans/plan-document.ts";
import { readPlan } from "../../plans/plan-form.ts";
import { planAnswer } from "../../render/plans/plan-answer.ts";
import { undoAnswer } from "../../render/plans/undo-answer.ts";
import type { ToolContext } from "../context.ts";
import type { ToolAnswer } from "../definition.ts";

/** The plan of a planned run, as it was kept. Throws a FileError where it cannot be read. */
export async function documentOf(runId: string, { runs }: Pick<ToolContext, "runs">): Promise<PlanDocument> {
  return readPlan(await textOf(runs.part(runId, "input")), "the kept plan");
}

/** A planned run that was not started, as `get_run` shows it. */
export async function shownPlan({ header, state }: ChangeRun, context: ToolContext): Promise<ToolAnswer> {
  const { environment, readOnly } = context;
  const { runId, call } = header;
  const document = await documentOf(runId, context);
  const { plan, wayBack } = document;
  if (wayBack !== undefined) {
    const planned = { runId, document, requests: requestsFor(document, state) };
    return undoAnswer({ environment, undoes: wayBack.undoes, rows: wayBack.rows, readOnly, planned });
  }
  return planAnswer({
    ...{ environment, runId, tool: state.facts.tool ?? call.tool, status: "planned", document },
    requests: isApplicable(plan) ? requestsFor(document, state) : [],
    nextSteps: nextStepsOf(plan, runId, readOnly),
  });
}

/** The requests that a kept plan takes, as they were foreseen with it. */
export function requestsFor(
  document: PlanDocument,
  { facts }: Pick<ChangeRun["state"], "facts">,
): readonly PlannedRequest[] {
  return facts.foreseen ?? requestsOf(changesOfDocument(document));
}

/** The changes of a kept plan by itself, without the state that it was made from. */
export function changesOfDocument({ plan, wayBack }: PlanDocument): DesiredChanges {
  const further = wayBack?.further.map((one) => asPlanned(one, undefined)) ?? [];
  return { ...asPlanned(plan, undefined), further };
}

/** What can be done with a plan next. */
export function nextStepsOf(plan: StatePlan, runId: string, readOnly: boolean): readonly string[] {
  if (!isApplicable(plan)) return ["mend the state as said above, and plan it again"];
  if (itemCount(plan) === 0) return [];
  if (readOnly) return ["this server only reads: a caller who may write applies it"];
  return [`show the plan to the person; apply_plan with runId ${runId} carries it out`];
}
