import * as z from "zod";
import {
  approvalOf,
  declinedInClientNote,
  type Effect,
  effectPart,
  effectText,
  shortName,
  undecidedNote,
  undecidedSteps,
} from "../answers/approvals.ts";
import { messageFor } from "../answers/failures.ts";
import { confirmationStep, renderReport } from "../answers/run-report.ts";
import { isApproval } from "../changes/approvals.ts";
import {
  CONFIRMATION_MS,
  changeOf,
  countOpenRemovals,
  isUndone,
  isWithdrawn,
  notPlannedForGood,
} from "../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import type { ChangeHeader } from "../changes/changes.ts";
import type { EffectObject } from "../changes/rows/entries.ts";
import { textOf } from "../plans/look-again.ts";
import { readPlan } from "../plans/plan-document.ts";
import { parseJson } from "../platform/json.ts";
import { amount } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import type { Standing } from "../runs/outcome.ts";
import { changesOf } from "./apis.ts";
import {
  type ToolAnswer,
  type ToolContext,
  type ToolDefinition,
  ToolError,
  type ToolOutcome,
  type Undecided,
  type UndecidedAnswer,
} from "./define-tool.ts";
import { checkNoEventDryRun } from "./event-report.ts";
import { changesOfDocument, lossesOfStoredPlan, shownPlan } from "./kept-plan.ts";
import { planDesiredState } from "./plan-targeting.ts";
import { ownRun, reported, reportedRun, reportRun, undoneWords, usedBeforeNote } from "./run-reports.ts";
import { startUndoPlan } from "./undo-run.ts";
import { effectOf } from "./write/awaiting-decision.ts";
import { askFor, checkCounts, confirmationIn } from "./write/confirmation-token.ts";
import { confirmationArgument } from "./write/confirmed.ts";
import { type Approved, type Decision, decide, inClient, personOf, refusedError } from "./write/decide.ts";
import { decidedWork } from "./write/on-page.ts";
import { checkApplied, followRun, waitWithinCall } from "./write/within-call.ts";
import { runOutput } from "./write/write.ts";

const input = () => z.strictObject({ runId: z.string(), ...confirmationArgument() });

export const resumeRun = {
  name: "resume_run",
  title: "Resume a run",
  description:
    "Finishes or continues a run after a crash, a cancel or too many retries: sends what was not applied, and checks what is unknown. Nothing is made twice. What failed stays failed.",
  toolset: "either",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId, confirmation }, context) {
    const run = await ownRun(runId, context);
    if (isChangeRun(run)) return resumeChange(run, confirmation, context);
    checkNoEventDryRun(run, "there is nothing to resume");
    const notes = run.status() === "succeeded" ? usedBeforeNote(run) : [];
    const resumed = (await context.runs.resume(runId)) ?? run;
    await followRun(resumed, context);
    return reportedRun(resumed, context, [], { notes });
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

async function resumeChange(
  run: ChangeRun,
  confirmation: string | undefined,
  context: ToolContext,
): Promise<ToolOutcome> {
  if (await isUnfinishedPlan(run, context)) return resumePlanning(run.header, context);
  // Nothing of a plan was sent, so there is nothing to resume. The answer shows the plan, and how to apply it.
  if (run.status() === "planned" && !run.header.dryRun) return shownPlan(run, context);
  await checkStarted(run, context);
  const counts = run.state.counts();
  const left = counts.pending + counts.notApplied + counts.unknown + counts.failed;
  // If the server stopped after the service's last answer, there is nothing left to send. But the end of the run must
  // still be recorded: in the journal, or, if that was done, in the run's record.
  const open = left > 0 || run.status() === "interrupted";
  if (!open) {
    await context.runs.settle(run.header.runId);
    return reportRun(run, context, [], { notes: usedBeforeNote(run) });
  }
  const goOn: ResumeWith = async (decision) => {
    const { approved, resumed } = await resumedBy(run, decision, context);
    // If no new approval was needed, the report shows the earlier one.
    const approval = approvalOf(approved ?? { asked: "not_needed", ...run.state.facts });
    return reportRun(resumed, context, [], { approval, alwaysReportsApproval: true });
  };
  if (run.status() === "running") return goOn(undefined);
  await context.runs.checkExecutable(run);
  return resumeOrAsk(run, { confirmation, effect: await approvalToResume(run, context) }, context, goOn);
}

type ResumeWith = (decision: Decision | undefined) => Promise<ToolAnswer>;

/** Resumes a run. A new approval is stored with the run, so that later reports show the approval. */
async function resumedBy(
  run: ChangeRun,
  decision: Decision | undefined,
  context: ToolContext,
): Promise<{ readonly approved?: Approved; readonly resumed: ChangeRun | undefined }> {
  const { runId } = run.header;
  const { runs } = changesOf(context);
  // If the run was still running, no approval was requested. So it is not resumed, even if it has stopped since.
  if (decision === undefined) return { resumed: run.status() === "running" ? run : await runs.resume(runId) };
  let found: { readonly approved: Approved; readonly resumed: ChangeRun | undefined } | undefined;
  const start = async (approved: Approved) => {
    found = { approved, resumed: await runs.resume(runId, approved) };
    return found.resumed;
  };
  const outcome = await decide(runId, decision, context, { looked: { run, digest: resumeDigest(runId), start } });
  if (outcome.is === "refused") throw refusedError();
  if (outcome.is === "changed") {
    throw new ToolError(
      "confirmation does not belong to this run; nothing was deleted",
      "Call again without confirmation.",
    );
  }
  return found ?? { resumed: await runs.find(runId) };
}

function resumeDigest(runId: string): string {
  return `resume ${runId}`;
}

/** Returns whether a run is a plan that the server had not stored completely when it stopped. */
async function isUnfinishedPlan({ header, status }: ChangeRun, context: ToolContext): Promise<boolean> {
  if (header.call.tool !== "apply_plan" || status() !== "interrupted") return false;
  return (await context.runs.isUnstarted(header.runId)) === true;
}

/** Throws a ToolError if a run was undone, waits for approval, or never started, such as a plan or a dry run. */
export async function checkStarted(run: ChangeRun, context: ToolContext): Promise<void> {
  if (run.status() === "needs_confirmation") {
    throw new ToolError(
      "this run has not started: it waits for approval",
      run.state.facts.waits?.elsewhere === "token"
        ? `When the person has agreed, call ${run.header.call.tool} with the confirmation that its answer gave.`
        : `A person decides where they were asked, on the page or in the client. To ask again, call ${run.header.call.tool} again.`,
    );
  }
  if (isUndone(run.state)) {
    throw new ToolError(
      await undoneWords(run.header.runId, run.state, context),
      "If the change is not in effect and is wanted after all: undo the run that undid it with undo_run, or make the call again.",
    );
  }
  if (isWithdrawn(run.state)) {
    const { facts, stopped } = run.state;
    const how = facts.tool === undefined && stopped?.reason?.code === "WITHDRAWN" ? "was cancelled" : "ended";
    throw new ToolError(
      `this run ${how} before it was started; nothing was sent`,
      "To apply the change after all, make the call again.",
    );
  }
  const notPlanned = notPlannedForGood(run.state);
  if (notPlanned !== undefined) {
    const { message, remedy } = messageFor(notPlanned);
    throw new ToolError(message, remedy);
  }
  checkApplied(run);
  if ((await context.runs.isUnstarted(run.header.runId)) === true) {
    const what = run.header.unplanned
      ? "planned: its server ended too early;"
      : "started: its server ended too early, and";
    throw new ToolError(`this run was never ${what} nothing was sent`, "Make the call again.");
  }
}

/**
 * Returns what a person must approve again before a run that removes something is resumed. Undefined if the first
 * approval is still enough: the run had planned its requests and was stored less than ten minutes ago. Also undefined if
 * the rest removes nothing, or needed no approval.
 */
export async function approvalToResume(run: ChangeRun, context: ToolContext): Promise<Effect | undefined> {
  const { header, state } = run;
  const { tool } = header.call;
  const { clock } = context;
  const { deletes, mayTakeAway } = changeOf(header.call);
  if (!state.planned && tool === "apply_plan") {
    const losses = await lossesOfStoredPlan(header.runId, context);
    return losses.length === 0
      ? undefined
      : effectOf(header, { losses, objects: state.objects, facts: state.facts }, context);
  }
  // Until a run is planned, it is unknown whether it will change exactly what was approved.
  if (!state.planned) {
    const sentence = `This starts ${tool} as requested; it was interrupted before its plan was stored.`;
    const note = "It was interrupted before anything was sent. Resuming starts the run as requested.";
    return mayTakeAway ? { sentence, note, parts: leftParts(state) } : undefined;
  }
  if (clock.now() - header.createdAt < CONFIRMATION_MS) return undefined;
  if (deletes) {
    const { pending, notApplied, unknown } = state.counts();
    const open = pending + notApplied + unknown + state.refused().size;
    const sentence = `This continues deleting: ${amount(open, "deletion")} of this run may not be done yet.`;
    const note = interruptedNote(amount(open, "deletion"));
    return open === 0 ? undefined : { sentence, note, parts: leftParts(state) };
  }
  const { asked = "not_needed" } = state.facts;
  const left = asked === "not_needed" ? 0 : countOpenRemovals(state);
  if (left === 0) return undefined;
  const remove = left === 1 ? "removes" : "remove";
  const sentence = `This continues ${tool}: ${amount(left, "change")} of this run that ${remove} data may not be done yet.`;
  const note = interruptedNote(`${amount(left, "change")} that ${remove} data`);
  return { sentence, note, parts: leftParts(state) };
}

function interruptedNote(left: string): string {
  return `It was interrupted: ${left} may not be done yet. Resuming checks what is done, and does the rest.`;
}

function leftParts(state: ChangeRun["state"]): Effect["parts"] {
  const refused = state.refused();
  const left: EffectObject[] = [];
  for (let object = 0; object < state.objects.length; object += 1) {
    const standing = state.standing(object);
    const isLeft = LEFT.has(standing) || refused.has(object);
    const { _id, name = _id ?? "?" } = (isLeft && state.objects.at(object)) || {};
    if (isLeft) left.push({ name: shortName(name), ...(_id !== undefined && { _id }), says: "" });
  }
  return effectPart("May not be done yet", left);
}

const LEFT: ReadonlySet<Standing> = new Set(["pending", "notApplied", "unknown"]);

async function resumeOrAsk(
  run: ChangeRun,
  { confirmation, effect }: { readonly confirmation: string | undefined; readonly effect: Effect | undefined },
  context: ToolContext,
  goOn: ResumeWith,
): Promise<ToolOutcome> {
  const { runId } = run.header;
  const asks = effect !== undefined;
  const shown = effect ?? { sentence: "", parts: [] };
  const text = effectText(shown);
  const digest = resumeDigest(runId);
  if (asks && context.confirm !== "off" && confirmation !== undefined) {
    const given = await confirmationIn(confirmation, context);
    checkCounts(given, context);
    return goOn({ answer: "approved", channel: "token", person: personOf(context), saw: given.isFor });
  }
  return decidedWork(
    {
      call: { tool: "resume_run", input: { about: runId, saveTo: "" } },
      name: runId,
      effect: shown,
      needsApproval: asks,
      digest,
      start: (asked) => goOn(asked === "agreed_in_client" ? inClient(context) : undefined),
      after: (decision) => reportResumed(decision, runId, context),
      undecided: (why) => undecided(run, why, context),
      declined: (approval, note = declinedInClientNote(text)) =>
        renderReport({
          ...reported(run, context.environment),
          status: "cancelled",
          approval,
          alwaysReportsApproval: true,
          notes: ["it was declined: nothing more was sent; do not try again unless the person asks for it", note],
        }),
      async token(hints) {
        const confirmation = await askFor({ run: runId, digest }, text, context);
        return renderReport({
          ...reported(run, context.environment),
          status: "needs_confirmation",
          confirmation,
          notes: hints,
          nextSteps: [confirmationStep("resume_run", confirmation, runId)],
        });
      },
    },
    context,
  );
}

async function reportResumed(decision: Run, runId: string, context: ToolContext): Promise<ToolAnswer> {
  await waitWithinCall(decision.rest, context);
  if (decision.status() !== "succeeded") return reportRun(decision, context);
  const approval = isApproval(decision) ? approvalOf(decision.state.facts) : undefined;
  return reportRun(await context.runs.find(runId), context, [], { approval, alwaysReportsApproval: true });
}

/** Returns the answer if nobody decided. If the question is still open ("unanswered"), approving it resumes the run. */
async function undecided(run: ChangeRun, why: Undecided, context: ToolContext): Promise<UndecidedAnswer> {
  const { runId } = run.header;
  const answer = renderReport({
    ...reported(run, context.environment),
    status: "needs_confirmation",
    notes: [undecidedNote(why)],
    nextSteps: undecidedSteps(why === "unanswered" ? runId : undefined),
  });
  if (why === "closed") return { answer };
  const later = async (accepted: boolean): Promise<void> => {
    if (accepted) await resumedBy(run, inClient(context), context);
  };
  return { answer, later };
}

const kept = z.object({ given: z.record(z.string(), z.unknown()) });
const made = z.object({ kind: z.literal("targeting-mcp-plan") });
const undoArguments = z.object({ runId: z.string() });

/** Makes a plan again whose server stopped too early. If it had made the plan, only stores what is missing. */
async function resumePlanning(header: ChangeHeader, context: ToolContext): Promise<ToolAnswer> {
  const text = await textOf(context.runs.part(header.runId, "input"));
  const value = parseJson(text);
  const { given } = kept.safeParse(value).data ?? {};
  if (made.safeParse(value).success) return keepMade(header, text, context);
  if (given === undefined) {
    throw new ToolError(
      "this plan was not stored, because its server stopped too early; nothing was sent",
      "Make the call again.",
    );
  }
  const undo = undoArguments.safeParse(given).data;
  return undo === undefined ? planDesiredState(given, context, header) : startUndoPlan(undo.runId, context, header);
}

/** Stores the rest of a plan. Its server stopped after it had stored only the plan document. */
async function keepMade(header: ChangeHeader, text: string, context: ToolContext): Promise<ToolAnswer> {
  const { call, caller } = header;
  if (call.tool !== "apply_plan")
    throw new ToolError("this run is not a plan", "Give the ID of a plan: get_run without runId lists the runs.");
  const { plannedBy, base, undoes } = call.input;
  const changes = changesOfDocument(readPlan(text, "the kept plan"));
  await changesOf(context).keepPlan(changes, { text, plannedBy, base, undoes, caller }, header);
  const run = await ownRun(header.runId, context);
  return isChangeRun(run) ? shownPlan(run, context) : reportRun(run, context);
}
