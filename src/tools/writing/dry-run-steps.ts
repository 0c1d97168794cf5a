import type { ChangeRun } from "../../changes/change-run.ts";
import type { ToolContext } from "../context.ts";
import { ToolError } from "../definition.ts";

/** The call that applies a stored dry run; none where the run is something else, or was applied. */
export function dryRunSteps(
  { header, status }: ChangeRun,
  { readOnly }: Pick<ToolContext, "readOnly">,
): readonly string[] {
  return header.dryRun && status() === "planned" && !readOnly ? [applyStep(header.runId)] : [];
}

/** Throws a ToolError where a planned run is a dry run: it was not started, so nothing can be resumed. */
export function checkNoDryRun({ header, status }: ChangeRun): void {
  if (!header.dryRun || status() !== "planned") return;
  throw new ToolError(
    "this run is a dry run that was not applied, so there is nothing to resume",
    `apply_plan {"runId":"${header.runId}"} applies it.`,
  );
}

/** The call that applies a dry run. */
export function applyStep(runId: string): string {
  return `apply_plan {"runId":"${runId}"} applies exactly this, within 24 hours`;
}
