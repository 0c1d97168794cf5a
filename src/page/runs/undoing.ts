import { effectSentence } from "../../render/changes/effect.ts";
import { undoCounts } from "../../render/plans/undo-text.ts";
import type { Run } from "../../runs/kind.ts";
import { changesOf } from "../../tools/apis.ts";
import type { ToolServices } from "../../tools/context.ts";
import { checkApplicable } from "../../tools/plans/applicable.ts";
import { callerContext } from "../../tools/writing/confirmation/deciding.ts";
import { keepWaiting } from "../../tools/writing/confirmation/on-page.ts";
import { dataAnswer, refusalAnswer } from "../serve/answers.ts";

/** Plans the way back from a run, which then waits for a decision. Throws the ToolError of what cannot be undone. */
export async function undo(run: Run, services: ToolServices): Promise<Response> {
  const { runId, call } = run.header;
  // Loaded late: few runs are undone.
  const { keepWayBack } = await import("../../tools/plans/planned-way-back.ts");
  const { rows, kept } = await keepWayBack(runId, callerContext(run, services));
  const counts = undoCounts(rows);
  if (kept === undefined) return refusalAnswer(409, `Nothing goes back: ${counts}.`);
  const { header, plan, document } = kept;
  checkApplicable(document, services);
  const goes = plan.losses.length === 0 ? "" : ` ${effectSentence(plan.losses)}`;
  const of = run.state.facts?.tool ?? call.tool;
  await keepWaiting(
    header,
    plan,
    { changes: changesOf(services), clock: services.clock },
    `Takes back run ${runId} (${of}): ${counts}.${goes}`,
  );
  return dataAnswer({ runId: header.runId });
}
