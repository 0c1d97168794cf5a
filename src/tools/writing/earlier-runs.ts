import { interruptedHint } from "../../render/changes/earlier-runs.ts";
import type { ToolContext } from "../context.ts";

/** Names the caller's runs that were cut short, for the answer of a write; not the one it is about. */
export async function interruptedHints(
  { runs, caller }: Pick<ToolContext, "runs" | "caller">,
  runId: string,
): Promise<readonly string[]> {
  return interruptedHint((await runs.interrupted(caller)).filter((one) => one.runId !== runId));
}
