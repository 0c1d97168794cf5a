import * as z from "zod";
import { stopAskedHint } from "../answers/run-headline.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { ownRun, reportedRun } from "./run-reports.ts";
import { restOrTime } from "./write/follow-run.ts";
import { runOutput } from "./write/write.ts";

const input = () => z.strictObject({ runId: z.string() });

/** The answer comes at once; a run that comes to rest in so many milliseconds is shown as it rests. */
const REST_MS = 300;

/** Stops a run between two requests. */
export const cancelRun = {
  name: "cancel_run",
  title: "Cancel a run",
  description:
    "Stops or aborts a run: the request in flight is finished, nothing more is sent, and what was applied stays. A run that waits for approval ends.",
  toolset: "either",
  effect: "local",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId }, context) {
    const { runs } = context;
    // A run of this process is stopped also while the store is away.
    const driven = runs.driven(runId);
    let run = driven?.header.caller === context.caller ? driven : await ownRun(runId, context);
    // What waits for a person's yes, in whatever process, is not to be started any more.
    if (run.status() !== "running") run = (await runs.withdraw(runId)) ?? (await ownRun(runId, context));
    if (run.status() === "running" || run.status() === "interrupted") {
      run = (await runs.cancel(runId)) ?? run;
      await restOrTime(run, REST_MS, context);
    }
    return reportedRun(run, context, run.status() === "running" ? [stopAskedHint(runId)] : []);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
