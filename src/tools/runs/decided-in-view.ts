import type { ChangeRun } from "../../changes/change-run.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { approve, decline, waitingRun } from "../writing/confirmation/deciding.ts";
import { isSecretFor, mayDecideInView } from "../writing/confirmation/in-view.ts";
import { ownRun, reportedRun } from "./run-reports.ts";

/** A person's decision in a view. */
interface InViewDecision {
  readonly runId: string;
  readonly decision: "approve" | "decline";
  readonly secret: string;
}

/**
 * Carries out a person's decision in a view, and answers how the run stands then. Throws a ToolError where there is
 * nothing to decide with this secret, so that nothing is told about runs of others.
 */
export async function decidedInView(
  { runId, decision, secret }: InViewDecision,
  context: ToolContext,
): Promise<ToolAnswer> {
  const waiting = await waitingRun(runId, context);
  const { digest = "" } = waiting?.state.facts.waits ?? {};
  const isMeant = await isSecretFor({ runId, digest }, secret, context);
  if (waiting === undefined || !(isMeant && isOwn(waiting, context) && mayDecideInView(context)))
    throw nothingToDecide();
  const by = { who: context.person ?? context.caller, where: "view" } as const;
  const outcome = await (decision === "approve" ? approve : decline)(waiting, by, context);
  if (outcome === "decided") throw nothingToDecide();
  const answer = await reportedRun(await ownRun(runId, context), context);
  return outcome === "stale" ? { ...answer, isError: true } : answer;
}

/** Whether a run is the caller's, and one that this process has the key for. */
function isOwn({ header }: ChangeRun, { caller, project, environment }: ToolContext): boolean {
  return header.caller === caller && header.project === project.id && header.environment === environment;
}

function nothingToDecide(): ToolError {
  return new ToolError(
    "there is nothing to decide with this: the run was decided before, or the secret is not the one of this run",
    "get_run shows how it stands.",
  );
}
