import { amount } from "../../platform/text.ts";
import { shown } from "../fence.ts";

/** A run as a list of runs shows it. */
export interface RunRow {
  readonly runId: string;
  /** Not known of some runs that are damaged. */
  readonly tool?: string;
  readonly status: string;
  /** The one targeting that it changes, and its name as it was seen last, where they are known. */
  readonly targetingId?: string;
  readonly targetingName?: string;
  /** Absent where the run is damaged. */
  readonly counts?: Readonly<Record<string, number>>;
  readonly error?: { readonly errorCode: string };
  readonly startedAt: string;
  readonly updatedAt: string;
}

/** One line about a run. */
export function runLine(run: RunRow): string {
  const { runId, tool, status, targetingId, targetingName, counts, startedAt, updatedAt } = run;
  const told = Object.entries(counts ?? {}).flatMap(([what, count]) =>
    count === 0 ? [] : [what === "items" ? amount(count, "item") : `${count} ${what}`],
  );
  const outcome = counts === undefined ? "its journal is damaged" : told.join(", ");
  const where =
    targetingId === undefined ? "" : ` in ${targetingName === undefined ? targetingId : shown(targetingName)}`;
  return `${runId} ${tool ?? "unknown tool"}${where} ${status} (${outcome}) started ${startedAt}, last change ${updatedAt}`;
}

/** Recent runs in words. */
export function runsText(runs: readonly RunRow[], cursor: string | undefined): string {
  if (runs.length === 0) return "There are no such runs.";
  const more = cursor === undefined ? [] : [`There is more: call again with cursor ${cursor}`];
  return [`${amount(runs.length, "run")}, the newest first:`, ...runs.map(runLine), ...more].join("\n");
}
