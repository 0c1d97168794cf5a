import * as z from "zod";
import { type ToolDefinition, ToolError } from "./definition.ts";
import { isWriteRun, ownRun, reportAnyRun } from "./own-runs.ts";
import { runOutput, runsOf } from "./write.ts";

const input = () => z.strictObject({ runId: z.string() });

/** Stops a run between two requests. */
export const cancelRun = {
  name: "cancel_run",
  title: "Cancel a run",
  description:
    "Stops a running run: the request in flight is finished, nothing new is sent. What was applied stays applied. " +
    "One that waits for a person's yes ends, and its confirmation counts no more.",
  toolset: "either",
  effect: "local",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId }, context) {
    let run = await ownRun(runId, context);
    // What waits for a person's yes, in whatever process, is not to be started any more.
    if (run.status() !== "running" && isWriteRun(run)) {
      run = (await runsOf(context).withdraw(runId)) ?? (await ownRun(runId, context));
    }
    if (run.status() === "running" && !run.stop("cancelled")) {
      throw new ToolError("another process of this machine drives this run", "Cancel it there, or end that process.");
    }
    return reportAnyRun(run, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
