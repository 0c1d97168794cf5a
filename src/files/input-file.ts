import * as z from "zod";
import type { Fixed } from "../platform/json.ts";

/** The formats of input files. `csv` is any text file with cells, even with another delimiter than a comma. */
const FORMATS = ["csv", "xlsx", "ndjson", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** The encodings of text files. `euc-kr` stands for CP949, in which Korean Excel saves CSV files. */
export const ENCODINGS = [
  ...(["utf-8", "utf-16le", "utf-16be", "euc-kr", "windows-1252", "macintosh"] as const),
  ...(["shift_jis", "gb18030", "big5", "windows-1250", "windows-1251", "windows-1254"] as const),
];
export type Encoding = (typeof ENCODINGS)[number];

export const ENCODING_NAMES: Readonly<Record<Encoding, string>> = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16",
  "utf-16be": "UTF-16 (big endian)",
  "euc-kr": "EUC-KR (CP949)",
  "windows-1252": "Windows-1252",
  macintosh: "Mac Roman",
  shift_jis: "Shift_JIS",
  gb18030: "GB18030",
  big5: "Big5",
  "windows-1250": "Windows-1250",
  "windows-1251": "Windows-1251",
  "windows-1254": "Windows-1254",
};

export const DELIMITERS = [",", ";", "\t", "|"] as const;
export type Delimiter = (typeof DELIMITERS)[number];

/**
 * Marks whose meaning depends on the other cells of the same column: `x` (an X) and `o` (an empty circle). An X beside
 * circles or ticks means no, and beside words for no or empty cells yes. Otherwise, or beside words that contradict
 * this, it is unclear. An empty circle means yes; it is unclear if the column also has filled circles.
 */
const SIGNS = ["x", "o"] as const;

/** How to read a sheet. It is stored with the run, so that the sheet is later read in the same way. */
const sheetForm = z.object({
  delimiter: z.enum(DELIMITERS).exactOptional(),
  sheet: z.string().exactOptional(),
  /**
   * The argument `columns` of the call: for a column, its heading in the file; for a column or heading to ignore, "".
   */
  columns: z.record(z.string(), z.string()).exactOptional(),
  /** What separates several Context IDs in a cell, in addition to line breaks. */
  separator: z.string().exactOptional(),
  /** The columns in which an empty cell means the value of the cell above. */
  fillDown: z.array(z.string()).exactOptional(),
  /**
   * The columns in which a comma or a point is the decimal sign. Numbers of the sheet that can be read in only one way
   * show this.
   */
  decimalCommas: z.array(z.string()).exactOptional(),
  decimalPoints: z.array(z.string()).exactOptional(),
  /**
   * For each column with yes and no: whether an X and an empty circle mean yes in it. A mark is absent if its meaning
   * is unclear.
   */
  signs: z.record(z.string(), z.partialRecord(z.enum(SIGNS), z.boolean())).exactOptional(),
  /**
   * The line numbers of rows to skip: rows with totals (`subtotals`), and rows that explain the columns or are notes
   * below the table (`hints`).
   */
  subtotals: z.array(z.number()).exactOptional(),
  hints: z.array(z.number()).exactOptional(),
});
export type SheetForm = Fixed<z.infer<typeof sheetForm>>;

const count = z.number().exactOptional();

/** What is worth reporting about a sheet. Fields that are 0 are absent. */
const sheetSeen = z.object({
  /** The line of the header, if it is not the first line, and how many filled rows are above it. */
  headerLine: count,
  above: count,
  /** How many columns were ignored, and the headings of the first of them. */
  ignored: count,
  ignoredHeadings: z.array(z.string()).exactOptional(),
  read: z.array(z.object({ column: z.string(), heading: z.string() })).exactOptional(),
  severalIds: count,
  commas: count,
  unseparated: count,
  /** How many cells have an unusual sign between Context IDs, and the first of these signs. */
  joined: count,
  joinedBy: z.string().exactOptional(),
  /**
   * How many rows have no option and continue the one above. How many of them name another group than it does, and the
   * first lines of the others. `filled`: how many empty cells got the value of the cell above.
   */
  continued: count,
  otherGroup: count,
  continuedLines: z.array(z.number()).exactOptional(),
  filled: count,
  blankGroups: count,
  groupHeading: z.string().exactOptional(),
  composed: count,
  grouped: count,
  /** How many Context IDs are dates, and the first lines with one. */
  dates: count,
  dateLines: z.array(z.number()).exactOptional(),
  /**
   * How many line breaks are inside cells of a text file. Because of them, the reported lines differ from the row
   * numbers in a spreadsheet.
   */
  lineBreaks: count,
  repeatedTx: count,
  shorter: count,
  repeated: count,
  /** How many rows without an option were skipped. Templates often end with such rows. */
  template: count,
  /**
   * `trimmed`: how many names have spaces around them. `beyond`: how many filled cells are in columns without a
   * heading. `titles`: how many rows are titles above a repeated header.
   */
  trimmed: count,
  beyond: count,
  titles: count,
  /** The heading of an ignored column that may contain the Context IDs. Absent if there is a column for them. */
  likelyContexts: z.string().exactOptional(),
  /** Set if columns were ignored, none was read as Context IDs, and no ignored heading is similar to theirs. */
  withoutContexts: z.literal(true).exactOptional(),
  /** The line of the first row whose name looks like a total, but which was read as an option. */
  notTotal: count,
  /** The line of the first option that has only a name, below an empty row or totals. It may be a note. */
  apart: count,
  /** How many other sheets the workbook has, and the names of the first of them. */
  otherSheets: count,
  sheets: z.array(z.string()).exactOptional(),
  hidden: count,
  /** Set if the workbook has macros. They were ignored. */
  macros: z.literal(true).exactOptional(),
  targeting: z.string().exactOptional(),
});
export type SheetSeen = Fixed<z.infer<typeof sheetSeen>>;

/** What the caller and the file's name tell about the form of a sheet. Everything else is detected. */
const sheetGiven = z.object({
  sheet: z.union([z.string(), z.number()]).exactOptional(),
  columns: z.record(z.string(), z.string()).exactOptional(),
  separator: z.string().exactOptional(),
  fillDown: z.array(z.string()).exactOptional(),
  isTabbed: z.literal(true).exactOptional(),
  maxBytes: count,
});

export const inputFile = z.object({
  format: z.enum(FORMATS),
  encoding: z.enum(ENCODINGS),
  digest: z.string(),
  given: sheetGiven.exactOptional(),
  /** How to read the sheet. Absent if the file is not a sheet, or if its form has not been detected yet. */
  sheet: sheetForm.exactOptional(),
  seen: sheetSeen.exactOptional(),
  /** What rows may contain in the column of the targeting: the ID and the names of the call's targeting. */
  targeting: z.array(z.string()).exactOptional(),
});
export type InputFile = Fixed<z.infer<typeof inputFile>>;

/** Returns whether a file has cells: a workbook, or text with separators. */
export function isSheet(file: Pick<InputFile, "format"> | undefined): boolean {
  return file?.format === "csv" || file?.format === "xlsx";
}
