import { isChangeRun } from "../../changes/change-run.ts";
import type { Run } from "../../runs/kind.ts";
import type { ToolServices } from "../../tools/context.ts";
import { planTextOf, removedLines, resultLine } from "../../tools/runs/run-files.ts";
import { pageAnswer } from "../serve/answers.ts";
import type { RunFile } from "../wire.ts";

/** Whether a run is one of a plan. */
export function isPlan(run: Run): boolean {
  return isChangeRun(run) && run.header.call.tool === "apply_plan";
}

/** What can be downloaded of a run. */
export async function filesOf(run: Run, { runs }: ToolServices): Promise<readonly RunFile[]> {
  const { runId } = run.header;
  const kept = await Promise.all(
    (["rejects", "removed"] as const).map(async (part) => {
      const content = part === "removed" ? removedLines(run, part, { runs }) : runs.part(runId, part)();
      for await (const chunk of content) if (chunk.length > 0) return [part];
      return [];
    }),
  );
  const isBegun = run.state.objects.length > 0 && run.status() !== "needs_confirmation" && run.status() !== "planned";
  return [...(isBegun ? ["results" as const] : []), ...kept.flat(), ...(isPlan(run) ? ["plan" as const] : [])];
}

/** A file of a run, as a download; undefined where there is none of this name. */
export async function downloadOf(run: Run, file: string, services: ToolServices): Promise<Response | undefined> {
  const known = (await filesOf(run, services)).find((one) => one === file);
  if (known === undefined) return undefined;
  const { runId } = run.header;
  if (known === "plan") return saved(`${runId}-plan.json`, (await planTextOf(run, services)) ?? "");
  if (known === "results") return saved(`${runId}-results.ndjson`, resultsOf(run));
  if (known === "removed") return saved(`${runId}-removed.ndjson`, removedLines(run, known, services));
  const isTable = known === "rejects" && JSON.stringify(run.header.call).includes('"format":"csv"');
  return saved(`${runId}-${known}.${isTable ? "csv" : "ndjson"}`, services.runs.part(runId, known)());
}

/** A browser never shows it, whatever it holds. */
function saved(name: string, content: string | AsyncIterable<Uint8Array>): Response {
  return pageAnswer(typeof content === "string" ? content : ReadableStream.from(content), {
    headers: { "Content-Type": "application/octet-stream", "Content-Disposition": `attachment; filename="${name}"` },
  });
}

/** Lines that are sent at once. */
const LINES = 500;

async function* resultsOf(run: Run): AsyncGenerator<Uint8Array> {
  const count = run.state.objects.length;
  for (let from = 0; from < count; from += LINES) {
    const some = Array.from({ length: Math.min(LINES, count - from) }, (_, at) => resultLine(run, from + at));
    yield Buffer.from(some.join(""));
  }
}
