import type { WriteCall } from "../../../changes/call.ts";
import type { Loss } from "../../../changes/plan/plan.ts";
import type { RunFacts } from "../../../changes/rows/entries.ts";
import { type Effect, effectOfCall } from "../../../render/changes/effect.ts";
import { orUnreadable } from "../../../runs/backend/store.ts";
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
  readonly facts: Pick<RunFacts, "optionsThere">;
}

/** The tool of a run, while that is kept and can be read. */
async function toolOf(runId: string | undefined, { runs }: Pick<ToolContext, "runs">): Promise<string | undefined> {
  const run = runId === undefined ? undefined : await orUnreadable(runs.find(runId));
  return run?.state.facts?.tool ?? run?.header.call.tool;
}

/** All that a person approves with a call: of a plan everything that it lists, too. Throws a FileError as `documentOf`. */
export async function effectOf(
  { runId, call }: CallOfRun,
  { losses, objects, facts }: Planned,
  context: Pick<ToolContext, "runs">,
): Promise<Effect> {
  if (call.tool !== "apply_plan" || runId === undefined) return effectOfCall(losses, objects, facts.optionsThere);
  // Loaded late: only plans need it.
  const [{ documentOf }, { effectOfDocument }] = await Promise.all([
    import("../../plans/kept-plan.ts"),
    import("../../../render/plans/plan-effect.ts"),
  ]);
  const document = await documentOf(runId, context);
  return effectOfDocument(document, losses, await toolOf(document.wayBack?.undoes, context));
}
