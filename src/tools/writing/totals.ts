import { isApiError } from "../../api/errors.ts";
import { aroundReads, type ManagementApi } from "../../api/management.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import type { ReportedRun } from "../../render/reported-run.ts";
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

/** One retry, and none that takes long. */
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
  const { signal } = context;
  const read = () => gentleReads(context).getTargeting(targetingId, { signal });
  const { name, optionCount } = (await unlessItFails(read, context)) ?? {};
  return name === undefined || optionCount === undefined ? undefined : { targetingId, name, optionCount };
}

/** The management API with reads that give up soon, for what an answer can go without. */
export function gentleReads(context: ToolContext): ManagementApi {
  return aroundReads(managementOf(context), (read, options) => read({ ...options, ...GENTLY }));
}

/** What such a read gives; undefined where it fails, or one wait is over. */
export async function unlessItFails<Value>(
  read: () => Promise<Value>,
  { signal }: ToolContext,
): Promise<Value | undefined> {
  try {
    return await read();
  } catch (thrown) {
    if (isApiError(thrown) || thrown instanceof TookTooLong || signal.aborted) return undefined;
    throw thrown;
  }
}
