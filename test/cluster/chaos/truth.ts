import { reportOf } from "../cluster.ts";
import { atRest, type Caller, insist, rowsOf, runsOf } from "./callers.ts";

/** The results of a caller's runs, compared with the service. */
export interface Found {
  readonly runs: number;
  readonly items: number;
  readonly unknown: number;
  /** What is lost, exists twice, or was reported wrongly. */
  readonly wrong: readonly string[];
}

const ENDED = new Set(["succeeded", "partial", "failed", "unknown"]);

/** Waits until all runs of a caller have stopped. */
export async function allAtRest(caller: Caller): Promise<void> {
  for (const { runId } of await runsOf(caller)) await atRest(caller, runId);
}

/** Compares the reports of each replica about a caller's runs with the data of the service. */
export async function truthOf(
  caller: Caller,
  there: readonly { readonly _id: string; readonly name: string }[],
): Promise<Found> {
  const wrong: string[] = [];
  /** The outcomes that were reported for each name that was added, and for each ID that was deleted. */
  const [added, deleted] = [new Map<string, string[]>(), new Map<string, string[]>()];
  const idOf = new Map<string, string>();
  const counted = { runs: 0, items: 0, unknown: 0 };
  for (const { runId, tool } of await runsOf(caller)) {
    const told = await atRest(caller, runId);
    // The answer was lost, so the caller asked for approval again. The first request is never approved.
    if (told.status === "needs_confirmation") continue;
    counted.runs += 1;
    if (!ENDED.has(told.status) && !wasNeverPlanned(told)) wrong.push(`${runId} is ${told.status}`);
    const { items = 0, ...outcomes } = told.counts;
    const sum = Object.values(outcomes).reduce((one, other) => one + other, 0);
    if (sum !== items) wrong.push(`${runId}: ${JSON.stringify(told.counts)}`);
    counted.items += items;
    counted.unknown += outcomes.unknown ?? 0;
    for (const url of caller.urls()) {
      const other = reportOf(await insist({ ...caller, urls: () => [url] }, "get_run", { runId }));
      if (JSON.stringify([other.status, other.counts]) !== JSON.stringify([told.status, told.counts])) {
        wrong.push(`${runId}: ${url} tells ${JSON.stringify(other.counts)}, not ${JSON.stringify(told.counts)}`);
      }
    }
    const rows = await rowsOf(caller, runId);
    if (rows.length !== items) wrong.push(`${runId} has ${rows.length} rows of ${items}`);
    for (const { name = "", _id = "", outcome } of rows) {
      const [of, key] = tool === "delete_options" ? [deleted, _id] : [added, name];
      of.set(key, [...(of.get(key) ?? []), outcome]);
      if (of === added && outcome === "succeeded") idOf.set(name, _id);
    }
  }
  for (const [name, outcomes] of added) {
    const times = there.filter((one) => one.name === name).length;
    const gone = deleted.get(idOf.get(name) ?? "") ?? [];
    const fits = allowed(outcomes, gone).includes(times);
    if (!fits) wrong.push(`${name} is ${outcomes.join("+")}, deleted ${gone.join("+")}, and there ${times} times`);
  }
  for (const { name } of there) {
    if (!added.has(name)) wrong.push(`${name} is there, and no run tells of it`);
  }
  return { ...counted, wrong };
}

/**
 * Returns whether a run was interrupted before it was planned, or before a person could be asked. Nothing was sent for
 * it, and no process continues it by itself.
 */
function wasNeverPlanned({ status, counts }: ReturnType<typeof reportOf>): boolean {
  return status === "interrupted" && counts.pending === counts.items;
}

/** Returns how often an option may exist, after these reports about adding and deleting it. */
function allowed(added: readonly string[], deleted: readonly string[]): readonly number[] {
  const wasMade = added.includes("succeeded");
  if (!wasMade) return added.includes("unknown") ? [0, 1] : [0];
  if (deleted.includes("succeeded") || deleted.includes("alreadyDone")) return [0];
  return deleted.includes("unknown") ? [0, 1] : [1];
}
