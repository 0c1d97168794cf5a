import * as z from "zod";
import { planAnswer } from "../answers/plan-answers.ts";
import { renderReport } from "../answers/run-report.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { RunState } from "../changes/change-state.ts";
import type { StartPlanned } from "../changes/changes.ts";
import { isGoing, type Plan, type Planning } from "../changes/plan/plan.ts";
import { plannedRequests, weighed } from "../changes/plan/requests.ts";
import type { PlanDocument } from "../plans/plan-document.ts";
import { changesOf } from "./apis.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError, type ToolOutcome } from "./define-tool.ts";
import { checkNoEventDryRun } from "./event-report.ts";
import { checkApplicable, documentOf } from "./kept-plan.ts";
import { ownRun, reportRun, usedBeforeNote } from "./run-reports.ts";
import { effectOf, tokenLater } from "./write/awaiting-decision.ts";
import { confirmationArgument, confirmed } from "./write/confirmed.ts";
import { beginPlanned } from "./write/decide.ts";
import { askLater } from "./write/on-page.ts";
import { planInTime, tookTooLong, unstartedReport } from "./write/within-call.ts";
import { carryOut, dryRunArgument, runOutput } from "./write/write.ts";

const input = () =>
  z.strictObject({
    runId: z.string().optional().describe("Of the plan or dry run"),
    ...dryRunArgument(),
    ...confirmationArgument(),
  });

export const applyPlan = {
  name: "apply_plan",
  title: "Apply a plan",
  description:
    "Applies a plan of plan_targeting or undo_run, or what a dry run showed. If something relevant has changed, nothing is sent and the answer says what. dryRun only checks. Deletions, emptied options, and over 100 removed Context IDs need approval.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId, dryRun, confirmation }, context) {
    if (confirmation) return confirmed({ tool: "apply_plan", token: confirmation, runId, dryRun }, context);
    if (!runId) throw new ToolError("runId is missing", "Give the runId of a plan, or a confirmation alone.");
    return applyPlanned(runId, dryRun ?? false, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

/** Returns the run of a plan or dry run. Throws a ToolError for any other run, and for a dry run of events. */
export async function plannedRun(runId: string, context: ToolContext): Promise<ChangeRun> {
  const run = await ownRun(runId, context);
  if (isChangeRun(run) && (run.header.call.tool === "apply_plan" || run.header.dryRun)) return run;
  checkNoEventDryRun(run, "apply_plan has nothing to apply");
  throw new ToolError(
    "this run is not a plan",
    "Give the runId from an answer of plan_targeting, undo_run or a call with dryRun.",
  );
}

/** Applies the plan or dry run of a run, with approval if it needs one. If it was started before, only reports it. */
async function applyPlanned(runId: string, dryRun: boolean, context: ToolContext): Promise<ToolOutcome> {
  const run = await plannedRun(runId, context);
  if (run.status() !== "planned" && run.status() !== "needs_confirmation") {
    if (run.status() === "running" && run.state.facts.tool !== undefined) {
      throw new ToolError(
        "this plan is still being made; nothing was sent",
        "Wait for the plan with get_run and waitMs, and check it before you apply it.",
      );
    }
    if (!dryRun) return reportRun(run, context, [], { notes: usedBeforeNote(run) });
    throw new ToolError("this plan was already started, so it cannot be checked again", "get_run shows what it did.");
  }
  const { header } = run;
  await context.runs.checkExecutable(run);
  if (header.dryRun) {
    const { dryRunToApply } = await import("./write/dry-runs.ts");
    const found = await dryRunToApply(run, { isDry: dryRun }, context);
    if ("answer" in found) return found.answer;
    return "going" in found ? goesOn(run, found.going, dryRun, context) : applied(run, found.plan, context);
  }
  checkApplicable(await documentOf(runId, context), context);
  const bytes = context.runs.part(runId, "input");
  const plan = await planInTime((signal) => changesOf(context).plan(header.call, signal, bytes), context);
  if (isGoing(plan)) return goesOn(run, plan, dryRun, context);
  if (dryRun) return reportCheckedPlan(run, await documentOf(runId, context), plan, context);
  return applied(run, plan, context);
}

async function applied({ header }: ChangeRun, plan: Plan, context: ToolContext): Promise<ToolOutcome> {
  const given = { call: header.call, bytes: context.runs.part(header.runId, "input") };
  const effect = await effectOf(header, plan, context);
  const answer = await carryOut({ given, plan, effect: () => effect, stored: header }, context);
  if ("outcome" in answer) return answer.outcome;
  return reportRun(answer.run, context, [], { alwaysReportsApproval: true, notes: answer.hints });
}

/**
 * Lets the check of a plan go on in the background. After it, the run starts or, if it removes data, waits for
 * approval. For a call with `dryRun`, or with a person's reply, throws a ToolError instead.
 */
async function goesOn(run: ChangeRun, planning: Planning, isDry: boolean, context: ToolContext): Promise<ToolAnswer> {
  if (isDry || context.reply !== undefined) {
    planning.plan.catch(() => undefined);
    planning.stop();
    if (!isDry) throw tookTooLong();
    throw new ToolError(
      "checking this plan again took longer than a call may take; nothing was sent, and the plan is unchanged",
      "apply_plan without dryRun checks it in the background, and sends nothing if something has changed.",
    );
  }
  const begin = (plan: Plan, start: StartPlanned) =>
    beginPlanned(run.header, plan, { decision: undefined, start }, context);
  const ask = context.page?.isOffered() ? askLater(context) : tokenLater(context);
  const going = await changesOf(context).prepare(run.header, planning, begin, { meanwhile: run.state, ask });
  return reportRun(going, context);
}

function reportCheckedPlan(run: ChangeRun, document: PlanDocument, plan: Plan, context: ToolContext): ToolAnswer {
  const { runId } = run.header;
  const state = new RunState(plan);
  const { environment } = context;
  if (plan.facts.stale !== undefined || state.counts().failed > 0) {
    return renderReport({ ...unstartedReport(run.header.call, state, context), runId, status: "failed" });
  }
  const requests = weighed(plan.steps, plannedRequests(plan.steps));
  const nextSteps = [`apply_plan {"runId":"${runId}"} applies it: the plan is still valid`];
  return planAnswer({ environment, runId, tool: "apply_plan", document, requests, nextSteps });
}
