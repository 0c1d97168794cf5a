import { thousands } from "../../platform/text.ts";
import type { ReportCounts } from "../../runs/report.ts";
import { type ToolContext, timeLeft } from "../context.ts";

/** What following a run needs of it, whatever it sends. */
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

/** Tells the client how far a run is, until the given function is called. */
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
