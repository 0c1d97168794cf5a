import type { ListedRun, Run } from "../../changes/run.ts";
import type { EventRun } from "../../events/run/event-run.ts";
import { renderReport } from "../../render/changes/report.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { eventRunReport } from "../events/event-answer.ts";
import { isWriteRun } from "../kind-of-run.ts";
import { followRun } from "../writing/follow-run.ts";
import { reportOf } from "../writing/write.ts";

/** A run of either kind: of changes, or of events. */
export type AnyRun = Run | EventRun;

/** A run of the caller's own, of either kind. Throws a ToolError where there is none. */
export async function ownRun(runId: string, { runs, eventRuns, caller }: ToolContext): Promise<AnyRun> {
  const run = (await runs?.find(runId)) ?? (await eventRuns?.find(runId));
  if (run !== undefined && run.header.caller === caller) return run;
  throw new ToolError("there is no run with this ID", "get_run without arguments lists the recent runs.");
}

/** Waits for a run of either kind, but no longer than a call may take, and reports it. */
export async function reportAnyRun(run: AnyRun, context: ToolContext): Promise<ToolAnswer> {
  await followRun(run, context);
  return reportedRun(run, context);
}

/** The report about a run of either kind as it stands. */
export async function reportedRun(
  run: AnyRun,
  context: ToolContext,
  nextSteps: readonly string[] = [],
): Promise<ToolAnswer> {
  if (isWriteRun(run)) return renderReport({ ...(await reportOf(run, context)), nextSteps });
  return eventRunReport(run, context, nextSteps);
}

/** The caller's runs of both kinds, the newest first. */
export async function* ownRuns({
  runs,
  eventRuns,
  caller,
}: Pick<ToolContext, "runs" | "eventRuns" | "caller">): AsyncGenerator<ListedRun> {
  const kinds = [runs?.list(caller), eventRuns?.list(caller)].filter((kind) => kind !== undefined);
  const heads = await Promise.all(kinds.map(async (kind) => ({ kind, next: await kind.next() })));
  for (;;) {
    const [newest] = heads
      .filter(({ next }) => next.done !== true)
      .sort((one, other) => ((one.next.value?.runId ?? "") < (other.next.value?.runId ?? "") ? 1 : -1));
    if (newest === undefined || newest.next.done === true) return;
    yield newest.next.value;
    newest.next = await newest.kind.next();
  }
}
