import { isChangeRun } from "../changes/change-run.ts";
import type { Run } from "../runs/kind.ts";
import type { ToolServices } from "../tools/context.ts";
import { planTextOf, removedLines, resultLine, sheetRunOf } from "../tools/run-files.ts";
import { fileAnswer } from "./answers.ts";
import type { RunFile } from "./wire.ts";

/** Whether a run is one of a plan. */
function isPlan(run: Run): boolean {
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
  const isPlanned = run.status() === "planned" && isPlan(run);
  const hasSheet = (isBegun || isPlanned) && sheetRunOf(run) !== undefined;
  return [
    ...(hasSheet ? ["sheet" as const] : []),
    ...(isBegun ? ["results" as const] : []),
    ...kept.flat(),
    ...(isPlan(run) ? ["plan" as const] : []),
  ];
}

/** A file of a run, as a download; undefined where there is none of this name. */
export async function downloadOf(run: Run, file: string, services: ToolServices): Promise<Response | undefined> {
  const known = (await filesOf(run, services)).find((one) => one === file);
  if (known === undefined) return undefined;
  const { runId } = run.header;
  if (known === "sheet") return savedSheet(run, services);
  if (known === "plan") return fileAnswer(`${runId}-plan.json`, (await planTextOf(run, services)) ?? "");
  if (known === "results") return fileAnswer(`${runId}-results.ndjson`, resultsOf(run));
  if (known === "removed") return fileAnswer(`${runId}-removed.ndjson`, removedLines(run, known, services));
  const isTable = known === "rejects" && JSON.stringify(run.header.call).includes('"format":"csv"');
  return fileAnswer(`${runId}-${known}.${isTable ? "csv" : "ndjson"}`, services.runs.part(runId, known)());
}

/** The sheet that the run was given, with what became of each row, in the form in which it came. */
async function savedSheet(run: Run, services: ToolServices): Promise<Response | undefined> {
  const asked = sheetRunOf(run);
  if (asked === undefined) return undefined;
  // Loaded late: few pages are asked for it.
  const { formOfSheet, readSheetRun, resultSheet } = await import("../tools/result-sheet.ts");
  const found = await readSheetRun(asked, services);
  const form = formOfSheet(found);
  const ending = form.format === "xlsx" ? "xlsx" : form.delimiter === "\t" ? "tsv" : "csv";
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of resultSheet(found, form, services)) {
      yield typeof piece === "string" ? Buffer.from(piece) : piece;
    }
  };
  return fileAnswer(`${run.header.runId}-sheet.${ending}`, bytes());
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
