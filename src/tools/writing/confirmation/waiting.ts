import { type ApprovalRun, isApproval } from "../../../approvals/approvals.ts";
import { type ChangeRun, isChangeRun } from "../../../changes/change-run.ts";
import type { Run } from "../../../runs/kind.ts";
import { ownReason } from "../../../runs/reasons.ts";
import type { ToolServices } from "../../context.ts";

/**
 * A run that waits for a person's decision; undefined where it does not, or no longer. One that waited too long is
 * ended.
 */
export async function waitingRun(
  runId: string,
  { runs, clock }: Pick<ToolServices, "runs" | "clock">,
): Promise<ChangeRun | undefined> {
  const run = await waitingOfAnyKind(runId, { runs, clock });
  return run !== undefined && isChangeRun(run) ? run : undefined;
}

/** The same for a change, or for what else a person is asked for. */
export async function waitingOfAnyKind(
  runId: string,
  { runs, clock }: Pick<ToolServices, "runs" | "clock">,
): Promise<ChangeRun | ApprovalRun | undefined> {
  const run = await waitingAnywhere(runId, { runs, clock });
  return run !== undefined && waitsForDecision(run) ? run : undefined;
}

/** A run that waits for an approval, on the page or elsewhere; undefined as above. */
export async function waitingAnywhere(
  runId: string,
  { runs, clock }: Pick<ToolServices, "runs" | "clock">,
): Promise<ChangeRun | ApprovalRun | undefined> {
  const run = await runs.find(runId);
  if (run === undefined || !waits(run)) return undefined;
  return (await endedWhereTooLate(run, { runs, clock })) === run ? run : undefined;
}

/** Whether a run waits for a person's decision in a view or on the page. */
export function waitsForDecision(run: Run): run is ChangeRun | ApprovalRun {
  return waits(run) && run.state.facts.waits?.elsewhere === undefined;
}

function waits(run: Run): run is ChangeRun | ApprovalRun {
  const isOne = (isChangeRun(run) || isApproval(run)) && run.status() === "needs_confirmation";
  return isOne && run.state.facts.waits !== undefined;
}

/** The same run; one that nobody decided on in time is ended first. */
export async function endedWhereTooLate(run: Run, { runs, clock }: Pick<ToolServices, "runs" | "clock">): Promise<Run> {
  const { until = Number.POSITIVE_INFINITY, elsewhere } = (waits(run) && run.state.facts.waits) || {};
  if (until > clock.now()) return run;
  const { runId } = run.header;
  const reason = ownReason("NOT_DECIDED", elsewhere === undefined ? undefined : { elsewhere });
  return (await runs.withdraw(runId, { cause: "cancelled", reason })) ?? (await runs.find(runId)) ?? run;
}
