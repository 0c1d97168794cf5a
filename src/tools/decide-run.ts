import * as z from "zod";
import type { ToolContext } from "./context.ts";
import { type ToolAnswer, type ToolDefinition, ToolError } from "./define-tool.ts";
import { ownRun, reportedRun } from "./run-reports.ts";
import { isSecretFor } from "./write/confirmation-token.ts";
import { decide, personOf } from "./write/decide.ts";
import { waitingRun } from "./write/waiting.ts";
import { runOutput } from "./write/write.ts";

const input = () =>
  z.strictObject({
    runId: z.string(),
    decision: z.enum(["approve", "decline"]),
    secret: z.string().describe("From the _meta of the answer that waits for the decision"),
  });

/** Models do not see this tool; a view calls it. */
export const decideRun = {
  name: "decide_run",
  title: "Decide on a run",
  description: "For the view of a run alone: carries the person's decision.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  handler: decidedInView,
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

interface InViewDecision {
  readonly runId: string;
  readonly decision: "approve" | "decline";
  readonly secret: string;
}

/**
 * Throws a ToolError unless the secret is valid for a waiting run of this caller. So nobody learns of other callers'
 * runs.
 */
export async function decidedInView(
  { runId, decision, secret }: InViewDecision,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { digest = "" } = (await waitingRun(runId, context))?.state.facts.waits ?? {};
  if (!(await isSecretFor({ runId, digest }, secret, context))) throw nothingToDecide();
  const outcome = await decide(
    runId,
    {
      answer: decision === "approve" ? "approved" : "declined",
      channel: "view",
      person: personOf(context),
      saw: (seen) => seen === digest,
    },
    context,
  );
  if (outcome.is !== "done" && outcome.is !== "stale") throw nothingToDecide();
  const answer = await reportedRun(await ownRun(runId, context), context);
  return outcome.is === "stale" ? { ...answer, isError: true } : answer;
}

function nothingToDecide(): ToolError {
  return new ToolError(
    "no decision is possible: the run was already approved or declined, or the secret belongs to another run",
    "get_run shows the status of the run.",
  );
}
