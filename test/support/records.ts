import { isUnstarted, moveRun, type Status } from "../../src/runs/lifecycle.ts";
import type { RunStore, RunSummary } from "../../src/runs/store.ts";

type Records = Pick<RunStore, "record" | "update">;

/** Starts a run: true for the one that may execute it first. */
export async function startRun(store: Records, runId: string): Promise<boolean> {
  const start = ({ status }: { readonly status: Status }) =>
    isUnstarted(status) ? { status: "running" as const } : undefined;
  return (await moveRun(store, runId, start)) !== undefined;
}

/** Whether a run was started. */
export async function wasStarted(store: Records, runId: string): Promise<boolean> {
  const record = await store.record(runId);
  return record !== undefined && !isUnstarted(record.status);
}

/** Brings a run to rest, as its summary says. */
export async function restRun(store: Records, runId: string, rest: RunSummary): Promise<void> {
  const { status } = rest;
  const stored = status === "interrupted" || status === "cancelled" ? status : "finished";
  await moveRun(store, runId, () => ({ status: stored, rest }));
}

/** Begins to execute a run again. */
export async function reopenRun(store: Records, runId: string): Promise<void> {
  await moveRun(store, runId, () => ({ status: "running" }));
}

/** A run in short, as it came to rest; undefined where it is not at rest. */
export async function summaryOf(store: Records, runId: string): Promise<RunSummary | undefined> {
  return (await store.record(runId))?.rest;
}
