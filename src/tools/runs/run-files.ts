import { isChangeRun } from "../../changes/change-run.ts";
import { takenBy } from "../../changes/removed-rows.ts";
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

/**
 * What a run took away, one JSON object a line that `bulk_add_options` or `update_contexts` reads; or what it was to take
 * away and did not, or where that is not known, with `removed: "no"` or `"unknown"`.
 */
export async function* removedLines(
  run: Run,
  which: "removed" | "not-removed",
  { runs }: Pick<ToolServices, "runs">,
): AsyncGenerator<Uint8Array> {
  if (!isChangeRun(run)) return;
  const { runId } = run.header;
  const taken = await takenBy(run.state, runs.part(runId, "former")());
  const told = (line: string): string => {
    const is = taken(line);
    if (which === "removed") return is === "removed" ? `${line}\n` : "";
    return is === "removed" ? "" : `{"removed":"${is === "unknown" ? is : "no"}",${line.slice(1)}\n`;
  };
  const decoder = new TextDecoder();
  let rest = "";
  for await (const piece of runs.part(runId, "removed")()) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    const some = lines.map(told).join("");
    if (some !== "") yield Buffer.from(some);
  }
}

/** The plan that a run carries out, whole and as JSON; undefined where it carries out none. */
export async function planTextOf(run: Run, services: Pick<ToolServices, "runs">): Promise<string | undefined> {
  if (!isChangeRun(run) || run.header.call.tool !== "apply_plan") return undefined;
  const document = await documentOf(run.header.runId, services);
  return JSON.stringify(planJson(document, requestsFor(document, run.state)));
}
