import * as z from "zod";
import type { Fixed } from "../platform/json.ts";

/** The formats of input files. `csv` is any text file with cells, whatever its delimiter. */
const FORMATS = ["csv", "xlsx", "ndjson", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** The encodings of text files. `euc-kr` includes CP949, in which Korean Excel saves CSV files. */
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

/** How to read a sheet. Stored with the run, so that the sheet is always read in the same way. */
const sheetForm = z.object({
  delimiter: z.enum(DELIMITERS).exactOptional(),
  sheet: z.string().exactOptional(),
  /** By column: its heading, if that is not a usual heading of the column. */
  columns: z.record(z.string(), z.string()).exactOptional(),
  /** The separator of several Context IDs in one cell, in addition to line breaks. */
  separator: z.string().exactOptional(),
  /** The columns in which an empty cell has the value of the cell above. */
  fillDown: z.array(z.string()).exactOptional(),
  /**
   * The headings of columns in which a comma is the decimal sign, because some of their numbers can only be read like
   * that.
   */
  decimalCommas: z.array(z.string()).exactOptional(),
  /** The line numbers of rows to skip: rows with totals, and rows that explain the columns. */
  subtotals: z.array(z.number()).exactOptional(),
  hints: z.array(z.number()).exactOptional(),
});
export type SheetForm = Fixed<z.infer<typeof sheetForm>>;

const count = z.number().exactOptional();

/** What was noticed while a sheet was read. Answers report each field that is set. */
const sheetSeen = z.object({
  /** The line of the header if that is not the first line, and how many filled rows are above it. */
  headerLine: count,
  above: count,
  /** How many columns were ignored, and the headings of the first ones. */
  ignored: count,
  ignoredHeadings: z.array(z.string()).exactOptional(),
  read: z.array(z.object({ column: z.string(), heading: z.string() })).exactOptional(),
  severalIds: count,
  commas: count,
  unseparated: count,
  /** How many cells have an unusual sign between Context IDs, and the first such sign. */
  joined: count,
  joinedBy: z.string().exactOptional(),
  /** How many rows belong to the option of the row above, and how many empty cells got the value of the cell above. */
  continued: count,
  filled: count,
  blankGroups: count,
  groupHeading: z.string().exactOptional(),
  composed: count,
  grouped: count,
  dates: count,
  /**
   * The number of line breaks inside the cells of a text file. They explain why the reported lines differ from the row
   * numbers that a spreadsheet shows.
   */
  lineBreaks: count,
  repeatedTx: count,
  shorter: count,
  repeated: count,
  /** The number of skipped rows that have no option. Templates have such rows at their end. */
  template: count,
  /**
   * `trimmed`: how many names have spaces around them. `beyond`: how many filled cells are in columns without a
   * heading. `titles`: how many rows above a repeated header are titles.
   */
  trimmed: count,
  beyond: count,
  titles: count,
  /** The heading of an ignored column that may contain the Context IDs. Absent if another column contains them. */
  likelyContexts: z.string().exactOptional(),
  /** Set if no column contains Context IDs, not even an ignored one. Absent if no column was ignored. */
  withoutContexts: z.literal(true).exactOptional(),
  /** The line of the first row whose name looks like a total but that was read as an option. */
  notTotal: count,
  /** How many other sheets the workbook has, and the names of the first ones. */
  otherSheets: count,
  sheets: z.array(z.string()).exactOptional(),
  hidden: count,
  /** Set if the workbook has macros. They were ignored. */
  macros: z.literal(true).exactOptional(),
  targeting: z.string().exactOptional(),
});
export type SheetSeen = Fixed<z.infer<typeof sheetSeen>>;

/** What the caller and the name of the file say about the form of a sheet. The rest is detected. */
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
  /** How to read the sheet. Absent if the file is no sheet or its form is not detected yet. */
  sheet: sheetForm.exactOptional(),
  seen: sheetSeen.exactOptional(),
  /**
   * The values that rows may have in the column of the targeting: the ID and the names of the targeting of the call.
   */
  targeting: z.array(z.string()).exactOptional(),
});
export type InputFile = Fixed<z.infer<typeof inputFile>>;
