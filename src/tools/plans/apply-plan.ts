import * as z from "zod";
import { type ToolDefinition, ToolError } from "../definition.ts";
import { confirmationArgument, confirmed } from "../writing/confirmation/confirmed.ts";
import { dryRunArgument, runOutput } from "../writing/write.ts";

const input = () =>
  z.strictObject({
    runId: z.string().optional().describe("runId of a plan_targeting, undo_run or dryRun answer"),
    ...dryRunArgument(),
    ...confirmationArgument(),
  });

/** Carries a plan out. */
export const applyPlan = {
  name: "apply_plan",
  title: "Apply a plan",
  description:
    "Carries out a plan of plan_targeting, undo_run or a call with dryRun, exactly as it was shown: where something that " +
    "matters has changed since, nothing is sent and the answer says what. dryRun: true only looks. A person is asked " +
    "before it deletes, or takes away more than 100 Context IDs.",
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
