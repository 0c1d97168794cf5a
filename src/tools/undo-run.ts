import * as z from "zod";
import type { ToolDefinition } from "./define-tool.ts";

const input = () => z.strictObject({ runId: z.string() });

/** Plans how a run is undone. */
export const undoRun = {
  name: "undo_run",
  title: "Plan how to undo a run",
  description:
    "Plans how to undo, revert or take back what a run did, or restore what it deleted, and stores the plan. Objects are exact, caveat (with differences), notOurs (changed by others since), impossible or unresolved (checked first). Sends nothing; apply_plan applies it.",
  toolset: "targeting",
  effect: "reads",
  idempotent: false,
  input,
  output: () =>
    z.looseObject({ environment: z.string(), runId: z.string().optional(), undo: z.looseObject({}).optional() }),
  async handler({ runId }, context) {
    const { startUndoPlan } = await import("./undo-plan.ts");
    return startUndoPlan(runId, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
