import * as z from "zod";
import type { Fixed } from "../platform/json.ts";

/** The formats of input files. `csv` means any text with cells, whatever the delimiter. */
const FORMATS = ["csv", "xlsx", "ndjson", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** The encodings of text files. `euc-kr` includes CP949, in which Korean Excel saves CSV files. */
export const ENCODINGS = ["utf-8", "utf-16le", "utf-16be", "euc-kr", "windows-1252", "macintosh"] as const;
export type Encoding = (typeof ENCODINGS)[number];

export const ENCODING_NAMES: Readonly<Record<Encoding, string>> = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16",
  "utf-16be": "UTF-16 (big endian)",
  "euc-kr": "EUC-KR (CP949)",
  "windows-1252": "Windows-1252",
  macintosh: "Mac Roman",
};

/** The delimiters of text files, in the order in which they are tried. */
export const DELIMITERS = [",", ";", "\t", "|"] as const;
export type Delimiter = (typeof DELIMITERS)[number];

/** How to read a sheet. It is stored with the run, so that the sheet is always read in the same way. */
const sheetForm = z.object({
  delimiter: z.enum(DELIMITERS).exactOptional(),
  sheet: z.string().exactOptional(),
  /** The heading of each column that is not read from its usual heading. */
  columns: z.record(z.string(), z.string()).exactOptional(),
  /** The separator of several Context IDs in one cell, in addition to line breaks. */
  separator: z.string().exactOptional(),
  /** The columns in which a blank cell means the value of the cell above. */
  fillDown: z.array(z.string()).exactOptional(),
  /** Lines of rows to skip: totals, and rows that explain the columns. */
  subtotals: z.array(z.number()).exactOptional(),
  hints: z.array(z.number()).exactOptional(),
});
export type SheetForm = Fixed<z.infer<typeof sheetForm>>;

const count = z.number().exactOptional();

/** What was observed in a sheet. Answers report the observations that are present. */
const sheetSeen = z.object({
  /** The line of the header if it is not the first, and how many filled rows are above it. */
  headerLine: count,
  above: count,
  /** How many columns were ignored, and the headings of the first ones. */
  ignored: count,
  ignoredHeadings: z.array(z.string()).exactOptional(),
  read: z.array(z.object({ column: z.string(), heading: z.string() })).exactOptional(),
  severalIds: count,
  commas: count,
  unseparated: count,
  /** The numbers of rows that continue the option above, and of cells that got the value of the cell above. */
  continued: count,
  filled: count,
  blankGroups: count,
  /** The heading of the column of groups, if it has blank cells. */
  groupHeading: z.string().exactOptional(),
  composed: count,
  grouped: count,
  dates: count,
  /**
   * The number of line breaks inside cells of a text file. They make line numbers differ from the row numbers of a
   * spreadsheet.
   */
  lineBreaks: count,
  repeatedTx: count,
  shorter: count,
  repeated: count,
  /** The number of skipped rows without an option, as templates have them at the end. */
  template: count,
  /**
   * The numbers of names with spaces around them (`trimmed`), and of filled cells to the right of all headings
   * (`beyond`).
   */
  trimmed: count,
  beyond: count,
  /** The heading of an ignored column that may contain the Context IDs. Present if no other column does. */
  likelyContexts: z.string().exactOptional(),
  /** Set if no column contains Context IDs, and no ignored one is likely to. Absent if no column was ignored. */
  withoutContexts: z.literal(true).exactOptional(),
  /** The line of the first row that looks like a total but is an option. */
  notTotal: count,
  /** How many other sheets the workbook has, and the names of the first ones. */
  otherSheets: count,
  sheets: z.array(z.string()).exactOptional(),
  hidden: count,
  /** Set if the workbook has macros, which were ignored. */
  macros: z.literal(true).exactOptional(),
  /** The targeting that the first filled row names. */
  targeting: z.string().exactOptional(),
});
export type SheetSeen = Fixed<z.infer<typeof sheetSeen>>;

/** What the caller and the file name say about a sheet. The rest of its form is detected. */
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
  /** What is given about the sheet. Present for sheets only. */
  given: sheetGiven.exactOptional(),
  /** How to read the sheet. Absent if the file is no sheet, or its form is not detected yet. */
  sheet: sheetForm.exactOptional(),
  seen: sheetSeen.exactOptional(),
  /** The ID and the names that mean the targeting of the call in the rows of the file. */
  targeting: z.array(z.string()).exactOptional(),
});
export type InputFile = Fixed<z.infer<typeof inputFile>>;
