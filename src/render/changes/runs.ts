/** A run as a list of runs shows it (contract, `get_run`). */
export interface RunRow {
  readonly runId: string;
  readonly tool: string;
  readonly status: string;
  readonly counts: Readonly<Record<string, number>>;
  readonly startedAt: string;
  readonly updatedAt: string;
}

/** One line about a run. */
export function runLine({ runId, tool, status, counts, startedAt, updatedAt }: RunRow): string {
  const told = Object.entries(counts).flatMap(([what, count]) => (count > 0 ? [`${count} ${what}`] : []));
  return `${runId} ${tool} ${status} (${told.join(", ")}) started ${startedAt}, last change ${updatedAt}`;
}

/** Recent runs in words. */
export function runsText(runs: readonly RunRow[], cursor: string | undefined): string {
  if (runs.length === 0) return "There are no such runs.";
  const more = cursor === undefined ? [] : [`There is more: call again with cursor ${cursor}`];
  return [`${runs.length} runs, the newest first:`, ...runs.map(runLine), ...more].join("\n");
}
