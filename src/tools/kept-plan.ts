import * as z from "zod";
import { pagesOf, planAnswer, planPage, rowsOfPlan, undoAnswer } from "../answers/plan-answers.ts";
import { isSetting, limitLine } from "../answers/plan-words.ts";
import { blockedText } from "../answers/run-report.ts";
import { needsConfirmation } from "../changes/change-kinds.ts";
import type { ChangeRun } from "../changes/change-run.ts";
import type { ChangeHeader } from "../changes/changes.ts";
import type { Loss } from "../changes/plan/plan.ts";
import { requestsOf, targetingLoss } from "../changes/plan/plan-desired.ts";
import type { PlannedRequest } from "../changes/rows/entries.ts";
import { readStoredPlan } from "../plans/look-again.ts";
import { exceededThresholds, isApplicable, itemCount, type StatePlan } from "../plans/plan.ts";
import { type PlanDocument, plansOf } from "../plans/plan-document.ts";
import { asPlanned, type PlannedChanges } from "../plans/planned-undo.ts";
import { amount } from "../platform/text.ts";
import type { Refusal } from "../runs/kind.ts";
import { placeOf } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, ToolError, type ToolServices } from "./define-tool.ts";

/** Reads the stored plan of a run. Throws a FileError if the plan cannot be read. */
export async function documentOf(runId: string, { runs }: Pick<ToolContext, "runs">): Promise<PlanDocument> {
  return readStoredPlan(runs.part(runId, "input"));
}

export async function planPageOf(
  { header, state }: ChangeRun,
  { cursor, limit = MAX_ROWS }: { readonly cursor: string; readonly limit: number | undefined },
  context: ToolContext,
): Promise<ToolAnswer> {
  const { runId, call } = header;
  const from = placeOf("run", cursor, pagesOf(runId), { schema: z.int().min(0), beginning: 0 });
  const tool = state.facts.tool ?? call.tool;
  const rows = rowsOfPlan(await documentOf(runId, context));
  return planPage(rows, { environment: context.environment, runId, tool, from, limit });
}

const MAX_ROWS = 1000;

export async function shownPlan(run: ChangeRun, context: ToolContext): Promise<ToolAnswer> {
  const { header, state } = run;
  const refusal = await context.runs.refusal(run);
  const answer = renderKeptPlan(await documentOf(header.runId, context), header, state, { ...context, refusal });
  return withRefusal(answer, refusal);
}

/** Adds to an answer about a plan why this server may not apply it. Without a refusal, returns the answer as it is. */
export function withRefusal(answer: ToolAnswer, refusal: Refusal | undefined): ToolAnswer {
  if (refusal === undefined) return answer;
  return {
    ...answer,
    structured: { ...answer.structured, blocked: refusal },
    text: `${answer.text}\n${blockedText(refusal)}`,
  };
}

interface PlanReader extends Pick<ToolContext, "environment" | "readOnly"> {
  readonly refusal?: Refusal | undefined;
  readonly notes?: readonly string[] | undefined;
}

export function renderKeptPlan(
  document: PlanDocument,
  { runId, call }: ChangeHeader,
  known: Pick<ChangeRun["state"], "facts">,
  { environment, readOnly, refusal, notes }: PlanReader,
): ToolAnswer {
  const { plan, wayBack } = document;
  if (wayBack !== undefined) {
    const planned = { runId, document, requests: requestsFor(document, known) };
    const { undoes, rows, already } = wayBack;
    const mayApply = !readOnly && refusal === undefined;
    return undoAnswer({ environment, undoes, rows, already, readOnly: !mayApply, notes, planned });
  }
  return planAnswer({
    environment,
    runId,
    tool: known.facts.tool ?? call.tool,
    document,
    requests: isApplicable(plan) ? requestsFor(document, known) : [],
    nextSteps:
      refusal !== undefined && !readOnly && isApplicable(plan)
        ? []
        : nextStepsOf(plan, runId, { prune: document.prune, readOnly }),
    refused: refusal?.message,
  });
}

/** Returns the requests of a plan. If the run does not store them, they are computed. */
export function requestsFor(
  document: PlanDocument,
  { facts }: Pick<ChangeRun["state"], "facts">,
): readonly PlannedRequest[] {
  return facts.foreseen ?? requestsOf(changesOfDocument(document));
}

/** Returns the changes of a stored plan, without the state that the service had when the plan was made. */
export function changesOfDocument({ plan, wayBack }: PlanDocument): PlannedChanges {
  const further = wayBack?.further.map((one) => asPlanned(one, undefined)) ?? [];
  return { ...asPlanned(plan, undefined), further };
}

export async function stepsOfPlan(
  runId: string,
  context: Pick<ToolContext, "runs" | "readOnly">,
): Promise<readonly string[]> {
  const document = await documentOf(runId, context);
  const plans = plansOf(document);
  const asked = { prune: document.prune, readOnly: context.readOnly };
  const steps = plans.map((plan) => nextStepsOf(plan, runId, asked));
  return steps.find((some, at) => some.length > 0 || !isApplicable(plans[at] ?? document.plan)) ?? [];
}

/** Returns how to fix a plan, else how to apply it. None if neither is possible; limits of settings say what to do. */
function nextStepsOf(
  plan: StatePlan,
  runId: string,
  { prune, readOnly }: { readonly prune: boolean; readonly readOnly: boolean },
): readonly string[] {
  const isInFile = plan.conflicts.length + plan.problems.length > 0;
  if (isInFile) return [...fixSteps(plan), ...renewSteps(plan, runId, prune)];
  if (plan.limits.some(({ limit, fits }) => fits > 0 && !isSetting(limit))) {
    return ["plan fewer changes, to stay within the limits"];
  }
  if (!isApplicable(plan) || itemCount(plan) === 0 || readOnly) return [];
  return [`show the plan to the person; apply_plan ${JSON.stringify({ runId })} applies it`];
}

function fixSteps({ conflicts, problems }: StatePlan): readonly string[] {
  const conflict = conflicts.length === 1 ? "the conflict" : "the conflicts";
  const problem = problems.length === 1 ? "the problem" : "the problems";
  const what = [...(conflicts.length > 0 ? [conflict] : []), ...(problems.length > 0 ? [problem] : [])].join(" and ");
  return [`resolve ${what} as this answer says, and make the same call of plan_targeting again`];
}

/** Returns the step that makes a new base, with which a plan overwrites what others have changed. */
function renewSteps(
  { targeting: { _id }, conflicts, drift }: StatePlan,
  runId: string,
  prune: boolean,
): readonly string[] {
  if (_id === undefined || !conflicts.some(({ base }) => base !== undefined)) return [];
  const name = `now-${runId.slice(-6)}`;
  const save = `list_options ${JSON.stringify({ targetingId: _id, saveTo: `${name}.ndjson` })}`;
  const isPruned = prune && drift.some(({ field }) => field === "added");
  const pruned = isPruned ? "; options added by others are then deleted, because prune is true" : "";
  return [
    `to put the values of the file in place of others' changes: ${save}, then the same call of plan_targeting with "base":"${name}.base.ndjson"${pruned}; give this base in later calls with the file too, because apply_plan renews only the base of its plan`,
  ];
}

type Thresholds = Pick<ToolServices, "maxChangePercent" | "maxDeletes">;

/** Returns why a plan may not be applied. Empty if it may be. */
export function whyNotApplied({ plan, wayBack }: PlanDocument, thresholds: Thresholds): readonly string[] {
  // The limits of the settings do not apply to an undo: it changes only what the undone run changed, and deletes only
  // what that run created.
  const exceeded = wayBack === undefined ? exceededThresholds(plan.items, plan.optionsThere, thresholds) : [];
  const why = [
    plan.conflicts.length > 0 && amount(plan.conflicts.length, "conflict"),
    plan.problems.length > 0 && amount(plan.problems.length, "problem"),
    ...[...plan.limits, ...exceeded].map(limitLine),
  ].filter((part) => part !== false);
  return [...new Set(why)];
}

export function checkApplicable(document: PlanDocument, thresholds: Thresholds): void {
  const refused = notApplicable(document, thresholds);
  if (refused !== undefined) throw new ToolError(`${refused.message}; nothing was sent`, refused.remedy);
}

export function notApplicable(
  document: PlanDocument,
  thresholds: Thresholds,
): Pick<Refusal, "message" | "remedy"> | undefined {
  const why = whyNotApplied(document, thresholds);
  if (why.length === 0) return undefined;
  return {
    message: `this plan cannot be applied: ${why.join("; ")}`,
    remedy:
      document.plan.conflicts.length + document.plan.problems.length > 0
        ? "Fix the desired state and plan it again; get_run shows the plan."
        : "get_run shows the plan.",
  };
}

/** Returns what a stored plan would remove. Empty if that needs no approval. Throws if the plan cannot be applied. */
export async function lossesOfStoredPlan(runId: string, context: ToolContext): Promise<readonly Loss[]> {
  const document = await documentOf(runId, context);
  checkApplicable(document, context);
  const losses = [document.plan, ...(document.wayBack?.further ?? [])].flatMap(lossesOf);
  return needsConfirmation({ losses }) ? losses : [];
}

function lossesOf({ targeting, items, optionsThere }: StatePlan): readonly Loss[] {
  if (targeting.delete && targeting._id !== undefined) {
    return [targetingLoss({ name: targeting.name, _id: targeting._id }, items, optionsThere)];
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
