import type { PlanningTool } from "../changes/call.ts";
import type { ChangeRun } from "../changes/change-run.ts";
import type { ChangeHeader, Changes, FinishedPlan, StoredPlan } from "../changes/changes.ts";
import { isGoing } from "../changes/plan/plan.ts";
import type { PlanDocument } from "../plans/plan-document.ts";
import { changesOf, managementOf } from "./apis.ts";
import type { ToolAnswer, ToolContext } from "./define-tool.ts";
import { notAllowed } from "./execution-guard.ts";
import { renderKeptPlan, withRefusal } from "./kept-plan.ts";
import { reportRun } from "./run-reports.ts";
import { planInTime } from "./write/within-call.ts";

interface PlanWork<Made> extends Pick<StoredPlan, "base" | "undoes" | "sheet"> {
  readonly plannedBy: PlanningTool;
  /** The arguments with which the plan can be made again, and the digest of its file. */
  readonly from: { readonly given: object; readonly fileDigest?: string };
  readonly targetings: readonly string[];
  readonly make: (signal: AbortSignal) => Promise<Made>;
  readonly textOf: (made: Made) => FinishedPlan;
  /** Returns the answer. `keep` stores the plan as a run. */
  readonly answer: (made: Made, keep: () => ReturnType<Changes["keepPlan"]>) => Promise<ToolAnswer>;
}

/**
 * Returns the answer with a plan. If making the plan takes too long for the call, or this process already makes it,
 * returns the answer about the run that will store it. Throws a PlanningError if a read failed.
 */
export async function planNowOrInBackground<Made extends object>(
  work: PlanWork<Made>,
  context: ToolContext,
  earlier?: ChangeHeader,
): Promise<ToolAnswer> {
  const changes = changesOf(context);
  const { from, plannedBy, base, undoes, sheet, targetings } = work;
  const { caller, requested } = context;
  const about = { plannedBy, base, undoes, sheet, caller, requested };
  const unfinished = { ...about, text: JSON.stringify(from), targetings };
  const going = earlier === undefined ? await changes.runMakingPlan(unfinished) : undefined;
  if (going !== undefined) return reportRun(going, context);
  const made = await planInTime(work.make, context);
  if (!isGoing(made)) {
    const finished = work.textOf(made);
    return work.answer(made, () => changes.keepPlan(finished.changes, { ...about, text: finished.text }, earlier));
  }
  const { plan, stop } = made;
  return reportRun(await changes.planLater(unfinished, { plan: plan.then(work.textOf), stop }, earlier), context);
}

/** Returns the answer about a new plan. If the settings allow no changes in its targeting, says so. */
export async function newPlanAnswer(
  document: PlanDocument,
  header: ChangeHeader,
  known: Pick<ChangeRun["state"], "facts">,
  context: ToolContext & { readonly notes?: readonly string[] | undefined },
): Promise<ToolAnswer> {
  const refused = await notAllowed(header.call, undefined, { ...context, management: () => managementOf(context) });
  const refusal = refused && ({ code: "TARGETINGS", ...refused } as const);
  return withRefusal(renderKeptPlan(document, header, known, { ...context, refusal }), refusal);
}
