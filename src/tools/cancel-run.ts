import * as z from "zod";
import { STOP_REQUESTED } from "../answers/run-headline.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { ownRun, reportedRun } from "./run-reports.ts";
import { waitForEnd } from "./write/planned.ts";
import { runOutput } from "./write/write.ts";

const input = () => z.strictObject({ runId: z.string() });

const REST_MS = 300;

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
    // A run of this process can be stopped even if the store is not available, so this process is searched first.
    const driven = runs.driven(runId);
    let run = driven?.header.caller === context.caller ? driven : await ownRun(runId, context);
    // A waiting run is withdrawn, so that no process can start it.
    if (run.status() !== "running") run = (await runs.withdraw(runId)) ?? (await ownRun(runId, context));
    const isGoing = run.status() === "running" || run.status() === "interrupted";
    const notes =
      isGoing || run.status() === "cancelled" ? [] : ["this run had ended before, so nothing was cancelled"];
    if (isGoing) {
      run = (await runs.cancel(runId)) ?? run;
      await waitForEnd(run, REST_MS, context);
    }
    return reportedRun(run, context, [], { notes: run.status() === "running" ? [...notes, STOP_REQUESTED] : notes });
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
