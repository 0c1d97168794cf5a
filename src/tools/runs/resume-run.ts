import * as z from "zod";
import { CONFIRMATION_MS, mayNeedConfirmation } from "../../changes/confirmation.ts";
import { isWithdrawn } from "../../changes/kept-runs.ts";
import type { Run } from "../../changes/run.ts";
import { renderReport } from "../../render/changes/report.ts";
import { undecidedStep } from "../../render/changes/undecided.ts";
import type { ToolContext } from "../context.ts";
import {
  type ToolDefinition,
  ToolError,
  type ToolOutcome,
  type Undecided,
  type UndecidedAnswer,
} from "../definition.ts";
import { isWriteRun } from "../kind-of-run.ts";
import { checkAllowed } from "../writing/allowed-targetings.ts";
import { askFor, checkNotExpired, confirmationIn } from "../writing/confirmation-token.ts";
import { confirmationArgument } from "../writing/confirmed.ts";
import { reported, reportRun, runOutput, runsOf } from "../writing/write.ts";
import { ownRun, reportAnyRun } from "./own-runs.ts";

const input = () => z.strictObject({ runId: z.string(), ...confirmationArgument() });

/** Finishes a run that was interrupted, ran out of retries, or has items whose fate is unknown. */
export const resumeRun = {
  name: "resume_run",
  title: "Resume a run",
  description:
    "Finishes a run after a crash, a restart, a cancel or a spent retry budget: sends what was not attempted, and " +
    "finds out about what is unknown. Nothing is made twice. What failed stays failed.",
  toolset: "either",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId, confirmation }, context) {
    const run = await ownRun(runId, context);
    if (!isWriteRun(run)) return reportAnyRun((await context.eventRuns?.resume(runId)) ?? run, context);
    if (run.status() === "needs_confirmation" && run.state.objects.length === 0) {
      throw new ToolError(
        "this run was never started: its server ended before, and nothing was sent",
        "Make the call again.",
      );
    }
    if (run.status() === "needs_confirmation") {
      throw new ToolError(
        "this run was never started: it waits for a person's yes",
        `Once they agreed, call ${run.header.call.tool} with the confirmation that its answer gave.`,
      );
    }
    if (isWithdrawn(run.state)) {
      throw new ToolError(
        "this run was cancelled before it was started; nothing was sent",
        "Make the call again if it is wanted after all.",
      );
    }
    if (run.header.unplanned && (await runsOf(context).stored(runId))?.started === false) {
      throw new ToolError(
        "this run was never planned: its server ended before; nothing was sent",
        "Make the call again.",
      );
    }
    const counts = run.state.counts();
    const left = counts.pending + counts.unattempted + counts.unknown + counts.failed;
    // One that died after its last answer has nothing left to send, but no end yet.
    const open = left > 0 || run.status() === "interrupted";
    if (run.status() !== "running" && open) {
      await checkAllowed(run.header.call, runsOf(context).part(runId, "input"), context);
      const question = await askAgain(run, confirmation, context);
      if (question !== undefined) return question;
    }
    return reportRun(open ? await runsOf(context).resume(runId) : run, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

/** A deletion that a person agreed to more than ten minutes ago is asked about anew; undefined when it may go on. */
async function askAgain(
  run: Run,
  confirmation: string | undefined,
  context: ToolContext,
): Promise<ToolOutcome | undefined> {
  const { runId, call, createdAt } = run.header;
  const deletes = call.tool === "delete_targeting" || call.tool === "delete_options";
  // What was not planned yet would be planned anew: that may be something else than what they agreed to.
  const isRecent = context.clock.now() - createdAt < CONFIRMATION_MS && run.state.planned;
  const { pending, unattempted, unknown } = run.state.counts();
  const isOver = run.state.planned && pending + unattempted + unknown === 0;
  const asks = deletes || (!run.state.planned && mayNeedConfirmation(call));
  if (!asks || context.confirm === "off" || isRecent || isOver) return undefined;
  const digest = `resume ${runId}`;
  if (confirmation !== undefined) {
    const given = await confirmationIn(confirmation, context);
    checkNotExpired(given, context);
    if (given.standsFor(digest)) return undefined;
    throw new ToolError("confirmation is not one of this run; nothing was deleted", "Call again without it.");
  }
  const open = pending + unattempted + unknown;
  const effect = run.state.planned
    ? `This goes on deleting: ${open} deletions of this run are not known to be done.`
    : `This begins ${call.tool} as it was agreed to; it was cut short before it was planned.`;
  if (context.canAsk()) {
    if (context.reply === undefined) {
      const nobody = (why: Undecided): Promise<UndecidedAnswer> => undecided(run, why, context);
      return { ask: { message: effect, token: digest, undecided: nobody } };
    }
    if (context.reply.accepted && context.reply.token === digest) return undefined;
    throw new ToolError("the person did not agree; nothing was deleted", "Do not try again unless they ask for it.");
  }
  if (context.confirm === "strict") {
    throw new ToolError("this needs a person's yes, and this client cannot ask one", "Use a client that can ask.");
  }
  return renderReport({
    ...reported(run, context.environment),
    status: "needs_confirmation",
    confirmation: await askFor({ run: runId, digest }, effect, context),
    nextSteps: [`show the effect to the person; if they agree, call resume_run with runId ${runId} and confirmation`],
  });
}

/** The answer where nobody has decided whether a run may go on. A later yes to an open question takes it up. */
async function undecided(run: Run, why: Undecided, context: ToolContext): Promise<UndecidedAnswer> {
  const { runId } = run.header;
  const answer = renderReport({
    ...reported(run, context.environment),
    status: "needs_confirmation",
    nextSteps: [undecidedStep(why, why === "unanswered" ? runId : undefined)],
  });
  if (why === "closed") return { answer };
  const later = async (accepted: boolean): Promise<void> => {
    if (accepted) await runsOf(context).resume(runId);
  };
  return { answer, later };
}
