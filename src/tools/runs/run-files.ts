import { isChangeRun } from "../../changes/change-run.ts";
import { planJson } from "../../plans/plan-document.ts";
import { messageFor } from "../../render/failures/messages.ts";
import type { Run } from "../../runs/kind.ts";
import { objectResult } from "../../runs/report.ts";
import type { ToolServices } from "../context.ts";
import { documentOf, requestsFor } from "../plans/kept-plan.ts";

/** One object of a run with how it ended and why, as a line of JSON. */
export function resultLine({ state }: Pick<Run, "state">, object: number): string {
  const { reason, ...result } = objectResult(state, object);
  const { code: errorCode, statusCode, detail } = reason ?? {};
  const why = reason === undefined ? {} : { errorCode, statusCode, detail, ...messageFor(reason) };
  return `${JSON.stringify({ ...result, ...why })}\n`;
}

/** The plan that a run carries out, whole and as JSON; undefined where it carries out none. */
export async function planTextOf(run: Run, services: Pick<ToolServices, "runs">): Promise<string | undefined> {
  if (!isChangeRun(run) || run.header.call.tool !== "apply_plan") return undefined;
  const document = await documentOf(run.header.runId, services);
  return JSON.stringify(planJson(document, requestsFor(document, run.state)));
}
