import { fileOf } from "../../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import { type EventRun, isEventRun } from "../../events/run/event-runs.ts";
import type { InputFile } from "../../files/input-file.ts";
import type { Run } from "../../runs/kind.ts";

/** A run whose input was a sheet, that sheet, and the part of the run that holds it. */
export type SheetRun = { readonly file: InputFile; readonly part: "input" | "sheet" } & (
  | { readonly run: ChangeRun; readonly events?: never }
  | { readonly events: EventRun; readonly run?: never }
);

/** The sheet that a run was given, or that its plan was made of; undefined where there was none. */
export function sheetRunOf(run: Run): SheetRun | undefined {
  if (isEventRun(run)) {
    const { file } = run.header.call.input.events;
    return file === undefined || !isSheet(file) || !hasOpenRows(run) ? undefined : { events: run, file, part: "input" };
  }
  if (!isChangeRun(run)) return undefined;
  const { call } = run.header;
  const isPlan = call.tool === "apply_plan";
  const file = isPlan ? call.input.sheet : fileOf(call);
  return file === undefined || !isSheet(file) ? undefined : { run, file, part: isPlan ? "sheet" : "input" };
}

function isSheet({ format }: InputFile): boolean {
  return format === "csv" || format === "xlsx";
}

/** Whether an event of a run was not sent: of those that were, the rows are not kept. */
function hasOpenRows({ state }: EventRun): boolean {
  const { failed, notApplied, pending } = state.counts();
  return failed + notApplied + pending > 0 && state.reason(0)?.code !== "FILE_UNREADABLE";
}
