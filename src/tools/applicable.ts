import { limitLine } from "../answers/plan-words.ts";
import type { Loss } from "../changes/plan/plan.ts";
import { needsConfirmation } from "../changes/run-rules.ts";
import { exceededThresholds, type StatePlan } from "../plans/diff/plan.ts";
import type { PlanDocument } from "../plans/plan-document.ts";
import { amount } from "../platform/text.ts";
import type { ToolContext, ToolServices } from "./context.ts";
import { ToolError } from "./define-tool.ts";
import { documentOf } from "./kept-plan.ts";

type Thresholds = Pick<ToolServices, "maxChangePercent" | "maxDeletes">;

/** Why a plan may not be applied, by itself or by the settings as they are now; nothing where it may. */
export function whyNotApplied(
  { plan, wayBack }: PlanDocument,
  { maxChangePercent, maxDeletes }: Thresholds,
): readonly string[] {
  const thresholds = { maxChangePercent, maxDeletes };
  // What the undone run changed and created does not count, and an undo plan changes and deletes nothing else.
  const exceeded = wayBack === undefined ? exceededThresholds(plan.items, plan.optionsThere, thresholds) : [];
  const why = [
    plan.conflicts.length > 0 && amount(plan.conflicts.length, "conflict"),
    plan.problems.length > 0 && amount(plan.problems.length, "problem"),
    ...[...plan.limits, ...exceeded].map(limitLine),
  ].filter((part) => part !== false);
  return [...new Set(why)];
}

/** Throws a ToolError where a plan may not be applied, by itself or by the settings as they are now. */
export function checkApplicable(document: PlanDocument, thresholds: Thresholds): void {
  const refused = notApplicable(document, thresholds);
  if (refused !== undefined) throw new ToolError(`${refused.message}; nothing was sent`, refused.remedy);
}

/** Why a plan may not be applied, and what to do; undefined where it may. */
export function notApplicable(
  document: PlanDocument,
  thresholds: Thresholds,
): { readonly message: string; readonly remedy: string } | undefined {
  const why = whyNotApplied(document, thresholds);
  if (why.length === 0) return undefined;
  return {
    message: `this plan cannot be applied: ${why.join("; ")}`,
    remedy: "Fix the state and plan it again; get_run shows the plan.",
  };
}

/**
 * What a kept plan that may be applied takes away by what was seen when it was made, where a person has to agree to that;
 * nothing where they need not. Throws a ToolError where it may not be applied, and a FileError where it cannot be read.
 */
export async function lossesOfKept(runId: string, context: ToolContext): Promise<readonly Loss[]> {
  const document = await documentOf(runId, context);
  checkApplicable(document, context);
  const losses = [document.plan, ...(document.wayBack?.further ?? [])].flatMap(lossesOf);
  return needsConfirmation({ losses }) ? losses : [];
}

function lossesOf({ targeting, items, optionsThere }: StatePlan): readonly Loss[] {
  if (targeting.delete && targeting._id !== undefined) {
    return [{ name: targeting.name, _id: targeting._id, kind: "targeting", count: optionsThere }];
  }
  return items.flatMap((item): readonly Loss[] => {
    if (item.kind === "create") return [];
    const { _id, seen } = item;
    const { name, contexts, subOptions = 0 } = seen;
    if (item.kind === "change") {
      const { add = [], remove = [] } = item.contexts ?? {};
      const empties = remove.length === contexts && add.length === 0;
      return remove.length === 0 ? [] : [{ name, _id, kind: "contextIds", count: remove.length, empties }];
    }
    if (seen.type === "atomic") return [{ name, _id, kind: "option", count: contexts }];
    return [{ name, _id, kind: "optionGroup", count: subOptions, ownContextIds: contexts }];
  });
}
