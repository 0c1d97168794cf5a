/** What is known of the way back from a run. */
export interface KnownWayBack {
  readonly runId: string;
  readonly isUndone: boolean;
  /** Whether the run changed anything. */
  readonly hasChanged: boolean;
  /** Until when the run is kept: milliseconds since 1970. */
  readonly until: number;
  /** How many newer runs of the caller may come before it is removed; undefined where that does not count. */
  readonly mostRuns: number | undefined;
}

/** Whether there is a way back from a run, and how long. */
export function wayBackWords({ runId, isUndone, hasChanged, until, mostRuns }: KnownWayBack): string {
  if (isUndone) return "this run was undone, and is not resumed";
  if (!hasChanged) return "there is nothing to take back";
  const date = new Date(until).toISOString().slice(0, 10);
  const runs = mostRuns === undefined ? "" : `, while it is among the last ${mostRuns} runs`;
  return `undo_run with runId ${runId} plans the way back, until ${date}${runs}`;
}
