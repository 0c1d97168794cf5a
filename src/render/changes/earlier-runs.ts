import type { EndedRun } from "../../runs/kind-runs.ts";
import type { Interrupted } from "../../runs/registry.ts";

/** More interrupted runs than these are counted, not named. */
const MOST_NAMED = 3;

/** Says that a call was taken for another try of a run that goes on. */
export function goesOnHint(): string {
  return "this call was made before and had not finished: this is that run, taken up again";
}

/** Says of a call that was made before, and of which something is left, that this is a new run all the same. */
export function endedHint({ runId, status }: EndedRun): string {
  return (
    `the same call was made before and ended ${status} (run ${runId}): this is a new run of all its items; ` +
    `resume_run with runId ${runId} would have done only what was left`
  );
}

/** Names runs that were cut short and that nobody goes on with. */
export function interruptedHint(runs: readonly Interrupted[]): readonly string[] {
  const named = runs.slice(0, MOST_NAMED).map(({ runId, tool }) => `${runId} (${tool})`);
  const more = runs.length - named.length;
  if (named.length === 0) return [];
  const [noun, it] = runs.length === 1 ? ["an earlier run was", "it"] : ["earlier runs were", "each"];
  const others = more > 0 ? `, and ${more} more` : "";
  return [
    `${noun} interrupted: ${named.join(", ")}${others}; resume_run with its runId finishes ${it}, cancel_run ends ${it}`,
  ];
}

/** Says that a run will stop, where the request in flight is still to be answered. */
export function stopAskedHint(runId: string): string {
  return `the run was asked to stop: it finishes the request in flight and sends nothing more; get_run with runId ${runId} tells when it rests`;
}
