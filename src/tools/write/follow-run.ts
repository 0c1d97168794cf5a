import { interruptedHint } from "../../answers/run-headline.ts";
import type { ReportedRun } from "../../answers/run-results.ts";
import { isApiError } from "../../api/errors.ts";
import { aroundReads, type ManagementApi } from "../../api/management.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import { thousands } from "../../platform/text.ts";
import type { Interrupted } from "../../runs/registry.ts";
import type { ReportCounts } from "../../runs/report.ts";
import { unlessNothingKept } from "../../runs/store.ts";
import { DeadlineExceeded, managementOf } from "../apis.ts";
import { type ToolContext, timeLeft } from "../context.ts";

interface Followed {
  readonly kept: Promise<void>;
  readonly rest: Promise<void>;
  watch(watcher: (counts: ReportCounts, waitingMs?: number) => void): () => void;
  stop(cause: "cancelled" | "interrupted"): boolean;
}

/**
 * Waits for a run to rest, but no longer than a call may take; meanwhile tells the client how far it is. A caller who
 * gives up stops it. Where the client follows it as a task, waits only until it is stored.
 */
export async function followRun(run: Followed, context: ToolContext): Promise<void> {
  if (context.asTask) {
    context.goesOn?.(run.rest);
    return run.kept;
  }
  const stop = (): boolean => run.stop(context.stopping.aborted ? "interrupted" : "cancelled");
  const unwatch = tellProgress(run, context);
  context.signal.addEventListener("abort", stop, { once: true });
  if (context.signal.aborted) stop();
  context.goesOn?.(run.rest);
  try {
    await atMostOneWait(run.rest, context);
  } finally {
    unwatch();
    context.signal.removeEventListener("abort", stop);
  }
}

function tellProgress(run: Pick<Followed, "watch">, { progress }: Pick<ToolContext, "progress">): () => void {
  return run.watch(({ items, pending }, waitingMs = 0) => {
    progress?.(items - pending, items, progressWords(items - pending, items, waitingMs));
  });
}

/** How far a run is, for a person; undefined before it is known how much there is to do. */
export function progressWords(done: number, items: number, waitingMs = 0): string | undefined {
  if (items === 0) return undefined;
  const waiting = waitingMs > 0 ? `, waiting ${thousands(Math.ceil(waitingMs / 1000))} s for the service` : "";
  return `${thousands(done)} of ${thousands(items)} ${items === 1 ? "item" : "items"}${waiting}`;
}

/** Resolves when the work has ended, or when a call has taken as long as it may. Rejects as the work does. */
export function atMostOneWait(work: Promise<unknown>, context: ToolContext): Promise<void> {
  return endOrTime(work, timeLeft(context), context);
}

/** Resolves when the work has ended, after so many milliseconds, or when `gaveUp` is aborted. Rejects as the work does. */
async function endOrTime(
  work: Promise<unknown>,
  ms: number,
  { clock }: Pick<ToolContext, "clock">,
  gaveUp?: AbortSignal,
): Promise<void> {
  const timer = new AbortController();
  const signal = gaveUp === undefined ? timer.signal : AbortSignal.any([timer.signal, gaveUp]);
  const time = clock.sleep(ms, signal).catch((thrown: unknown) => {
    if (!signal.aborted) throw thrown;
  });
  try {
    await Promise.race([work, time]);
  } finally {
    timer.abort();
  }
}

/** Resolves when a run rests, or after so many milliseconds; meanwhile tells the client how far it is. */
export async function restOrTime(
  run: Pick<Followed, "rest" | "watch">,
  ms: number,
  context: ToolContext,
): Promise<void> {
  const unwatch = tellProgress(run, context);
  await endOrTime(run.rest, ms, context, context.signal).finally(unwatch);
}

/** Names the caller's runs that were cut short, for the answer of a write; not the one it is about. */
export async function interruptedHints(
  { runs, caller }: Pick<ToolContext, "runs" | "caller">,
  runId: string,
): Promise<readonly string[]> {
  const others = (await runs.interrupted(caller)).filter((one) => one.runId !== runId);
  if (others.length === 0) return [];
  const helped = await Promise.all(others.map((one) => isHelped(one, runs)));
  return interruptedHint(others.filter((_, index) => helped[index]));
}

/** Whether resuming a run does anything: an event that may have been recorded is not sent again. */
async function isHelped({ runId, tool }: Interrupted, runs: ToolContext["runs"]): Promise<boolean> {
  if (tool !== "track_event") return true;
  const counts = (await unlessNothingKept(runs.find(runId)))?.state.counts();
  return counts !== undefined && counts.pending + counts.notApplied > 0;
}

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
    if (isApiError(thrown) || thrown instanceof DeadlineExceeded || signal.aborted) return undefined;
    throw thrown;
  }
}
