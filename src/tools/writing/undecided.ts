import { lossDigest, needsConfirmation } from "../../changes/confirmation.ts";
import type { Plan } from "../../changes/plan/plan.ts";
import type { Runs } from "../../changes/runs.ts";
import { effectText } from "../../render/changes/effect.ts";
import { renderReport } from "../../render/changes/report.ts";
import { undecidedStep } from "../../render/changes/undecided.ts";
import { toldFailures } from "../../render/failures/failures.ts";
import { ownReason } from "../../runs/reasons.ts";
import { countsOf } from "../../runs/report.ts";
import type { ToolContext } from "../context.ts";
import type { Undecided, UndecidedAnswer } from "../definition.ts";
import { type Given, plannedState } from "./planned.ts";

/**
 * The answer where nobody has decided. A question that is only unanswered has a run that a later yes starts, if it would
 * still do the same, and a later no ends. One that was closed has none: no person may have seen it.
 */
export async function undecided(
  { call, bytes }: Given,
  plan: Plan,
  why: Undecided,
  { runs, context }: { readonly runs: Runs; readonly context: ToolContext },
): Promise<UndecidedAnswer> {
  const header = why === "unanswered" ? await runs.keep(call, context.caller, bytes) : undefined;
  if (header !== undefined) await runs.propose(header.runId, plan);
  const state = plannedState(plan);
  const answer = renderReport({
    environment: context.environment,
    ...(header && { runId: header.runId }),
    tool: call.tool,
    status: "needs_confirmation",
    counts: countsOf(state),
    failures: toldFailures(state),
    results: [],
    nextSteps: [effectText(plan.losses), undecidedStep(why, header?.runId)],
  });
  if (header === undefined) return { answer };
  const digest = lossDigest(plan.losses);
  return {
    answer,
    async later(accepted) {
      if (!accepted) {
        await runs.withdraw(header.runId, { cause: "cancelled", reason: ownReason("DECLINED") });
        return;
      }
      // It may have been cancelled meanwhile.
      if ((await runs.stored(header.runId))?.started !== false) return;
      const stopping = new AbortController();
      const anew = runs.plan(call, stopping.signal, runs.part(header.runId, "input"));
      const planning = { plan: anew, stop: () => stopping.abort() };
      const isAgreed = (made: Plan): boolean => {
        made.askedBy("agreed_in_client");
        return lossDigest(made.losses) === digest || !needsConfirmation(call, made);
      };
      await runs.prepare(header, planning, isAgreed, state);
    },
  };
}
