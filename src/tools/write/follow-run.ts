import { interruptedHint } from "../../answers/run-headline.ts";
import type { ReportedRun } from "../../answers/run-results.ts";
import { isApiError } from "../../api/errors.ts";
import { aroundReads, type ManagementApi } from "../../api/management.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import { undefinedIf } from "../../platform/files.ts";
import { thousands } from "../../platform/text.ts";
import type { Run } from "../../runs/kind.ts";
import type { Interrupted } from "../../runs/registry.ts";
import { undefinedIfNothingStored } from "../../runs/store.ts";
import { DeadlineExceeded, managementOf, undefinedAfter, undefinedIfLate } from "../apis.ts";
import type { ToolContext } from "../define-tool.ts";

type Followed = Pick<Run, "kept" | "rest" | "watch" | "stop">;

/**
 * Waits until a run ends or the call must be answered. If the caller cancels the call, stops the run. For a task, waits
 * only until the run is stored.
 */
export async function followRun(run: Followed, context: ToolContext): Promise<void> {
  if (context.asTask) {
    context.goesOn?.(run.rest);
    return run.kept;
  }
  const stop = (): boolean => run.stop(context.stopping.aborted ? "interrupted" : "cancelled");
  const unwatch = reportProgress(run, context);
  context.signal.addEventListener("abort", stop, { once: true });
  if (context.signal.aborted) stop();
  context.goesOn?.(run.rest);
  try {
    await waitWithinCall(run.rest, context);
  } finally {
    unwatch();
    context.signal.removeEventListener("abort", stop);
  }
}

function reportProgress(run: Pick<Followed, "watch">, { progress }: Pick<ToolContext, "progress">): () => void {
  return run.watch(({ items, pending }, waitingMs) => {
    progress?.(items - pending, items, progressWords(items - pending, items, waitingMs));
  });
}

/** Returns the progress of a run as text. Undefined before the number of items is known. */
export function progressWords(done: number, items: number, waitingMs = 0): string | undefined {
  if (items === 0) return undefined;
  const waiting = waitingMs > 0 ? `, waiting ${thousands(Math.ceil(waitingMs / 1000))} s for the service` : "";
  return `${thousands(done)} of ${thousands(items)} ${items === 1 ? "item" : "items"}${waiting}`;
}

export async function waitWithinCall(work: Promise<unknown>, context: ToolContext): Promise<void> {
  await undefinedIfLate(context, work);
}

export async function waitForEnd(
  run: Pick<Followed, "rest" | "watch">,
  ms: number,
  context: ToolContext,
): Promise<void> {
  const unwatch = reportProgress(run, context);
  await undefinedAfter(ms, run.rest, context, context.signal).finally(unwatch);
}

/** Returns hints about the caller's interrupted runs except `runId`, so that the agent can resume them. */
export async function interruptedHints(
  { runs, caller }: Pick<ToolContext, "runs" | "caller">,
  runId: string,
): Promise<readonly string[]> {
  const others = (await runs.interrupted(caller)).filter((one) => one.runId !== runId);
  if (others.length === 0) return [];
  const helped = await Promise.all(others.map((one) => isWorthResuming(one, runs)));
  return interruptedHint(others.filter((_, index) => helped[index]));
}

/** Returns whether to suggest resuming a run. Events that may have been recorded are no reason for that. */
async function isWorthResuming({ runId, tool, left }: Interrupted, runs: ToolContext["runs"]): Promise<boolean> {
  if ((tool !== "track_event" && tool !== "track_events") || left > MOST_ANNOUNCED) return true;
  const counts = (await undefinedIfNothingStored(runs.find(runId)))?.state.counts();
  return counts !== undefined && counts.pending + counts.notApplied > 0;
}

/** At least as many events as are announced before they are sent. If more are left, some of them were not sent. */
const MOST_ANNOUNCED = 200;

const OPTION_TOOLS: ReadonlySet<string> = new Set([
  "bulk_add_options",
  "update_options",
  "update_contexts",
  "delete_options",
  "apply_plan",
]);

const OPTIONAL_READ_LIMITS = { mostTries: 2, timeoutMs: 3000 } as const;

/**
 * Returns how many options a targeting has after a run. Undefined unless the run has ended and has changed options of
 * exactly one targeting. Also undefined if the targeting cannot be read in time.
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
  const reading = shortReads(context).getTargeting(targetingId, { signal });
  const { name, optionCount } = (await undefinedIfFailed(reading, context)) ?? {};
  return name === undefined || optionCount === undefined ? undefined : { targetingId, name, optionCount };
}

export function shortReads(context: ToolContext): ManagementApi {
  return aroundReads(managementOf(context), (read, options) => read({ ...options, ...OPTIONAL_READ_LIMITS }));
}

/** Returns what `reading` returns. Undefined after an API error, or if the call must be answered first. */
export function undefinedIfFailed<Value>(reading: Promise<Value>, { signal }: ToolContext): Promise<Value | undefined> {
  const isExpected = (thrown: unknown) => isApiError(thrown) || thrown instanceof DeadlineExceeded || signal.aborted;
  return undefinedIf(isExpected, reading);
}
