import { FileError } from "../platform/files.ts";
import type { ByteSource } from "../platform/held-folder.ts";
import { type Header, plainHeading, type ValidColumns } from "./columns.ts";
import { composedHangul, type TextCells } from "./damage.ts";
import { type CellPlace, type Delimited, DelimitedReader, QUOTES, QuoteFault, type SheetRecord } from "./delimited.ts";
import {
  checkHeader,
  checkNotTransposed,
  columnCount,
  HEADER_WITHIN,
  headerOfTwo,
  headerReader,
  headingTest,
  isHintRow,
  isWhole,
  listed,
  positionOf,
} from "./headers.ts";
import type { Encoding, InputFile, SheetForm } from "./input-file.ts";
import { textOf } from "./text.ts";
import { isNumber, type RowKind, TotalRows } from "./total-rows.ts";
import { uninertCell } from "./written-rows.ts";

export interface SheetHeader extends Header {
  readonly line: number;
  readonly cells: readonly string[];
  readonly above: number;
}

export interface SheetRow {
  readonly line: number;
  /**
   * The cells as they are read: empty cells are filled, Hangul is composed, apostrophes before formulas and spaces
   * around names are removed, and numbered columns of Context IDs are joined.
   */
  readonly cells: readonly string[];
  /** The cells as they are in the file, except that empty cells may have been filled. */
  readonly raw: readonly string[];
  readonly places?: readonly CellPlace[];
  readonly asText?: TextCells;
  /** Whether the row has no option, so that it belongs to the one above. */
  readonly isContinued: boolean;
  /** How many empty rows were skipped before this row. For the last row, those after it count as well. Absent for 0. */
  readonly skipped?: number;
}

type SheetNotes = ReturnType<typeof noNotes>;

export interface SkippedLines {
  readonly subtotals: number[];
  readonly hints: number[];
}

export function noNotes() {
  return {
    filled: 0,
    composed: 0,
    repeated: 0,
    titles: 0,
    notTotal: 0,
    apart: 0,
    template: 0,
    trimmed: 0,
    hidden: 0,
    beyond: 0,
    lineBreaks: 0,
  };
}

export interface SheetReading {
  readonly bytes: ByteSource;
  readonly file: Pick<InputFile, "format" | "encoding" | "sheet" | "seen">;
  readonly shape: ValidColumns;
  readonly withPlaces?: boolean;
  readonly maxBytes?: number | undefined;
  readonly notes?: SheetNotes;
  /**
   * Collects the lines of rows to skip, while the form of a sheet is detected. Absent: the lines are already stored
   * with the file, and these rows are skipped.
   */
  readonly skipped?: SkippedLines;
  readonly records?: AsyncIterable<readonly SheetRecord[]>;
}

/** Yields the data rows below the header, which is found by its required columns. Throws a FileError. */
export async function* sheetRows(
  reading: SheetReading,
  onHeader: (header: SheetHeader) => void,
): AsyncGenerator<readonly SheetRow[]> {
  const { shape, file, notes, records = sheetRecords(reading) } = reading;
  const read = headerReader(shape, file.sheet?.columns);
  const above: SheetRecord[] = [];
  const firsts: string[] = [];
  let rows: RowReader | undefined;
  let head: SheetRecord | undefined;
  const begin = (found: SheetRecord, before: readonly SheetRecord[]): RowReader => {
    const { line, cells } = found;
    const header = { ...read(cells), line, cells, above: before.filter((one) => !isBlank(one)).length };
    checkHeader(header, header, shape);
    onHeader(header);
    return new RowReader(header, reading);
  };
  /**
   * Called if none of the first rows is a header. Reads the row that is most similar to a header as the header. This
   * throws an error that names the missing columns.
   */
  const beginAnyhow = (): RowReader => {
    const filled = above.filter((one) => !isBlank(one));
    const [first] = filled;
    if (first === undefined) {
      throw new FileError(
        "the file is empty",
        `Begin with a row of headings. Valid columns: ${shape.columns.join(", ")}.`,
      );
    }
    const rated = filled.map((row) => ({ row, rank: likeness(row, read) }));
    const best = rated.reduce((one, other) => (other.rank > one.rank ? other : one)).row;
    return begin(best, above.slice(0, above.indexOf(best)));
  };
  for await (const batch of records) {
    const ready: SheetRow[] = [];
    for (const record of batch) {
      if (firsts.length <= HEADER_WITHIN && !isBlank(record)) firsts.push(record.cells[0] ?? "");
      if (notes !== undefined && file.format === "csv") notes.lineBreaks += lineBreaksIn(record);
      const isHead = rows === undefined && !isBlank(record) && isWhole(read(record.cells), shape);
      const upper = rows === undefined && shape.isStrict !== true ? (head ?? above.at(-1)) : undefined;
      const isBelow = upper !== undefined && (file.format !== "xlsx" || record.line === upper.line + 1);
      const both = isBelow ? headerOfTwo(upper.cells, record.cells, read, shape) : undefined;
      if (both !== undefined) {
        if (head === undefined) above.pop();
        head = { ...record, cells: both };
      } else if (isHead && (head === undefined || columnCount(read(record.cells)) > columnCount(read(head.cells)))) {
        // This row is a header with more columns, so the one before is only a title.
        if (head !== undefined) above.push(head);
        head = record;
      } else if (head !== undefined) {
        rows ??= begin(head, above);
        rows.take(record, ready);
      } else if (rows !== undefined) rows.take(record, ready);
      else if (above.push(record) >= HEADER_WITHIN) rows = beginAnyhow();
    }
    if (ready.length > 0) yield ready;
  }
  if (firsts.length <= HEADER_WITHIN) checkNotTransposed(firsts, head && read(head.cells), read, shape);
  rows ??= head === undefined ? beginAnyhow() : begin(head, above);
  yield rows.end();
}

/** Yields all records except `sep=;`, including empty ones and those above the header. Throws a FileError. */
export async function* sheetRecords({
  bytes,
  file,
  withPlaces = false,
  maxBytes,
}: Pick<SheetReading, "bytes" | "file" | "withPlaces" | "maxBytes">): AsyncGenerator<readonly SheetRecord[]> {
  if (file.format === "xlsx" && (await isArchive(bytes))) {
    const { workbookRecords } = await import("./xlsx/workbook.ts");
    yield* workbookRecords(bytes, file.sheet?.sheet);
    return;
  }
  const options = { delimiter: file.sheet?.delimiter ?? ",", withPlaces, maxBytes };
  let isFirst = true;
  for await (const records of textRecords(bytes, file.encoding, options)) {
    const [first] = records;
    yield isFirst && first !== undefined && isSepLine(first.cells) ? records.slice(1) : records;
    isFirst &&= first === undefined;
  }
}

/** Yields the records of a text in batches. Throws a FileError if a cell in quotation marks is invalid. */
async function* textRecords(
  bytes: ByteSource,
  encoding: Encoding,
  options: Delimited,
): AsyncGenerator<readonly SheetRecord[]> {
  const reader = new DelimitedReader(options);
  try {
    for await (const text of textOf(bytes, encoding)) yield reader.take(text);
    yield reader.end();
  } catch (thrown) {
    if (!(thrown instanceof QuoteFault)) throw thrown;
    throw new FileError(`${thrown.message} (line ${thrown.line} of the file)`, QUOTES, { cause: thrown });
  }
}

export async function isArchive(bytes: ByteSource): Promise<boolean> {
  for await (const [first, second, third] of bytes()) return first === 0x50 && second === 0x4b && third === 0x03;
  return false;
}

/** Returns whether a record is the line `sep=;`, which tells Excel the delimiter of a CSV file. */
function isSepLine([first = "", ...others]: readonly string[]): boolean {
  return /^sep=.?$/i.test(first.trim()) && others.every((cell) => cell === "");
}

/** Returns how similar a row is to a header: by its known columns, then by its texts that are not numbers. */
function likeness({ cells }: SheetRecord, read: (cells: readonly string[]) => Header): number {
  const texts = cells.filter((cell) => cell.trim() !== "" && !isNumber(cell.trim()));
  return columnCount(read(cells)) * LARGEST_HEADER + Math.min(texts.length, LARGEST_HEADER - 1);
}

const LARGEST_HEADER = 10_000;

function lineBreaksIn({ cells }: SheetRecord): number {
  return cells.reduce((sum, cell) => (cell.includes("\n") ? sum + cell.split("\n").length - 1 : sum), 0);
}

export function isBlank({ cells }: SheetRecord): boolean {
  return cells.every((cell) => cell.trim() === "");
}

/**
 * Columns that are filled from the row above where they are empty, if a row has no option ID and no name: it continues
 * the option above with more Context IDs.
 */
const CONTINUED = ["_id", "name", "op", "action"];
/** Columns that templates fill even in rows without an option. */
const PREFILLED = ["action", "op", "type", "exposeChildren", "targeting"];
const NAMES = ["name", "parentName"];
const HEADINGS_SHOWN = 12;
/** Matches a text of at least three words. */
const SENTENCE = /\S\s+\S+\s+\S/;
/** A text below a table counts as a note only if the table has at least this many rows. */
const FEWEST_FULL = 2;

/**
 * Reads rows. Each row is held back until the next one is read, because some rows are recognized as totals only if no
 * row follows.
 */
class RowReader {
  readonly #header: SheetHeader;
  readonly #notes: SheetNotes;
  readonly #headings: (cells: readonly string[]) => Header;
  readonly #isHeading: (cell: string, plain: string) => boolean;
  readonly #shape: ValidColumns;
  readonly #isStrict: boolean;
  readonly #filled: readonly number[];
  readonly #continued: readonly number[];
  readonly #read: readonly boolean[];
  readonly #names: readonly boolean[];
  /** The indexes of the columns that people fill. If all of them are empty, the row has no option. */
  readonly #about: readonly number[];
  /** The indexes of columns without a heading between the others. Their cells are ignored. */
  readonly #unnamed: readonly number[];
  readonly #width: number;
  /** The index of the first column that is read, and its heading. */
  readonly #first: { readonly at: number; readonly plain: string };
  /** Recognizes rows with totals. Undefined if the lines to skip are stored with the file, or if `#isStrict` is set. */
  readonly #totals: TotalRows | undefined;
  readonly #skipped: ReadonlySet<number>;
  readonly #found: SkippedLines | undefined;
  /** Rows that have only a sentence, after an empty row or totals. They are notes if no other row follows. */
  readonly #apart: SheetRecord[] = [];
  /** How many options there are. NaN if one has a single filled cell, because then no row with one cell is a note. */
  #full = 0;
  #held: SheetRow | undefined;
  #heldKind: RowKind = "option";
  #before: readonly string[] = [];
  #textsBefore: TextCells;
  #blank = 0;
  /**
   * Whether the last option is followed by an empty row or a row with totals. A workbook may omit empty rows, so a
   * missing line number counts as an empty row, too.
   */
  #isApart = false;
  #line: number;
  readonly #isWorkbook: boolean;

  constructor(header: SheetHeader, { file, shape, notes, skipped }: SheetReading) {
    const { fillDown = [], columns, subtotals = [], hints = [] }: SheetForm = file.sheet ?? {};
    this.#header = header;
    this.#line = header.line;
    this.#isWorkbook = file.format === "xlsx";
    this.#notes = notes ?? noNotes();
    this.#headings = headerReader(shape, columns);
    this.#isHeading = headingTest(shape, columns);
    this.#shape = shape;
    this.#isStrict = shape.isStrict === true;
    this.#filled = fillDown.map((column) => positionOf(column, header));
    this.#continued = header.at("contextId") < 0 ? [] : CONTINUED.map(header.at).filter((at) => at >= 0);
    this.#read = header.names.map((name) => name !== "");
    this.#names = header.names.map((name) => !this.#isStrict && NAMES.includes(name));
    this.#about = header.names.flatMap((name, at) => (name === "" || PREFILLED.includes(name) ? [] : [at]));
    this.#unnamed = header.cells.flatMap((cell, at) => (cell.trim() === "" ? [at] : []));
    this.#width = file.format === "xlsx" && !this.#isStrict ? header.cells.length : Number.POSITIVE_INFINITY;
    const first = this.#read.indexOf(true);
    this.#first = { at: first, plain: plainHeading(header.cells[first] ?? "") };
    const ids = [header.at("_id"), ...header.contextsAt].filter((at) => at >= 0);
    this.#totals = skipped === undefined || this.#isStrict ? undefined : new TotalRows(this.#read, ids);
    this.#skipped = new Set(skipped === undefined ? [...subtotals, ...hints] : []);
    this.#found = skipped;
  }

  take(shown: SheetRecord, ready: SheetRow[]): void {
    const record = this.#withStored(shown);
    if (this.#isWorkbook && record.line > this.#line + 1) this.#isApart = true;
    this.#line = record.line;
    if (isBlank(record)) {
      this.#blank += 1;
      this.#isApart = true;
      return;
    }
    // The plain form is computed once, because it would otherwise take a sixth of the time of an import.
    const plain = plainHeading(record.cells[this.#first.at] ?? "");
    const isHeader = plain === this.#first.plain && this.#hasHeadings(record);
    this.#checkNoOtherHeader(record, plain, isHeader);
    if (isHeader) {
      this.#notes.repeated += 1;
      this.#dropTitle();
      return;
    }
    const { line } = record;
    if (this.#skipped.has(line)) return;
    if (this.#held === undefined && this.#found !== undefined && isHintRow(record.cells, this.#header)) {
      this.#found.hints.push(line);
      return;
    }
    const kind = this.#totals?.take(record, this.#isApart) ?? "option";
    if (kind === "total") {
      this.#found?.subtotals.push(line);
      this.#isApart = true;
      return;
    }
    if (!this.#isStrict && this.#about.every((at) => (record.cells[at] ?? "").trim() === "")) {
      this.#notes.template += 1;
      return;
    }
    if (this.#isAlone(record) && SENTENCE.test(record.cells[this.#header.at("name")] ?? "")) {
      this.#apart.push(record);
      return;
    }
    for (const one of this.#apart.splice(0)) this.#accept(one, "option", ready);
    this.#accept(record, kind, ready);
  }

  /** Returns whether a row has only a name, after an empty row or totals, and the rows above have more cells. */
  #isAlone({ cells }: SheetRecord): boolean {
    if (!this.#isApart || !(this.#full >= FEWEST_FULL)) return false;
    const name = cells[this.#header.at("name")] ?? "";
    return name.trim() !== "" && cells.every((cell) => cell === name || cell.trim() === "");
  }

  #accept(record: SheetRecord, kind: RowKind, ready: SheetRow[]): void {
    const { line, places } = record;
    if (this.#isAlone(record)) this.#notes.apart ||= line;
    if (this.#found !== undefined) {
      this.#full += record.cells.filter((cell) => cell.trim() !== "").length > 1 ? 1 : Number.NaN;
    }
    if (record.isHidden === true) this.#notes.hidden += 1;
    this.#notes.beyond += this.#unnamed.filter((at) => (record.cells[at] ?? "").trim() !== "").length;
    if (record.cells.length > this.#width) {
      this.#notes.beyond += record.cells.slice(this.#width).filter((cell) => cell.trim() !== "").length;
    }
    if (this.#held !== undefined) ready.push(this.#held);
    if (this.#heldKind === "totalIfLast") this.#notes.notTotal ||= this.#held?.line ?? 0;
    if (kind === "notTotal") this.#notes.notTotal ||= line;
    const raw = this.#filledDown(record.cells);
    const isContinued = this.#continued.some((at) => raw[at] !== record.cells[at] && !this.#filled.includes(at));
    const asText = this.#textsIn(record, raw);
    const cells = this.#joined(raw.slice(0, this.#width).map((cell, at) => this.#meant(cell, at)));
    const row = { line, raw, cells, isContinued, ...(places && { places }), ...(asText && { asText }) };
    this.#held = this.#blank === 0 ? row : { ...row, skipped: this.#blank };
    this.#heldKind = kind;
    this.#before = raw;
    this.#textsBefore = asText;
    this.#blank = 0;
    this.#isApart = false;
  }

  #withStored(record: SheetRecord): SheetRecord {
    const { stored } = record;
    const { isNumeric } = this.#shape;
    if (stored === undefined || isNumeric === undefined) return record;
    const { names } = this.#header;
    return { ...record, cells: record.cells.map((cell, at) => (isNumeric(names[at] ?? "") && stored.get(at)) || cell) };
  }

  end(): readonly SheetRow[] {
    this.#found?.hints.push(...this.#apart.map(({ line }) => line));
    const held = this.#held;
    if (held === undefined) return [];
    if (this.#heldKind === "totalIfLast") {
      this.#found?.subtotals.push(held.line);
      return [];
    }
    return [this.#blank === 0 ? held : { ...held, skipped: (held.skipped ?? 0) + this.#blank }];
  }

  /**
   * Returns whether a row has several headings and nothing else in the columns that are read. One heading is not
   * enough, because an option may be named like its column.
   */
  #hasHeadings({ cells }: SheetRecord): boolean {
    const filled = cells.flatMap((cell, at) => (cell.trim() !== "" && this.#read[at] === true ? [at] : []));
    const { names } = this.#headings(cells);
    return filled.length > 1 && filled.every((at) => names[at] !== "");
  }

  /** Drops the row above a repeated header if it is only a title: a single filled cell, after an empty row. */
  #dropTitle(): void {
    if (this.#apart.length === 1) {
      this.#apart.length = 0;
      this.#notes.titles += 1;
      return;
    }
    const { skipped, raw = [] } = this.#held ?? {};
    if (skipped === undefined || raw.filter((cell) => cell.trim() !== "").length !== 1) return;
    this.#notes.titles += 1;
    this.#blank += skipped;
    this.#held = undefined;
    this.#before = [];
  }

  /** Throws a FileError if a row is the header of another table, whose rows would be read with the wrong columns. */
  #checkNoOtherHeader(record: SheetRecord, plain: string, isHeader: boolean): void {
    const { line, cells } = record;
    // Almost all rows need no further check. Comparing all their cells would take half of an import's time.
    const first = cells.find((cell) => cell.trim() !== "") ?? "";
    const plainFirst = first === cells[this.#first.at] ? plain : plainHeading(first);
    if (!this.#isApart && !isHeader && !this.#isHeading(first, plainFirst)) return;
    const found = this.#headings(cells);
    const filled = cells.flatMap((cell, at) => (cell.trim() === "" ? [] : [at]));
    const isClear = this.#isApart || filled.every((at) => found.names[at] !== "");
    const isOther = isClear && columnCount(found) > 1 && isWhole(found, this.#shape);
    if (!isOther && !isHeader) return;
    // The second line of a header may name a column by another heading, such as "Context IDs" (`contexts`) below
    // "Context" (`contextId`). So these two count as the same column.
    const same = (name = ""): string => (name === "contextId" ? "contexts" : name);
    if (filled.every((at) => same(found.names[at]) === same(this.#header.names[at]))) return;
    const shown = filled.slice(0, HEADINGS_SHOWN).map((at) => (cells[at] ?? "").trim());
    throw new FileError(
      `line ${line} of the file is the header of another table (${listed(shown)}), with other columns than the header on line ${this.#header.line}; nothing was sent`,
      "Save each table as a file or a sheet of its own, with the same columns in all its rows.",
    );
  }

  #filledDown(cells: readonly string[]): readonly string[] {
    const filled = [...cells];
    for (const at of this.#filled) {
      const before = this.#before[at] ?? "";
      if ((filled[at] ?? "").trim() !== "" || before.trim() === "") continue;
      filled[at] = before;
      this.#notes.filled += 1;
    }
    const [id, name] = [this.#header.at("_id"), this.#header.at("name")];
    const isUnnamed = [id, name].every((at) => at < 0 || (filled[at] ?? "").trim() === "");
    const isContinued = isUnnamed && this.#header.contextsAt.some((at) => (filled[at] ?? "").trim() !== "");
    if (this.#continued.length === 0 || !isContinued || this.#before.length === 0) return filled;
    for (const at of this.#continued) if ((filled[at] ?? "").trim() === "") filled[at] = this.#before[at] ?? "";
    return filled;
  }

  /** Returns the indexes of cells formatted as text. A cell that was filled from above has the format of that cell. */
  #textsIn({ cells, asText }: SheetRecord, raw: readonly string[]): TextCells {
    const filled = [...(this.#textsBefore ?? [])].filter((at) => raw[at] !== (cells[at] ?? ""));
    return filled.length === 0 ? asText : new Set([...(asText ?? []), ...filled]);
  }

  /** Joins the Context IDs of numbered columns in the first of these columns, with line breaks between them. */
  #joined(cells: readonly string[]): readonly string[] {
    const [first = 0, ...further] = this.#header.contextsAt;
    if (further.every((at) => (cells[at] ?? "").trim() === "")) return cells;
    const filled = [first, ...further].map((at) => cells[at] ?? "").filter((cell) => cell.trim() !== "");
    return cells.with(first, filled.join("\n"));
  }

  #meant(cell: string, at: number): string {
    // Removes the apostrophe that this program wrote before a formula to keep spreadsheets from running the formula.
    const text = uninertCell(cell);
    if (this.#isStrict || this.#read[at] !== true) return text;
    const composed = composedHangul(text);
    if (composed !== text) this.#notes.composed += 1;
    if (this.#names[at] !== true) return composed;
    const trimmed = composed.trim();
    if (trimmed !== composed && trimmed !== "") this.#notes.trimmed += 1;
    return trimmed;
  }
}

/** A delimiter that no text contains, so that a whole line is one cell. */
const NO_DELIMITER = "\uFFFF";

/**
 * Yields each line of a text file as a record with one cell, or the rows of a workbook's first visible
 * sheet. Throws a FileError.
 */
export async function* listRecords(
  bytes: ByteSource,
  encoding: Encoding,
  maxBytes: number | undefined,
): AsyncGenerator<readonly SheetRecord[]> {
  if (await isArchive(bytes)) {
    const { workbookRecords } = await import("./xlsx/workbook.ts");
    yield* workbookRecords(bytes, undefined);
  } else yield* textRecords(bytes, encoding, { delimiter: NO_DELIMITER, maxBytes });
}
