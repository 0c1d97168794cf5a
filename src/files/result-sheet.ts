import type { ByteSource } from "../platform/held-folder.ts";
import { headingOf, plainHeading, type ValidColumns } from "./columns.ts";
import { NO_VALUE } from "./damage.ts";
import type { SheetRecord } from "./delimited.ts";
import type { InputFile } from "./input-file.ts";
import { type SheetHeader, type SheetRow, sheetRecords, sheetRows } from "./sheet-rows.ts";
import { inertCell, uninertCell, workbookCell } from "./sheet-writing.ts";
import type { SheetFormat, WrittenRow } from "./written-rows.ts";

export interface RowResult {
  readonly result: string;
  readonly problem?: string | undefined;
  readonly howToFix?: string | undefined;
  readonly _id?: string | undefined;
  /** What was done with the option and its Context IDs. Written if the row has no own action. */
  readonly action?: string;
  readonly contextAction?: string;
  /** Possibly wrong columns, the most likely first. The first one that the sheet has is marked. */
  readonly columns?: readonly string[];
  /** The position of the wrong cell. It is marked instead of a column. */
  readonly at?: number | undefined;
}

export interface ResultSource {
  readonly bytes: ByteSource;
  readonly file: Pick<InputFile, "format" | "encoding" | "sheet">;
  readonly shape: ValidColumns;
  readonly keyReader: (header: SheetHeader) => (cells: readonly string[]) => string | undefined;
  /**
   * Returns the result of a row; undefined if the row is omitted. `ownerLine` is the line of the first row of the
   * item.
   */
  readonly resultOf: (row: SheetRow, ownerLine: number, header: SheetHeader) => RowResult | undefined;
  readonly columns: readonly ResultColumn[];
}

/** The headings of the result columns. An existing column with one of them is reused. */
const COLUMNS = {
  _id: [headingOf("_id")],
  action: [headingOf("action")],
  op: [headingOf("op")],
  result: ["Result", "status"],
  problem: ["Problem", "reason"],
  howToFix: ["How to fix"],
} as const;
export type ResultColumn = keyof typeof COLUMNS;

export const RESULT_COLUMNS: readonly ResultColumn[] = ["result", "problem", "howToFix"];
export const OPTION_RESULT_COLUMNS: readonly ResultColumn[] = ["_id", "action", "op", ...RESULT_COLUMNS];

/** Yields the caller's rows with results; other rows stay unchanged. Throws a FileError. */
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
      // A workbook does not store empty rows, so they are added here.
      for (; form.format === "xlsx" && written < record.line - 1 - omitted; written += 1) yield { cells: [] };
      const isHead = record.line === writer.header.line;
      let shown = isHead ? writer.head() : undefined;
      if (row !== undefined && row.line === record.line) {
        shown = writer.row(row);
        row = await next();
      } else if (!isHead) shown = writer.other(record);
      if (shown === undefined) omitted += 1;
      else {
        written += 1;
        yield shown;
      }
    }
  }
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
      at.set(column, found >= 0 ? found : width);
      if (found < 0) width += 1;
    }
    this.#at = at;
    this.#width = width;
  }

  head(): WrittenRow {
    const cells = Array.from({ length: this.#width }, (_, at) => this.header.cells[at] ?? "");
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
    put("_id", found._id, true);
    put("action", found.action, true);
    put("op", found.contextAction, true);
    put("result", found.result);
    put("problem", found.problem ?? "");
    put("howToFix", found.howToFix ?? "");
    // The row has cells to the right of the header, which are its problem.
    const beyond = row.raw.slice(own).map((cell) => this.#own(cell));
    if (beyond.some((cell) => cell !== "")) cells.push(...beyond);
    const { problem, howToFix } = found;
    if (problem === undefined) return { cells };
    const column = found.at ?? this.#marked(found.columns ?? []);
    return { cells, marks: [{ column, comment: howToFix === undefined ? problem : `${problem}\n${howToFix}` }] };
  }

  /** Returns the position of the first of `columns` that the sheet has, otherwise that of "Problem". */
  #marked(columns: readonly string[]): number {
    const found = columns.map((column) => this.header.at(column)).find((at) => at >= 0);
    return found ?? this.#at.get("problem") ?? 0;
  }

  /**
   * Returns a cell of the caller's sheet. In a text file, a formula gets an apostrophe, so that spreadsheets do not
   * run it.
   */
  #own(cell: string): string {
    if (cell === NO_VALUE) return "";
    const isText = this.#form.format === "csv" && !NUMBER.test(cell);
    return isText ? inertCell(uninertCell(cell)) : cell;
  }
}

const NUMBER = /^[+-]?[\d.,]+%?$/;
