import { formatValue } from "hucre";
import { groupedBy } from "../../platform/by-key.ts";
import { FileError } from "../../platform/files.ts";
import { mayBeConverted, NO_VALUE } from "../damage.ts";
import { type SheetRecord, SUM_FORMULA } from "../delimited.ts";
import { type Archive, readXml, unescaped } from "./archive.ts";

export interface NumberFormat {
  readonly code: string;
  readonly isDate: boolean;
}

export interface SheetParts {
  readonly strings: readonly string[];
  /** The number format of each cell style. Undefined: numbers are read as they are stored. */
  readonly formats: readonly (NumberFormat | undefined)[];
  /** For each cell style, whether it formats cells as text. */
  readonly areTexts: readonly boolean[];
  readonly is1904: boolean;
}

const MEGABYTE = 1_048_576;
/** The largest unpacked sheet, in bytes. It is unpacked while it is read, so that only some rows are in memory. */
const MAX_SHEET_BYTES = 256 * MEGABYTE;
const MAX_ROWS = 1_048_576;
const MAX_COLUMNS = 512;
const MAX_CELLS = 5_000_000;
/**
 * The most characters of all cells together. Even a small file can exceed this, if many cells refer to the same long
 * text.
 */
const MAX_CHARACTERS = 256 * MEGABYTE;
const MAX_MERGED_RANGES = 100_000;

/**
 * A merged range of several rows: the index of its first column, and the numbers of its first and last row. The value
 * of its first cell is repeated in this column of the other rows.
 */
interface MergedRange {
  readonly column: number;
  readonly from: number;
  readonly to: number;
}

/**
 * Yields the rows of a sheet with texts like those that a spreadsheet shows (see `readFormat`). A cell that is merged
 * across rows has its text in each of them. One that is merged across columns has it only in the first. Throws a
 * FileError.
 */
export async function* readSheet(
  archive: Archive,
  part: string,
  parts: SheetParts,
): AsyncGenerator<readonly SheetRecord[]> {
  const reader = new RowReader(parts, await mergedRanges(archive.part(part, MAX_SHEET_BYTES)));
  for await (const _ of readXml(archive.part(part, MAX_SHEET_BYTES), reader)) {
    const rows = reader.taken();
    if (rows.length > 0) yield rows;
  }
  yield reader.taken();
}

/** Returns the ranges that are merged across rows. A file has them after its rows, so it must be read twice. */
async function mergedRanges(bytes: AsyncIterable<Uint8Array>): Promise<readonly MergedRange[]> {
  const ranges: MergedRange[] = [];
  let before = Buffer.alloc(0);
  for await (const chunk of bytes) {
    const piece = Buffer.concat([before, chunk]);
    const from = piece.indexOf("mergeCell");
    if (from < 0) {
      before = Buffer.from(piece.subarray(-LONGEST_REFERENCE));
      continue;
    }
    const text = piece.toString("latin1");
    let end = 0;
    for (const found of text.matchAll(/<(?:\w+:)?mergeCell\s(?:[^<>]*\s)?ref="([A-Z]+)(\d+):[A-Z]+(\d+)"/g)) {
      const [whole, column = "", first, last] = found;
      end = found.index + whole.length;
      const range = { column: columnOf(column), from: Number(first), to: Number(last) };
      if (range.to <= range.from) continue;
      if (ranges.push(range) > MAX_MERGED_RANGES) {
        throw new FileError("the sheet has more than 100,000 merged ranges", "Unmerge cells, or split the sheet.");
      }
    }
    before = Buffer.from(piece.subarray(Math.max(end, piece.length - LONGEST_REFERENCE)));
  }
  return ranges;
}

const LONGEST_REFERENCE = 256;

export function columnOf(letters: string): number {
  let column = 0;
  for (const letter of letters) column = column * 26 + letter.charCodeAt(0) - 64;
  return column - 1;
}

class RowReader {
  readonly #parts: SheetParts;
  readonly #merged: ReadonlyMap<number, readonly MergedRange[]>;
  readonly #shown = new Map<number, { readonly to: number; readonly text: string; readonly isText: boolean }>();
  #rows: SheetRecord[] = [];
  #line = 0;
  #cells: string[] = [];
  #column = 0;
  #count = 0;
  #characters = 0;
  #type = "";
  #style = -1;
  #value = "";
  #hasValue = false;
  #hasFormula = false;
  #isText = false;
  #isPhonetic = false;
  #formula: string | undefined;
  #sums = new Set<number>();
  #isHidden = false;
  #asText = new Set<number>();
  #stored = new Map<number, string>();

  constructor(parts: SheetParts, merged: readonly MergedRange[]) {
    this.#parts = parts;
    this.#merged = groupedBy(merged, ({ from }) => from);
  }

  taken(): readonly SheetRecord[] {
    const rows = this.#rows;
    this.#rows = [];
    return rows;
  }

  readonly open = (name: string, attribute: (name: string) => string | undefined): void => {
    if (name === "row") {
      this.#line = Math.max(this.#line + 1, Number(attribute("r") ?? 0) || 0);
      this.#cells = [];
      this.#column = 0;
      this.#sums = new Set();
      this.#asText = new Set();
      this.#stored = new Map();
      this.#isHidden = isTrue(attribute("hidden"));
    } else if (name === "c") {
      const letters = /^[A-Z]{1,3}/.exec(attribute("r") ?? "")?.[0];
      if (letters !== undefined) this.#column = columnOf(letters);
      this.#type = attribute("t") ?? "n";
      this.#style = Number(attribute("s") ?? -1);
      this.#value = "";
      this.#hasValue = false;
      this.#hasFormula = false;
    } else if (name === "v" || (name === "t" && !this.#isPhonetic)) {
      this.#isText = true;
      this.#hasValue = true;
    } else if (name === "rPh") this.#isPhonetic = true;
    else if (name === "f") {
      this.#hasFormula = true;
      this.#formula = "";
    }
  };

  readonly text = (piece: string): void => {
    if (this.#isText) this.#value += piece;
    else if (this.#formula !== undefined && this.#formula.length < LONGEST_REFERENCE) this.#formula += piece;
  };

  readonly close = (name: string): void => {
    if (name === "v" || name === "t") this.#isText = false;
    else if (name === "f") {
      if (SUM_FORMULA.test(`=${this.#formula ?? ""}`)) this.#sums.add(this.#column);
      this.#formula = undefined;
    } else if (name === "rPh") this.#isPhonetic = false;
    else if (name === "c") this.#endCell();
    else if (name === "row") this.#endRow();
  };

  #endCell(): void {
    const text = this.#shownText();
    if (text !== "") {
      if (this.#column >= MAX_COLUMNS) {
        throw new FileError(
          `row ${this.#line} of the sheet has a filled cell beyond column ${MAX_COLUMNS}`,
          "Delete the columns that are not needed, or save the sheet as CSV UTF-8.",
        );
      }
      this.#countCell(text);
      while (this.#cells.length < this.#column) this.#cells.push("");
      this.#cells[this.#column] = text;
      const isText = TEXT_TYPES.has(this.#type) && this.#parts.areTexts[this.#style] === true;
      if (isText && mayBeConverted(text)) this.#asText.add(this.#column);
    }
    this.#column += 1;
  }

  /** Counts a filled cell. Throws a FileError if a sheet has too many cells or too much text. */
  #countCell(text: string): void {
    this.#count += 1;
    this.#characters += text.length;
    if (this.#count > MAX_CELLS) throw tooLarge("5,000,000 filled cells");
    if (this.#characters > MAX_CHARACTERS) throw tooLarge(`${MAX_CHARACTERS / MEGABYTE} MB of text`);
  }

  #endRow(): void {
    if (this.#line > MAX_ROWS) throw tooLarge("1,048,576 rows");
    for (const [column, { to, text, isText }] of this.#shown) {
      if (to < this.#line) this.#shown.delete(column);
      else if ((this.#cells[column] ?? "") === "") {
        this.#countCell(text);
        while (this.#cells.length < column) this.#cells.push("");
        this.#cells[column] = text;
        if (isText) this.#asText.add(column);
      }
    }
    for (const { column, to } of this.#merged.get(this.#line) ?? []) {
      const text = this.#cells[column] ?? "";
      if (text !== "") this.#shown.set(column, { to, text, isText: this.#asText.has(column) });
    }
    this.#rows.push({
      line: this.#line,
      cells: this.#cells,
      ...(this.#asText.size > 0 && { asText: this.#asText }),
      ...(this.#stored.size > 0 && { stored: this.#stored }),
      ...(this.#sums.size > 0 && { sums: this.#sums }),
      ...(this.#isHidden && { isHidden: true }),
    });
  }

  #shownText(): string {
    const value = this.#value;
    // An empty value of another type than text ("str") means that the file does not contain the result of the formula.
    if (this.#hasFormula && value === "" && this.#type !== "str") return NO_VALUE;
    if (!this.#hasValue) return this.#hasFormula ? NO_VALUE : "";
    switch (this.#type) {
      case "s":
        return this.#parts.strings[Number(value)] ?? "";
      case "str":
      case "inlineStr":
        return unescaped(value);
      case "b":
        return isTrue(value) ? "TRUE" : "FALSE";
      case "d":
        return this.#shownDate(value);
      case "n":
        return this.#shownNumber(value);
      default:
        return value;
    }
  }

  /**
   * Returns a date stored as text, such as 2026-03-04T12:30:00 ("strict" workbooks), as the cell shows it.
   */
  #shownDate(value: string): string {
    const days =
      Date.parse(/T.*[^Z]$/.test(value) ? `${value}Z` : value) / DAY_MS - (this.#parts.is1904 ? JAN_1904 : DEC_1899);
    if (Number.isNaN(days)) return value;
    const code = this.#parts.formats[this.#style]?.code ?? (Number.isInteger(days) ? "yyyy-mm-dd" : "yyyy-mm-dd h:mm");
    return formatValue(days, code, { is1904: this.#parts.is1904 }).trim();
  }

  #shownNumber(value: string): string {
    const number = Number(value);
    if (value.trim() === "" || !Number.isFinite(number)) return value;
    const format = this.#parts.formats[this.#style];
    const isRounded = Math.abs(number) >= EXACT;
    if (format !== undefined && !isRounded) {
      const shown = formatValue(number, format.code, { is1904: this.#parts.is1904 }).trim();
      if (!format.isDate && Number(shown) !== number) this.#stored.set(this.#column, plainNumber(number));
      return shown;
    }
    // Spreadsheet programs keep only fifteen digits, so a longer number has been rounded. The exponent lets `damageIn`
    // find it.
    return isRounded ? number.toExponential(14).replace("e", "E") : plainNumber(number);
  }
}

/** Returns a number with the fifteen digits that spreadsheet programs keep. */
function plainNumber(number: number): string {
  return String(Number.isInteger(number) ? number : Number(number.toPrecision(15)));
}

function tooLarge(what: string): FileError {
  return new FileError(`the sheet has more than ${what}`, "Split the sheet into several files.");
}

/** The cell types of texts. "str" is not one of them, because it is the result of a formula. */
const TEXT_TYPES: ReadonlySet<string> = new Set(["s", "inlineStr"]);
const EXACT = 1e15;

const DAY_MS = 86_400_000;
/** The first day of a workbook's calendar, in days since 1970: in 1899, or in some old workbooks in 1904. */
const [DEC_1899, JAN_1904] = [-25_569, -24_107];

export function isTrue(text: string | undefined): boolean {
  return text === "1" || text === "true";
}
