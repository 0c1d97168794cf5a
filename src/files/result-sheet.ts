import { addTo } from "../platform/by-key.ts";
import { jsonFault } from "../platform/exact-json.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { isJsonObject, parseJson } from "../platform/json.ts";
import type { Reason } from "../runs/outcome.ts";
import type { ReportedState } from "../runs/report.ts";
import { HEADINGS, headingOf, plainHeading, REASON_COLUMN, type ValidColumns } from "./columns.ts";
import { NO_VALUE } from "./damage.ts";
import { BYTE_ORDER_MARK, csvLine, type SheetRecord } from "./delimited.ts";
import type { InputFile } from "./input-file.ts";
import { type FailedObject, type FileRow, type RestRow, type RowContent, type RowShape, rowsOf } from "./rows.ts";
import { type SheetHeader, type SheetRow, sheetRecords, sheetRows } from "./sheet-rows.ts";
import { inertCell, inertOwnCell, type SheetFormat, type WrittenRow, workbookCell } from "./written-rows.ts";

export interface RowResult {
  readonly result: string;
  readonly problem?: string | undefined;
  readonly howToFix?: string | undefined;
  readonly _id?: string | undefined;
  /** Whether the row created an option. An ID that the row already had then belongs to a deleted option. */
  readonly isCreated?: boolean;
  /**
   * What was done with the option (`action`) and its Context IDs (`contextAction`). These are written only if the
   * caller's row names no action.
   */
  readonly action?: string;
  readonly contextAction?: string;
  /**
   * The columns that may have caused the problem, the most likely one first. The first of them that the sheet has is
   * marked.
   */
  readonly columns?: readonly string[];
  /** The index of the wrong cell, if it is known. Then this cell is marked. */
  readonly at?: number | undefined;
  /** Whether the row was not applied because its group's row had failed. */
  readonly needsFailed?: boolean;
}

export interface ResultSource {
  readonly bytes: ByteSource;
  readonly file: Pick<InputFile, "format" | "encoding" | "sheet">;
  readonly shape: ValidColumns;
  readonly keyReader: (header: SheetHeader) => (cells: readonly string[]) => string | undefined;
  /**
   * Returns the result of a row; undefined if the row must be omitted. `ownerLine` is the first line of the item to
   * which the row belongs.
   */
  readonly resultOf: (row: SheetRow, ownerLine: number, header: SheetHeader) => RowResult | undefined;
  readonly columns: readonly ResultColumn[];
  /**
   * Whether only some rows are wanted, such as the failed ones. Then rows below the header that are no items, such as
   * totals, are omitted, too.
   */
  readonly isPart?: boolean;
}

/** The headings of the columns for the results. If the sheet already has one of them, its column is used. */
const COLUMNS = {
  _id: [headingOf("_id")],
  action: [headingOf("action")],
  op: [headingOf("op")],
  result: ["Result"],
  problem: ["Problem", "reason"],
  howToFix: ["How to fix"],
} as const;
export type ResultColumn = keyof typeof COLUMNS;

export const RESULT_COLUMNS: readonly ResultColumn[] = ["result", "problem", "howToFix"];
export const OPTION_RESULT_COLUMNS: readonly ResultColumn[] = ["_id", "action", "op", ...RESULT_COLUMNS];

/**
 * Yields the rows of the caller's sheet with their results. Rows that are no items, such as titles, get none. Throws a
 * FileError.
 */
export async function* resultRows(source: ResultSource, form: SheetFormat): AsyncGenerator<WrittenRow> {
  const { bytes, file, shape } = source;
  const writers: ResultWriter[] = [];
  const rows = sheetRows({ bytes, file, shape }, (header) => writers.push(new ResultWriter(source, header, form)));
  const next = oneByOne(rows);
  let row = await next();
  const [writer] = writers;
  if (writer === undefined) return;
  let written = 0;
  let omitted = 0;
  for await (const batch of sheetRecords({ bytes, file })) {
    for (const record of batch) {
      // A workbook does not store empty rows, so they are inserted here.
      for (; form.format === "xlsx" && written < record.line - 1 - omitted; written += 1) yield { cells: [] };
      const isHead = record.line === writer.header.line;
      let shown = isHead ? writer.head() : undefined;
      if (row !== undefined && row.line === record.line) {
        shown = writer.row(row);
        row = await next();
      } else if (!isHead && !(source.isPart && record.line > writer.header.line)) shown = writer.other(record);
      if (shown === undefined) omitted += 1;
      else {
        written += 1;
        yield shown;
      }
    }
  }
}

function isHeadingOf(column: string, heading: string): boolean {
  return [headingOf(column), column, ...(HEADINGS[column] ?? [])].map(plainHeading).includes(plainHeading(heading));
}

function oneByOne(batches: AsyncGenerator<readonly SheetRow[]>): () => Promise<SheetRow | undefined> {
  const waiting: SheetRow[] = [];
  let at = 0;
  return async () => {
    while (at >= waiting.length) {
      const batch = await batches.next();
      if (batch.done) return undefined;
      waiting.splice(0, waiting.length, ...batch.value);
      at = 0;
    }
    return waiting[at++];
  };
}

class ResultWriter {
  readonly header: SheetHeader;
  readonly #source: ResultSource;
  readonly #form: SheetFormat;
  readonly #width: number;
  readonly #at: ReadonlyMap<ResultColumn, number>;
  readonly #keyOf: (cells: readonly string[]) => string | undefined;
  readonly #owners = new Map<string, number>();

  constructor(source: ResultSource, header: SheetHeader, form: SheetFormat) {
    this.header = header;
    this.#source = source;
    this.#form = form;
    this.#keyOf = source.keyReader(header);
    const hasContexts = header.at("contexts") >= 0 || header.at("contextId") >= 0;
    const at = new Map<ResultColumn, number>();
    let width = header.cells.length;
    for (const column of source.columns) {
      if (column === "op" && !hasContexts) continue;
      const own = header.at(column);
      const names = COLUMNS[column].map(plainHeading);
      const found = own >= 0 ? own : header.cells.findIndex((cell) => names.includes(plainHeading(cell)));
      // If the caller mapped another heading to this column, its blank cells stay blank.
      const isFilled = column === "action" || column === "op";
      if (isFilled && own >= 0 && !isHeadingOf(column, header.cells[own] ?? "")) continue;
      at.set(column, found >= 0 ? found : width);
      if (found < 0) width += 1;
    }
    this.#at = at;
    this.#width = width;
  }

  head(): WrittenRow {
    const cells = Array.from({ length: this.#width }, (_, at) => this.#own(this.header.cells[at] ?? ""));
    for (const [column, at] of this.#at) if (cells[at] === "") cells[at] = COLUMNS[column][0];
    return { cells };
  }

  other({ cells }: SheetRecord): WrittenRow {
    return { cells: cells.map((cell) => this.#own(cell)) };
  }

  row(row: SheetRow): WrittenRow | undefined {
    const key = this.#keyOf(row.cells);
    const owner = (key === undefined ? undefined : this.#owners.get(key)) ?? row.line;
    if (key !== undefined) this.#owners.set(key, owner);
    const found = this.#source.resultOf(row, owner, this.header);
    if (found === undefined) return undefined;
    const own = this.header.cells.length;
    const cells = Array.from({ length: this.#width }, (_, at) => this.#own(at < own ? (row.raw[at] ?? "") : ""));
    const put = (column: ResultColumn, text: string | undefined, isKept = false): void => {
      const at = this.#at.get(column);
      if (at === undefined || text === undefined || (isKept && (cells[at] ?? "").trim() !== "")) return;
      cells[at] = this.#form.format === "xlsx" ? workbookCell(text) : inertCell(text);
    };
    put("_id", found._id, found.isCreated !== true);
    put("action", found.action, true);
    put("op", found.contextAction, true);
    put("result", found.result);
    put("problem", found.problem ?? "");
    put("howToFix", found.howToFix ?? "");
    // Cells to the right of all headings are kept. In a text file, they are the reason why the row failed.
    const beyond = row.raw.slice(own).map((cell) => this.#own(cell));
    if (beyond.some((cell) => cell !== "")) cells.push(...beyond);
    const { problem, howToFix } = found;
    if (problem === undefined) return { cells };
    const column = found.at ?? this.#marked(found.columns ?? []);
    return { cells, marks: [{ column, comment: howToFix === undefined ? problem : `${problem}\n${howToFix}` }] };
  }

  /** Returns the index of the first of `columns` that the sheet has; if it has none, that of the column "Problem". */
  #marked(columns: readonly string[]): number {
    const found = columns.map((column) => this.header.at(column)).find((at) => at >= 0);
    return found ?? this.#at.get("problem") ?? 0;
  }

  /**
   * Returns a cell of the caller's sheet. In a text file, a formula gets an apostrophe, so that no spreadsheet runs it.
   */
  #own(cell: string): string {
    if (this.#form.format === "csv") return inertOwnCell(cell);
    return cell === NO_VALUE ? "" : cell;
  }
}

export interface Rejected {
  readonly failed: ReadonlyMap<number, readonly FailedObject[]>;
  readonly words: (reason: Reason) => string | Promise<string>;
}

/**
 * Yields the failed rows with their reasons, to be fixed and sent again. Rows of a sheet are written as CSV. Other rows
 * are written as NDJSON, with only the parts that have failed.
 */
export async function* rejectedRows<Item>(
  bytes: ByteSource,
  file: InputFile,
  shape: RowShape<Item>,
  { failed, words }: Rejected,
): AsyncGenerator<string> {
  const owners = new Map<string, number>();
  let header: readonly string[] = [];
  let hasHeader = false;
  const read = rowsOf(bytes, file, shape, ({ cells }) => {
    header = cells;
  });
  for await (const rows of read) {
    for (const row of rows) {
      const { raw, content } = row;
      const objects = failedIn(row, failed, owners);
      const [first] = objects;
      if (first === undefined) continue;
      if (typeof raw === "string") {
        for (const rest of restOf(raw, content, objects, shape)) {
          yield `${JSON.stringify({ ...rest.row, [REASON_COLUMN]: await words(rest.reason) })}\n`;
        }
        continue;
      }
      const place = header.findIndex((cell) => cell.trim() === REASON_COLUMN);
      if (!hasHeader)
        yield BYTE_ORDER_MARK + csvLine((place < 0 ? [...header, REASON_COLUMN] : header).map(inertOwnCell));
      hasHeader = true;
      yield csvLine(withReason(raw, header.length, place, await words(first.reason)));
    }
  }
}

function failedIn<Item>(
  { index, content }: FileRow<Item>,
  failed: Rejected["failed"],
  owners: Map<string, number>,
): readonly FailedObject[] {
  if ("reason" in content) return [{ about: { index }, reason: content.reason }];
  const { key } = content;
  const owner = (key === undefined ? undefined : owners.get(key)) ?? index;
  if (key !== undefined) owners.set(key, owner);
  return failed.get(index) ?? failed.get(owner) ?? [];
}

function restOf<Item>(
  text: string,
  content: RowContent<Item>,
  failed: readonly FailedObject[],
  shape: RowShape<Item>,
): readonly RestRow[] {
  if ("item" in content) return shape.rest(content.item, failed);
  const value = parseJson(text);
  const isWhole = isJsonObject(value) && jsonFault(text, value) === undefined;
  return failed.map(({ reason }) => ({ row: isWhole ? value : { row: text }, reason }));
}

function withReason(cells: readonly string[], columns: number, place: number, words: string): readonly string[] {
  const row = Array.from({ length: columns }, (_, at) => inertOwnCell(cells[at] ?? ""));
  return place < 0 ? [...row, inertCell(words)] : row.with(place, inertCell(words));
}

/**
 * Returns the failed objects of a run by the index of their input row. Includes objects that were not sent because
 * another one had failed.
 */
export function failedRows(state: ReportedState): ReadonlyMap<number, readonly FailedObject[]> {
  const failed = new Map<number, FailedObject[]>();
  const counts = state.counts();
  if (counts.failed + counts.notApplied === 0) return failed;
  for (let object = 0; object < state.objects.length; object += 1) {
    const reason = state.reason(object);
    const standing = state.standing(object);
    if (reason === undefined) continue;
    if (standing !== "failed" && (standing !== "notApplied" || reason.code !== "NEEDS_FAILED")) continue;
    const about = state.objects.at(object);
    if (about === undefined) continue;
    addTo(failed, about.index, { about, reason });
  }
  return failed;
}
