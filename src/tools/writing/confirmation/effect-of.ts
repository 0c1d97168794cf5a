import type { WriteCall } from "../../../changes/call.ts";
import type { Loss } from "../../../changes/plan/plan.ts";
import { type Effect, effectOfCall } from "../../../render/changes/effect.ts";
import type { ToolContext } from "../../context.ts";

/** A call, and its run, where it has one: a plan always is one. */
interface CallOfRun {
  readonly runId?: string | undefined;
  readonly call: WriteCall;
}

/** What is known of what it does: what it takes away, and its objects. */
interface Planned {
  readonly losses: readonly Loss[];
  readonly objects: Parameters<typeof effectOfCall>[1];
}

/** All that a person approves with a call: of a plan everything that it lists, too. Throws a FileError as `documentOf`. */
export async function effectOf(
  { runId, call }: CallOfRun,
  { losses, objects }: Planned,
  context: Pick<ToolContext, "runs">,
): Promise<Effect> {
  if (call.tool !== "apply_plan" || runId === undefined) return effectOfCall(losses, objects);
  // Loaded late: only plans need it.
  const [{ documentOf }, { effectOfDocument }] = await Promise.all([
    import("../../plans/kept-plan.ts"),
    import("../../../render/plans/plan-effect.ts"),
  ]);
  return effectOfDocument(await documentOf(runId, context), losses);
}
