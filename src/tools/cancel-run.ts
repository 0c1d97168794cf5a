import * as z from "zod";
import { many } from "../answers/message-words.ts";
import { STOP_NOT_STORED, STOP_REQUESTED } from "../answers/run-headline.ts";
import { type EventRun, isEventRun } from "../events/run/event-runs.ts";
import { countsOf } from "../runs/report.ts";
import { sendingOf } from "./apis.ts";
import type { ToolAnswer, ToolContext, ToolDefinition } from "./define-tool.ts";
import { ownRun, reportedRun } from "./run-reports.ts";
import { waitForEnd } from "./write/within-call.ts";
import { runOutput } from "./write/write.ts";

const input = () => z.strictObject({ runId: z.string() });

const REST_MS = 300;

export const cancelRun = {
  name: "cancel_run",
  title: "Cancel a run",
  description:
    "Stops (aborts) a run: the request in flight is finished, nothing more is sent, and what was applied stays. A run that waits for approval ends.",
  toolset: "either",
  effect: "local",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId }, context) {
    const { runs } = context;
    // Runs of this process come first: they can be stopped even if the store cannot be reached.
    const driven = runs.driven(runId);
    let run = driven?.header.caller === context.caller ? driven : await ownRun(runId, context);
    if (isEventRun(run) && run.status() === "planned") return removeDryRun(run, context);
    // A run that is not started is ended in the store, so that no process can start it.
    if (run.status() !== "running") run = (await runs.withdraw(runId)) ?? (await ownRun(runId, context));
    const isGoing = run.status() === "running" || run.status() === "interrupted";
    const notes =
      isGoing || run.status() === "cancelled" ? [] : ["this run had ended before, so nothing was cancelled"];
    let stopping = STOP_REQUESTED;
    if (isGoing) {
      run = (await runs.cancel(runId, () => (stopping = STOP_NOT_STORED))) ?? run;
      await waitForEnd(run, REST_MS, context);
    }
    return reportedRun(run, context, [], { notes: run.status() === "running" ? [...notes, stopping] : notes });
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

/** Deletes a dry run of events. It has no process that would have to be stopped. */
async function removeDryRun({ header, state }: EventRun, context: ToolContext): Promise<ToolAnswer> {
  const { runId, call } = header;
  const { environment } = context;
  await sendingOf(context).runs.removeDryRun(runId);
  const counts = countsOf(state);
  const text = `Removed the dry run of ${many(counts.items, "event")}; nothing was sent. Run ${runId}, ${environment}.`;
  return { structured: { environment, runId, tool: call.tool, status: "cancelled", counts }, text, isError: false };
}
