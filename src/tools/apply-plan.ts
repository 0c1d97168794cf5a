import * as z from "zod";
import { type ToolDefinition, ToolError } from "./define-tool.ts";
import { confirmationArgument, confirmed } from "./write/confirmed.ts";
import { dryRunArgument, runOutput } from "./write/write.ts";

const input = () =>
  z.strictObject({
    runId: z.string().optional().describe("runId of the plan"),
    ...dryRunArgument(),
    ...confirmationArgument(),
  });

/** Carries a plan out. */
export const applyPlan = {
  name: "apply_plan",
  title: "Apply a plan",
  description:
    "Applies a plan of plan_targeting or undo_run, or carries out a dry run. If something relevant has changed, nothing is sent and the answer says what. dryRun only checks. A person is asked before deletions, or if over 100 Context IDs are removed.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId, dryRun, confirmation }, context) {
    if (confirmation) return confirmed({ tool: "apply_plan", token: confirmation, runId, dryRun }, context);
    if (!runId) throw new ToolError("runId is missing", "Give the runId of a plan, or a confirmation alone.");
    const { applyPlanned } = await import("./applied-plan.ts");
    return applyPlanned(runId, dryRun ?? false, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
