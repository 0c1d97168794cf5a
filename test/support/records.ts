import { isUnstarted, moveRun, type RunStore, type RunSummary, type Status } from "../../src/runs/store.ts";

type Records = Pick<RunStore, "record" | "update">;

/** Records that a run has started. Returns false if it was started before. */
export async function startRun(store: Records, runId: string): Promise<boolean> {
  const start = ({ status }: { readonly status: Status }) =>
    isUnstarted(status) ? { status: "running" as const } : undefined;
  return (await moveRun(store, runId, start)) !== undefined;
}

/** Returns whether a run has been started. */
export async function wasStarted(store: Records, runId: string): Promise<boolean> {
  const record = await store.record(runId);
  return record !== undefined && !isUnstarted(record.status);
}

/**
 * Records that a run has stopped. The status of the summary decides whether it was interrupted, cancelled or finished.
 */
export async function restRun(store: Records, runId: string, rest: RunSummary): Promise<void> {
  const { status } = rest;
  const stored = status === "interrupted" || status === "cancelled" ? status : "finished";
  await moveRun(store, runId, () => ({ status: stored, rest }));
}

/** Records that a stopped run is running again. */
export async function reopenRun(store: Records, runId: string): Promise<void> {
  await moveRun(store, runId, () => ({ status: "running" }));
}

/** Returns the summary of a stopped run; undefined if the run has not stopped. */
export async function summaryOf(store: Records, runId: string): Promise<RunSummary | undefined> {
  return (await store.record(runId))?.rest;
}
