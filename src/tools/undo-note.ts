import { wayBackWords } from "../answers/next-steps.ts";
import { isChangeRun } from "../changes/change-run.ts";
import { isUndone } from "../changes/run-rules.ts";
import type { Run } from "../runs/kind.ts";
import { didCounts } from "../runs/report.ts";
import { isUlid, ulidTime } from "../spec/ulid.ts";
import type { ToolContext } from "./context.ts";
import { ToolError } from "./define-tool.ts";

const DAY_MS = 86_400_000;
const DELETIONS: ReadonlySet<string> = new Set(["delete_options", "delete_targeting"]);

/** Whether there is an undo plan from a run that is over, and how long; undefined where that is not to be known. */
export function wayBackOf(run: Run, { keep }: Pick<ToolContext, "keep">): string | undefined {
  const status = run.status();
  if (!isChangeRun(run) || status === "running" || status === "planned" || status === "needs_confirmation") {
    return undefined;
  }
  const { created = 0, changed = 0, deleted = 0 } = didCounts(run.state) ?? {};
  const { runId, createdAt } = run.header;
  return wayBackWords({
    runId,
    isUndone: isUndone(run.state),
    hasChanged: created + changed + deleted + run.state.inDoubt().size > 0,
    until: createdAt + keep.days * DAY_MS,
    // Runs that keep what they took away are removed by age alone.
    mostRuns: deleted > 0 ? undefined : keep.runs,
  });
}

/** Why there is no undo from a run that is not there: of one that is too old to be kept, that. */
export function notKept(runId: string, { keep, clock }: Pick<ToolContext, "keep" | "clock">): ToolError {
  const kept =
    `finished runs are kept for ${keep.days} days (TARGETING_MCP_KEEP_DAYS), and the last ${keep.runs} of each caller ` +
    "(TARGETING_MCP_KEEP_RUNS)";
  const began = isUlid(runId) ? ulidTime(runId) : Number.POSITIVE_INFINITY;
  if (began > clock.now() - keep.days * DAY_MS) {
    return new ToolError("there is no run with this ID", `get_run without arguments lists the recent runs; ${kept}.`);
  }
  return new ToolError(
    `this run can no longer be undone: it began on ${new Date(began).toISOString().slice(0, 10)}, and ${kept}`,
    "plan_targeting makes a plan of the state that is wanted, from a file or from desired.",
  );
}

/** The same as a next step of the deletion's own answer. */
export function wayBackSteps(run: Run, context: Pick<ToolContext, "keep">): readonly string[] {
  const picked = DELETIONS.has(run.header.call.tool) ? wayBackOf(run, context) : undefined;
  return picked === undefined || run.state.counts().succeeded === 0 ? [] : [picked];
}
