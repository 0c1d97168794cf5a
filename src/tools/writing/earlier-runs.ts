import { interruptedHint } from "../../render/run-headline.ts";
import type { Interrupted } from "../../runs/registry.ts";
import { unlessNothingKept } from "../../runs/store.ts";
import type { ToolContext } from "../context.ts";

/** Names the caller's runs that were cut short, for the answer of a write; not the one it is about. */
export async function interruptedHints(
  { runs, caller }: Pick<ToolContext, "runs" | "caller">,
  runId: string,
): Promise<readonly string[]> {
  const others = (await runs.interrupted(caller)).filter((one) => one.runId !== runId);
  const helped = await Promise.all(others.map((one) => isHelped(one, runs)));
  return interruptedHint(others.filter((_, index) => helped[index]));
}

/** Whether resuming a run does anything: an event that may have been recorded is not sent again. */
async function isHelped({ runId, tool }: Interrupted, runs: ToolContext["runs"]): Promise<boolean> {
  if (tool !== "track_event") return true;
  const counts = (await unlessNothingKept(runs.find(runId)))?.state.counts();
  return counts !== undefined && counts.pending + counts.notApplied > 0;
}
