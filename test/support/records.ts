import { isUnstarted, moveRun, type RunStore, type RunSummary, type Status } from "../../src/runs/store.ts";

type Records = Pick<RunStore, "record" | "update">;

/** Starts a run. Returns true if this call was the first to do so. */
export async function startRun(store: Records, runId: string): Promise<boolean> {
  const start = ({ status }: { readonly status: Status }) =>
    isUnstarted(status) ? { status: "running" as const } : undefined;
  return (await moveRun(store, runId, start)) !== undefined;
}

/** Returns whether a run was started. */
export async function wasStarted(store: Records, runId: string): Promise<boolean> {
  const record = await store.record(runId);
  return record !== undefined && !isUnstarted(record.status);
}

/** Records that a run has stopped, with the status of the summary. */
export async function restRun(store: Records, runId: string, rest: RunSummary): Promise<void> {
  const { status } = rest;
  const stored = status === "interrupted" || status === "cancelled" ? status : "finished";
  await moveRun(store, runId, () => ({ status: stored, rest }));
}

/** Records that a run is executed again. */
export async function reopenRun(store: Records, runId: string): Promise<void> {
  await moveRun(store, runId, () => ({ status: "running" }));
}

/** Returns a stopped run as a summary; undefined if it has not stopped. */
export async function summaryOf(store: Records, runId: string): Promise<RunSummary | undefined> {
  return (await store.record(runId))?.rest;
}
