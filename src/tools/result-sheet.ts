import { dirname, resolve } from "node:path";
import { renderAnswer } from "../answers/budget.ts";
import { messageFor } from "../answers/failures.ts";
import { rejectsUri, UNRESOLVABLE } from "../answers/next-steps.ts";
import { differenceLine } from "../answers/plan-words.ts";
import { columnsOf, failedRowsText, resultSheetText, unknownEventsText } from "../answers/sheets.ts";
import { fileOf, isUndone, isWithdrawn } from "../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { contextRows, optionRows } from "../changes/rows/input-rows.ts";
import { type EventRun, isEventRun } from "../events/run/event-runs.ts";
import { autocorrects } from "../events/run/run-state.ts";
import { readUncorrected, rowsOfEvents } from "../events/run/source.ts";
import type { ValidColumns } from "../files/columns.ts";
import { withDetectedForm } from "../files/detected-form.ts";
import { type InputFile, isSheet } from "../files/input-file.ts";
import {
  OPTION_RESULT_COLUMNS,
  RESULT_COLUMNS,
  type ResultSource,
  type RowResult,
  resultRows,
} from "../files/result-sheet.ts";
import { moreOf, type RowShape } from "../files/rows.ts";
import { freePlaceFor, savedForm, saveFile, writtenSheet } from "../files/save-file.ts";
import type { SheetHeader, SheetRow } from "../files/sheet-rows.ts";
import type { SheetFormat } from "../files/written-rows.ts";
import { desiredRows } from "../plans/file/sheet.ts";
import { capitalized } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import type { Reason, Standing } from "../runs/outcome.ts";
import type { SaveArguments } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, ToolError } from "./define-tool.ts";
import { failedRowCount, isOvertaken } from "./event-report.ts";
import { documentOf } from "./kept-plan.ts";
import { type SheetRun, sheetRunOf } from "./run-files.ts";

const RESULTS: Readonly<Record<Standing, string>> = {
  succeeded: "Done",
  alreadyDone: "Already done",
  skipped: "Skipped",
  failed: "Failed",
  notApplied: "Not applied",
  pending: "Not applied",
  unknown: "Unknown",
};

const DRY_RUN_RESULTS: typeof RESULTS = { ...RESULTS, failed: "Would fail", pending: "Would be sent" };

function resultsIn({ events }: SheetRun): typeof RESULTS {
  return events?.status() === "planned" ? DRY_RUN_RESULTS : RESULTS;
}

/** Detects how to read the sheet of a run, if the call was answered before that was detected. */
export async function readSheetRun(found: SheetRun, { runs }: Pick<ToolContext, "runs">): Promise<SheetRun> {
  const { file, part } = found;
  const { runId } = (found.run ?? found.events).header;
  return { ...found, file: await withDetectedForm(runs.part(runId, part), file, shapeOf(found)) };
}

export function formOfSheet({ file }: SheetRun): SheetFormat {
  if (file.format === "xlsx") return { format: "xlsx" };
  return { format: "csv", delimiter: file.sheet?.delimiter ?? "," };
}

function shapeOf({ run, events }: SheetRun): ValidColumns & Partial<Pick<RowShape<unknown>, "fromCells">> {
  if (events !== undefined) return rowsOfEvents(events.header.call.input.events);
  const { tool } = run.header.call;
  if (tool === "bulk_add_options") return optionRows;
  return tool === "update_contexts" ? contextRows : desiredRows;
}

interface SheetRows {
  readonly count?: (result: string) => void;
  /** Called for every row whose option may have further rows, with the name of the option. */
  readonly onOption?: (name: string, result: string) => void;
  readonly only?: Standing | undefined;
}

/** Yields the sheet of a run with the result of each row. Counts the results. */
export async function* resultSheet(
  found: SheetRun,
  form: SheetFormat,
  { runs }: Pick<ToolContext, "runs">,
  { count, onOption, only }: SheetRows = {},
): AsyncGenerator<string | Uint8Array> {
  const { file, part } = found;
  const { runId } = (found.run ?? found.events).header;
  const resultOf =
    found.events === undefined
      ? await resultsOf(found.run, form, { runs })
      : resultsOfEvents(found.events, resultsIn(found));
  const shape = shapeOf(found);
  const { fromCells } = shape;
  const source: ResultSource = {
    bytes: runs.part(runId, part),
    file,
    shape,
    columns: found.events === undefined ? OPTION_RESULT_COLUMNS : RESULT_COLUMNS,
    isPart: only !== undefined,
    keyReader(header) {
      if (found.events !== undefined) return () => undefined;
      if (fromCells === undefined) return keyOfOption(header);
      const read = fromCells(header, moreOf(file));
      return (cells) => read(cells).key;
    },
    resultOf: (row, ownerLine, header) => {
      const shown = resultOf(row, ownerLine, header);
      if (shown !== undefined && header.at("contextId") >= 0) onOption?.(cellOf(row, header, "name"), shown.result);
      const wanted = only && resultsIn(found)[only];
      if (shown === undefined || (wanted !== undefined && !isWanted(shown, wanted, only))) return undefined;
      count?.(shown.result);
      if (only === undefined || shown.problem === undefined) return shown;
      // The saved sheet has other line numbers, because rows are missing. So the problem names the line in the original
      // sheet.
      return { ...shown, problem: `Line ${row.line}: ${shown.problem}` };
    },
  };
  const name = file.sheet?.sheet ?? "Results";
  const above = (file.seen?.headerLine ?? 1) - 1;
  yield* writtenSheet({ name, above, rows: resultRows(source, form) }, form);
}

/** Returns whether a row is wanted. `failed` includes rows that need a failed one: they are sent again together. */
function isWanted({ result, needsFailed = false }: RowResult, wanted: string, only: Standing | undefined): boolean {
  return result === wanted || (only === "failed" && needsFailed);
}

/**
 * Returns a function that returns the ID or name of a row's option. Rows with the same ID or name describe the same
 * option, as in planning. Undefined for a row that alone describes its option.
 */
function keyOfOption(header: SheetHeader): (cells: readonly string[]) => string | undefined {
  const [id, name] = [header.at("_id"), header.at("name")];
  const oneARow = header.at("contextId") >= 0;
  return (cells) => (cells[id] ?? "").trim() || (oneARow ? cells[name] : undefined) || undefined;
}

type Found = { readonly object: number } | { readonly problem: Omit<RowResult, "action" | "contextAction"> };

/**
 * Returns a function that returns the result of each row of events. Rows that are or may be recorded have none
 * and are omitted: sending them again would count them twice.
 */
function resultsOfEvents({ state }: EventRun, results: typeof RESULTS): ResultSource["resultOf"] {
  let index = 0;
  return () => {
    const object = index++;
    const standing = state.standing(object);
    if (standing !== "failed" && standing !== "notApplied" && standing !== "pending") return undefined;
    return { result: results[standing], ...reasonCells(state.reason(object)) };
  };
}

async function resultsOf(
  { header: { call, runId }, state }: ChangeRun,
  form: SheetFormat,
  { runs }: Pick<ToolContext, "runs">,
): Promise<ResultSource["resultOf"]> {
  const document = call.tool === "apply_plan" ? await documentOf(runId, { runs }) : undefined;
  const byLine = new Map<number, Found>();
  const byRef = new Map<string, number>();
  for (let object = 0; object < state.objects.length; object += 1) {
    const about = state.objects.at(object);
    if (about === undefined) continue;
    if (about.line !== undefined) byLine.set(about.line, { object });
    else for (const ref of [about._id, about.name]) if (ref !== undefined) byRef.set(ref, object);
  }
  const failed = (line: number, problem: string, more: Partial<RowResult>): void => {
    byLine.set(line, { problem: { result: RESULTS.failed, problem: capitalized(problem), ...more } });
  };
  const { problems = [], conflicts = [], adopted = [] } = document?.plan ?? {};
  for (const { line, column, message, remedy } of problems) {
    failed(line, message, { howToFix: remedy, ...(form.format === "xlsx" && { at: column - 1 }) });
  }
  for (const conflict of conflicts) {
    if (conflict.line === undefined) continue;
    const howToFix = "Write the service's value into the sheet, or plan with a new base.";
    failed(conflict.line, `others have changed it: ${differenceLine(conflict)}`, { howToFix });
  }
  // A sheet with problems was not compared with the service. So none of its rows was applied.
  const isUncompared = problems.length > 0 && document?.plan.items.length === 0;
  const ids = new Map(adopted.map(({ name, _id }) => [name, _id]));
  const actions = { bulk_add_options: "Add", update_contexts: "Edit" } as const;
  const action = call.tool === "bulk_add_options" || call.tool === "update_contexts" ? actions[call.tool] : undefined;
  const contextAction = action === undefined ? "Set" : "Add";
  return (row, ownerLine, header) => {
    const [id, name] = [cellOf(row, header, "_id").trim(), cellOf(row, header, "name")];
    const object = byRef.get(id || name);
    const found = byLine.get(row.line) ?? byLine.get(ownerLine) ?? (object === undefined ? undefined : { object });
    const isCreated = found !== undefined && "object" in found && state.didOf?.(found.object) === "created";
    const own = { action: action ?? (isCreated ? "Add" : "Edit"), contextAction };
    if (found === undefined)
      return { ...own, result: isUncompared ? RESULTS.notApplied : RESULTS.alreadyDone, _id: ids.get(name) };
    if ("problem" in found) return { ...own, ...found.problem };
    const at = found.object;
    const result = RESULTS[state.standing(at)];
    return { ...own, result, _id: state.idOf(at) ?? ids.get(name), isCreated, ...reasonCells(state.reason(at)) };
  };
}

function cellOf({ cells }: SheetRow, header: SheetHeader, column: string): string {
  return cells[header.at(column)] ?? "";
}

function reasonCells(reason: Reason | undefined): Partial<RowResult> {
  if (reason === undefined) return {};
  const { message, remedy } = messageFor(reason, "sheet");
  const needsFailed = reason.code === "NEEDS_FAILED";
  return { problem: capitalized(message), howToFix: remedy, columns: columnsOf(reason), needsFailed };
}

function inputOf(run: Run): InputFile | undefined {
  if (isEventRun(run)) return run.header.call.input.events.file;
  return isChangeRun(run) ? fileOf(run.header.call) : undefined;
}

function neededSheet(run: Run): SheetRun {
  const found = sheetRunOf(run);
  if (found !== undefined) return found;
  const file = inputOf(run);
  if (file !== undefined && !isSheet(file)) {
    throw new ToolError(
      `the file of this run is .${file.format}, not a sheet, so no sheet with results can be saved`,
      "To save its failed rows, with reasons, give saveTo a name that ends in .ndjson. " +
        `They are also at ${rejectsUri(run.header.runId)}.`,
    );
  }
  const { succeeded, unknown } = run.state.counts();
  if (file !== undefined && succeeded + unknown === 0) {
    throw new ToolError(
      "no event of this run was sent, and it has no rows with results to save",
      `get_run ${JSON.stringify({ runId: run.header.runId })} shows it.`,
    );
  }
  if (file !== undefined) {
    throw new ToolError(
      "every row of this run was sent, so there are no failed rows to save",
      'get_run with outcome "unknown" and includeInput shows the events whose outcome is unknown.',
    );
  }
  if (isEventRun(run)) {
    throw new ToolError(
      "the events of this run were given in the call, so no file with their results can be saved",
      `get_run ${JSON.stringify({ runId: run.header.runId, outcome: "failed", includeInput: true })} shows the failed events.`,
    );
  }
  throw new ToolError(
    "the input of this run was not a sheet, so no sheet with results can be saved",
    "A sheet is saved for runs of bulk_add_options, update_contexts, plan_targeting and track_events with an .xlsx, " +
      ".csv, .tsv or .txt file; for other files, what failed is saved as .ndjson.",
  );
}

/** Throws a ToolError if a sheet with only the rows of this outcome cannot be saved for the run. */
function checkOnly({ run, events }: SheetRun, only: Standing): void {
  const { header, state } = run ?? events;
  const { runId } = header;
  if (header.call.tool === "apply_plan") {
    throw new ToolError(
      "saveTo and outcome were both given, but a sheet with a desired state is planned as a whole",
      "Leave outcome out: the column Result of the saved sheet says what became of each row.",
    );
  }
  if (events !== undefined && (only === "succeeded" || only === "unknown")) {
    throw new ToolError(
      "a sheet with results has no rows of events that are or may be recorded",
      only === "unknown"
        ? "To save the events with an unknown result, give saveTo a name that ends in .ndjson."
        : `get_run ${JSON.stringify({ runId, outcome: only })} shows their results.`,
    );
  }
  if ((state.counts()[only] ?? 0) === 0) {
    throw noneHas(only, runId);
  }
}

type SavingContext = Pick<ToolContext, "allowedDirs" | "environment" | "runs">;

async function savedFailedRows(
  run: Run,
  saveTo: string,
  { allowedDirs, environment, runs }: SavingContext,
): Promise<ToolAnswer> {
  const { runId, call } = run.header;
  const { tool } = call;
  const [status, failed] = [run.status(), failedRowCount(run)];
  if (failed === 0 || status === "running") {
    throw new ToolError(
      failed === 0 ? "no row of this run failed" : "this run continues, and its failed rows are stored when it ends",
      `get_run ${JSON.stringify({ runId })} shows it.`,
    );
  }
  const place = await freePlaceFor(saveTo, allowedDirs);
  const savedTo = place.path;
  await saveFile(place, runs.part(runId, "rejects")());
  const overtaken = isEventRun(run) && run.header.dryRun === true && isOvertaken(run.state);
  return renderAnswer({ environment, runId, tool, status, savedTo, rows: { [RESULTS.failed]: failed } }, [
    failedRowsText(savedTo, { failed, tool, isDryRun: status === "planned", isOvertaken: overtaken }),
  ]);
}

async function savedUnknownEvents(
  run: EventRun,
  saveTo: string,
  { allowedDirs, environment, runs }: SavingContext,
): Promise<ToolAnswer> {
  const { header, state } = run;
  const { runId, call } = header;
  const { unknown } = state.counts();
  const source = { kept: call.input.events, bytes: runs.part(runId, "input") };
  if (unknown === 0) throw noneHas("unknown", runId);
  const place = await freePlaceFor(saveTo, allowedDirs);
  await saveFile(
    place,
    (async function* () {
      for await (const batch of readUncorrected(source)) {
        const wanted = batch.filter(({ index }) => state.standing(index) === "unknown");
        yield wanted.map(({ event }) => `${JSON.stringify(event)}\n`).join("");
      }
    })(),
  );
  const { tool } = call;
  const rows = { [RESULTS.unknown]: unknown };
  return renderAnswer({ environment, runId, tool, status: run.status(), savedTo: place.path, rows }, [
    unknownEventsText(place.path, unknown, environment),
  ]);
}

function noneHas(only: Standing, runId: string): ToolError {
  return new ToolError(`no row of this run has the outcome ${only}`, `get_run ${JSON.stringify({ runId })} shows it.`);
}

/** Saves a run's sheet, with all results or those of one outcome. For an input that is no sheet, saves failed rows. */
export async function savedResults(
  run: Run,
  { saveTo, delimiter, outcome: only }: SaveArguments & { readonly outcome?: Standing | undefined },
  context: SavingContext,
): Promise<ToolAnswer> {
  const { allowedDirs, environment, runs } = context;
  const input = inputOf(run);
  const isRows = input !== undefined && !isSheet(input);
  if (only === "unknown" && isEventRun(run) && savedForm(saveTo, delimiter).format === "ndjson") {
    return savedUnknownEvents(run, saveTo, context);
  }
  if (isRows && savedForm(saveTo, delimiter).format === "ndjson") return savedFailedRows(run, saveTo, context);
  const found = await readSheetRun(neededSheet(run), { runs });
  if (only !== undefined) checkOnly(found, only);
  const place = await freePlaceFor(saveTo, allowedDirs, delimiter);
  const { form } = place;
  if (form.format === "ndjson") {
    throw new ToolError(
      `${JSON.stringify(saveTo)} is not a sheet`,
      "Give saveTo a name that ends in .xlsx, .csv or .tsv.",
    );
  }
  const given = formOfSheet(found);
  const isOwn = delimiter === undefined && form.format === "csv" && form.delimiter === "," && given.format === "csv";
  const results = new Map<string, number>();
  const count = (result: string) => void results.set(result, (results.get(result) ?? 0) + 1);
  const there = new Set<string>();
  const left = new Set<string>();
  const onOption = (name: string, result: string) =>
    void ([RESULTS.succeeded, RESULTS.alreadyDone].includes(result) ? there : left).add(name);
  await saveFile(place, resultSheet(found, isOwn ? given : form, { runs }, { count, onOption, only }));
  const { runId, call } = run.header;
  const tool = found.run?.state.facts?.tool ?? call.tool;
  const status = run.status();
  const savedTo = place.path;
  return renderAnswer({ environment, runId, tool, status, savedTo, rows: Object.fromEntries(results) }, [
    resultSheetText({
      savedTo,
      results,
      isOver: status !== "running",
      again: againCall(found, saveTo, { only, isPartThere: [...left].some((name) => there.has(name)) }),
      isAppliedAgain: call.tool === "update_contexts",
      isPart: only !== undefined,
      ...(found.run && resumingOf(found.run)),
      ...(found.events && { events: found.events.state.counts(), isDryRun: status === "planned" }),
    }),
  ]);
}

/** Returns what resuming a run does with the rows of its sheet. */
function resumingOf(run: ChangeRun) {
  const { header, state } = run;
  if (isUndone(state) || isWithdrawn(state)) return {};
  const isUnresolved = Array.from({ length: state.objects.length }, (_, object) => object).some(
    (object) => state.standing(object) === "unknown" && !UNRESOLVABLE.has(state.reason(object)?.code ?? ""),
  );
  const isStopped = ["interrupted", "cancelled"].includes(run.status());
  return { isStopped, ...(isUnresolved && { unresolved: header.runId }) };
}

/**
 * Returns the call that sends a corrected sheet. `isPartThere`: some rows of an option were applied and others were not,
 * so those can only be added to the option. Rows that were skipped on purpose must then not be in the sheet.
 */
function againCall(
  { run, events, file: { given = {} } }: SheetRun,
  file: string,
  { only, isPartThere }: Pick<SheetRows, "only"> & { readonly isPartThere: boolean },
): string {
  const { columns, separator, fillDown } = given;
  const { tool, input } = run?.header.call ?? { tool: "track_events", input: {} };
  const isAdded = isPartThere && tool === "bulk_add_options";
  const hasSkipped = isAdded && "onExisting" in input && input.onExisting === "skip" && only === undefined;
  const call = {
    ...("targetingId" in input && { targetingId: input.targetingId }),
    file,
    columns,
    separator,
    fillDown,
    ...("onExisting" in input && { onExisting: input.onExisting }),
    ...(isAdded && { onExisting: "addContexts" }),
    ...(events && autocorrects(events.header.call) && { autocorrect: true }),
  };
  const first = hasSkipped ? `remove the rows with the result ${RESULTS.skipped}, and call ` : "";
  return `${first}${tool === "apply_plan" ? "plan_targeting" : tool} ${JSON.stringify(call)}`;
}

/** Saves the results of a run for a command line. A person chose the path, so any folder is allowed. */
export async function savedResultsAt(
  run: Run,
  { saveTo, delimiter }: SaveArguments,
  context: Pick<ToolContext, "environment" | "runs">,
): Promise<ToolAnswer> {
  const path = resolve(saveTo);
  return savedResults(run, { saveTo: path, delimiter }, { ...context, allowedDirs: [dirname(path)] });
}
