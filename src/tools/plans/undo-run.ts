import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";

const input = () => z.strictObject({ runId: z.string() });

/** Plans the way back from a run. */
export const undoRun = {
  name: "undo_run",
  title: "Plan the way back",
  description:
    "Plans how to take back what a run did, and keeps the plan: each object is exact, caveat, notOurs (others changed " +
    "it since; left alone), impossible, or unresolved (not answered; apply_plan finds out first). Sends nothing; " +
    "apply_plan carries it out.",
  toolset: "targeting",
  effect: "reads",
  idempotent: false,
  input,
  output: () =>
    z.looseObject({ environment: z.string(), runId: z.string().optional(), undo: z.looseObject({}).optional() }),
  async handler({ runId }, context) {
    const { planWayBack } = await import("./planned-way-back.ts");
    return planWayBack(runId, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
