import { fileOf } from "../../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import type { InputFile } from "../../files/input-file.ts";
import type { Run } from "../../runs/kind.ts";

/** A run whose input was a sheet, and that sheet. */
export interface SheetRun {
  readonly run: ChangeRun;
  readonly file: InputFile;
  readonly part: "input" | "sheet";
}

/** The sheet that a run was given, or that its plan was made of; undefined where there was none. */
export function sheetRunOf(run: Run): SheetRun | undefined {
  if (!isChangeRun(run)) return undefined;
  const { call } = run.header;
  const isPlan = call.tool === "apply_plan";
  const file = isPlan ? call.input.sheet : fileOf(call);
  if (file === undefined || (file.format !== "csv" && file.format !== "xlsx")) return undefined;
  return { run, file, part: isPlan ? "sheet" : "input" };
}
