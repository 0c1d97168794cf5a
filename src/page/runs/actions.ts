import { isApiError } from "../../api/errors.ts";
import { type ApprovalRun, isApproval } from "../../approvals/approvals.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import { FileError } from "../../platform/file-error.ts";
import { requestFailure } from "../../render/failures/request-failures.ts";
import { undoCounts } from "../../render/plans/undo-text.ts";
import { ExecutionRefusedError } from "../../runs/execution.ts";
import type { Run } from "../../runs/kind.ts";
import { changesOf } from "../../tools/apis.ts";
import type { ToolServices } from "../../tools/context.ts";
import { ToolError } from "../../tools/definition.ts";
import { checkApplicable } from "../../tools/plans/applicable.ts";
import { grant, resumeFor } from "../../tools/runs/granted-approval.ts";
import {
  approve,
  callerContext,
  type Decider,
  type DecisionOutcome,
  decline,
  waitingAnywhere,
  waitsForDecision,
} from "../../tools/writing/confirmation/deciding.ts";
import { keepWaiting } from "../../tools/writing/confirmation/on-page.ts";
import { dataAnswer, refusalAnswer } from "../serve/answers.ts";
import { canBeDriven, DAMAGED, ENDED, STALE } from "./rows.ts";
import { notApproved, type Shown, seenRun, unlessDamaged } from "./seen.ts";

const DECIDED = "This was decided already.";
const ELSEWHERE = "This is approved in the client of the agent, not here.";
const UNKNOWN = "There is no such run.";

/** Carries out what a person asks for a run. Answers 404 where the run is not theirs to see. */
export async function actOn(runId: string, action: string, by: Decider, shown: Shown): Promise<Response> {
  const seen = await unlessDamaged(seenRun(runId, shown));
  if (seen === "damaged") return refusalAnswer(409, DAMAGED);
  // The runs of others are only decided on.
  if (seen === undefined || !(seen.isOwn || isDecision(action))) return refusalAnswer(404, UNKNOWN);
  const { run } = seen;
  const { services } = seen.shown;
  if (services.readOnly) return refusalAnswer(403, "This server only reads (TARGETING_MCP_READ_ONLY).");
  if (action === "cancel") {
    await services.runs.cancel(runId);
    return dataAnswer({});
  }
  // Declining sends nothing, so that a process without the project's key may record it.
  if (action !== "decline" && !(await canBeDriven(run, seen.shown))) return refusalAnswer(409, ENDED);
  try {
    if (action === "undo") return await undo(run, services);
    if (action === "resume") {
      await resumeFor(run, by, services);
      return dataAnswer({});
    }
    if (!isDecision(action)) return refusalAnswer(404, "The page has nothing here.");
    const waiting = await waitingAnywhere(runId, services);
    if (waiting === undefined) return refusalAnswer(409, DECIDED);
    if (action === "approve" && !waitsForDecision(waiting)) return refusalAnswer(409, ELSEWHERE);
    const own = action === "approve" ? notApproved(run, shown) : undefined;
    if (own !== undefined) return refusalAnswer(403, own);
    const outcome = await decided(waiting, action, by, services);
    if (outcome === "done") return dataAnswer({});
    return refusalAnswer(409, outcome === "stale" ? `${STALE} Ask the agent to plan it again.` : DECIDED);
  } catch (thrown) {
    if (isApiError(thrown)) return refusalAnswer(502, requestFailure(thrown).message);
    if (thrown instanceof ExecutionRefusedError) return refusalAnswer(403, `${thrown.message}. ${thrown.remedy}`);
    if (!(thrown instanceof ToolError || thrown instanceof FileError)) throw thrown;
    return refusalAnswer(409, `${thrown.message}.`);
  }
}

function isDecision(action: string): action is "approve" | "decline" {
  return action === "approve" || action === "decline";
}

function decided(
  run: ChangeRun | ApprovalRun,
  action: "approve" | "decline",
  by: Decider,
  services: ToolServices,
): Promise<DecisionOutcome> {
  if (action === "decline") return decline(run, by, services);
  return isApproval(run) ? grant(run, by, services) : approve(run, by, services);
}

/** Plans the way back from a run, which then waits for a decision. Throws the ToolError of what cannot be undone. */
async function undo(run: Run, services: ToolServices): Promise<Response> {
  const { runId } = run.header;
  // Loaded late: few runs are undone.
  const { keepWayBack } = await import("../../tools/plans/planned-way-back.ts");
  const { rows, kept } = await keepWayBack(runId, callerContext(run, services));
  if (kept === undefined) return refusalAnswer(409, `Nothing goes back: ${undoCounts(rows)}.`);
  const { header, plan, document } = kept;
  checkApplicable(document, services);
  await keepWaiting(header, plan, { ...services, changes: changesOf(services) });
  return dataAnswer({ runId: header.runId });
}
