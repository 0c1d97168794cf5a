import { interruptedHint } from "../../render/changes/earlier-runs.ts";
import type { ToolContext } from "../context.ts";

/** Names the caller's runs of either kind that were cut short, for the answer of a write; not the one it is about. */
export async function interruptedHints(
  { runs, eventRuns, caller }: Pick<ToolContext, "runs" | "eventRuns" | "caller">,
  runId: string,
): Promise<readonly string[]> {
  const found = await Promise.all([runs?.interrupted(caller) ?? [], eventRuns?.interrupted(caller) ?? []]);
  return interruptedHint(found.flat().filter((one) => one.runId !== runId));
}
