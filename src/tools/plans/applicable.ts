import { exceededThresholds } from "../../plans/diff/thresholds.ts";
import type { PlanDocument } from "../../plans/plan-document.ts";
import { limitLine } from "../../render/plans/words.ts";
import type { ToolServices } from "../context.ts";
import { ToolError } from "../definition.ts";

type Thresholds = Pick<ToolServices, "maxChangePercent" | "maxDeletes">;

/** Why a plan may not be applied, by itself or by the settings as they are now; nothing where it may. */
export function whyNotApplied(
  { plan, wayBack }: PlanDocument,
  { maxChangePercent, maxDeletes }: Thresholds,
): readonly string[] {
  const thresholds = { maxChangePercent, maxDeletes };
  // What the undone run changed and created does not count, and a way back changes and deletes nothing else.
  const exceeded = wayBack === undefined ? exceededThresholds(plan.items, plan.optionsThere, thresholds) : [];
  const why = [
    plan.conflicts.length > 0 && `${plan.conflicts.length} conflicts`,
    plan.problems.length > 0 && `${plan.problems.length} problems`,
    ...[...plan.limits, ...exceeded].map(limitLine),
  ].filter((part) => part !== false);
  return [...new Set(why)];
}

/** Throws a ToolError where a plan may not be applied, by itself or by the settings as they are now. */
export function checkApplicable(document: PlanDocument, thresholds: Thresholds): void {
  const why = whyNotApplied(document, thresholds);
  if (why.length === 0) return;
  throw new ToolError(
    `this plan cannot be applied: ${why.join("; ")}; nothing was sent`,
    "Mend the state and plan it again; get_run shows the plan.",
  );
}
