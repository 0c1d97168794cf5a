import { isApiError } from "../../api/errors.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import type { ReportedRun } from "../../render/changes/reported-run.ts";
import { managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { TookTooLong } from "../within-wait.ts";

/** Tools that change options. */
const OPTION_TOOLS: ReadonlySet<string> = new Set([
  "bulk_add_options",
  "update_options",
  "update_contexts",
  "delete_options",
  "apply_plan",
]);

/** One retry, and none that takes long: the answer can go without it. */
const GENTLY = { mostTries: 2, timeoutMs: 3000 } as const;

/**
 * What the targeting holds after a run that changed its options, read once; undefined where the options are of several,
 * nothing was changed, or the read fails.
 */
export async function totalsAfter(
  { header, state, status }: ChangeRun,
  context: ToolContext,
): Promise<ReportedRun["totals"] | undefined> {
  const targetingId = state.facts.within;
  const isOver = status() !== "running" && status() !== "needs_confirmation";
  const hasChanged = state.counts().succeeded > 0;
  if (targetingId === undefined || !isOver || !hasChanged || !OPTION_TOOLS.has(header.call.tool)) return undefined;
  try {
    const read = { signal: context.signal, ...GENTLY };
    const { name, optionCount } = await managementOf(context).getTargeting(targetingId, read);
    return optionCount === undefined ? undefined : { targetingId, name, optionCount };
  } catch (thrown) {
    if (isApiError(thrown) || thrown instanceof TookTooLong || context.signal.aborted) return undefined;
    throw thrown;
  }
}
