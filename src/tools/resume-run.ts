import * as z from "zod";
import { isChangeRun } from "../changes/change-run.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { ownRun, reportedRun } from "./run-reports.ts";
import { confirmationArgument } from "./write/confirmed.ts";
import { followRun } from "./write/follow-run.ts";
import { runOutput } from "./write/write.ts";

const input = () => z.strictObject({ runId: z.string(), ...confirmationArgument() });

/** Finishes a run that was interrupted, ran out of retries, or has items whose fate is unknown. */
export const resumeRun = {
  name: "resume_run",
  title: "Resume a run",
  description:
    "Finishes or continues a run after a crash, a cancel or too many retries: sends what was not applied, and checks what is unknown. Nothing is made twice. What failed stays failed.",
  toolset: "either",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId, confirmation }, context) {
    const run = await ownRun(runId, context);
    // Loaded late: a server that is only asked for its tools does not need it.
    if (isChangeRun(run)) return (await import("./resumed-change.ts")).resumeChange(run, confirmation, context);
    const resumed = (await context.runs.resume(runId)) ?? run;
    await followRun(resumed, context);
    return reportedRun(resumed, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
