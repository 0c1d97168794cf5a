import * as z from "zod";
import { type ToolDefinition, ToolError } from "./define-tool.ts";
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

/** Records a decision that a person makes in a view. The view calls this tool; models do not see it. */
export const decideRun = {
  name: "decide_run",
  title: "Decide on a run",
  description: "For the view of a run alone: carries the person's decision.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId, decision, secret }, context) {
    const { digest = "" } = (await waitingRun(runId, context))?.state.facts.waits ?? {};
    // Checked first, because the secret is valid only for a waiting run of this caller. So nobody learns about runs of
    // others.
    if (!(await isSecretFor({ runId, digest }, secret, context))) throw nothingToDecide();
    const answer = decision === "approve" ? "approved" : "declined";
    const saw = (seen: string): boolean => seen === digest;
    const outcome = await decide(runId, { answer, channel: "view", person: personOf(context), saw }, context);
    if (outcome.is !== "done" && outcome.is !== "stale") throw nothingToDecide();
    const report = await reportedRun(await ownRun(runId, context), context);
    return outcome.is === "stale" ? { ...report, isError: true } : report;
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

function nothingToDecide(): ToolError {
  return new ToolError(
    "no decision is possible: the run was already approved or declined, or the secret belongs to another run",
    "get_run shows the status of the run.",
  );
}
