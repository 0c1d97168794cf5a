import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { runOutput } from "../writing/write.ts";

const input = () => z.strictObject({ runId: z.string().describe("A run of get_run that is over") });

/** Plans the way back from a run. */
export const undoRun = {
  name: "undo_run",
  title: "Plan the way back",
  description:
    "Plans how to take back what a run did, and keeps the plan: each object goes back exact, with a caveat, is notOurs " +
    "(others changed it since; left alone), or impossible. Sends nothing; apply_plan carries it out.",
  toolset: "targeting",
  effect: "reads",
  idempotent: false,
  input,
  output: runOutput,
  async handler({ runId }, context) {
    const { planWayBack } = await import("./planned-way-back.ts");
    return planWayBack(runId, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
