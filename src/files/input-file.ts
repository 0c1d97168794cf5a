import * as z from "zod";
import type { Fixed } from "../platform/json.ts";

/** The formats of files. `csv` means any text with cells, whatever the delimiter. */
const FORMATS = ["csv", "xlsx", "ndjson", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** The encodings of files. `euc-kr` also stands for CP949, in which Korean Excel saves CSV files. */
export const ENCODINGS = ["utf-8", "utf-16le", "utf-16be", "euc-kr", "windows-1252", "macintosh"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** The names of encodings in messages. */
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

/**
 * How to read a sheet, as the caller said or as it was detected. It is stored, so that the sheet is always read in the
 * same way.
 */
const sheetForm = z.object({
  delimiter: z.enum(DELIMITERS).exactOptional(),
  sheet: z.string().exactOptional(),
  /** The heading of each column that is not read from its usual heading. */
  columns: z.record(z.string(), z.string()).exactOptional(),
  /** The separator of several Context IDs in one cell, in addition to line breaks. */
  separator: z.string().exactOptional(),
  /** Columns in which a blank cell means the cell above. */
  fillDown: z.array(z.string()).exactOptional(),
  /** The lines of rows that are skipped: totals, and rows that explain the columns. */
  subtotals: z.array(z.number()).exactOptional(),
  hints: z.array(z.number()).exactOptional(),
});
export type SheetForm = Fixed<z.infer<typeof sheetForm>>;

const count = z.number().exactOptional();

/** Observations about a sheet, most of them counts. Answers report those that are present. */
const sheetSeen = z.object({
  /** The line of the header if it is not the first, and how many filled rows are above it. */
  headerLine: count,
  above: count,
  /** How many columns were ignored, and the headings of the first ones. */
  ignored: count,
  ignoredHeadings: z.array(z.string()).exactOptional(),
  /** Columns with a heading that is an alias. */
  read: z.array(z.object({ column: z.string(), heading: z.string() })).exactOptional(),
  /** Cells with several Context IDs. */
  severalIds: count,
  /** Cells with commas (`commas`) or other separators (`unseparated`) that were not used to separate Context IDs. */
  commas: count,
  unseparated: count,
  /** Rows that continue the option above, and cells that got the value of the cell above. */
  continued: count,
  filled: count,
  /** Blank group cells below filled ones. */
  blankGroups: count,
  /** Cells whose Hangul letters were composed to syllables. */
  composed: count,
  /** Context IDs that look like numbers with thousands separators. */
  grouped: count,
  /** Context IDs that look like dates. */
  dates: count,
  /** Line breaks inside cells of a text file. They make line numbers differ from the row numbers of a spreadsheet. */
  lineBreaks: count,
  /** Events with the `tx_id` of an earlier event. */
  repeatedTx: count,
  /** Context IDs of digits that are shorter than the others. */
  shorter: count,
  /** Skipped rows that repeat the header. */
  repeated: count,
  /** Skipped rows without an option, as templates have them at the end. */
  template: count,
  /** Names with spaces around them (`trimmed`), and filled cells to the right of all headings (`beyond`). */
  trimmed: count,
  beyond: count,
  /** The heading of an ignored column that may contain the Context IDs. Present if no other column does. */
  likelyContexts: z.string().exactOptional(),
  /** The line of a total row at the end. Only in runs of earlier versions. */
  total: count,
  /** The line of the first row that looks like a total but is an option. */
  notTotal: count,
  /** How many other sheets the workbook has, and the names of the first ones. */
  otherSheets: count,
  sheets: z.array(z.string()).exactOptional(),
  /** Hidden rows. They were read. */
  hidden: count,
  /** Formulas of the workbook, whose stored values were read, and whether it has macros, which were ignored. */
  formulas: count,
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
  /** The maximum length of a line in bytes. */
  maxBytes: count,
});

/** A file of the caller, identified by its contents instead of its path. */
export const inputFile = z.object({
  format: z.enum(FORMATS),
  encoding: z.enum(ENCODINGS),
  /** The SHA-256 of the file in hexadecimal digits. */
  digest: z.string(),
  /** Present for sheets only. Absent in runs of earlier versions. */
  given: sheetGiven.exactOptional(),
  /** Absent if the file is no sheet, or its form was not detected yet when the call was answered. */
  sheet: sheetForm.exactOptional(),
  seen: sheetSeen.exactOptional(),
  /** The ID and the names that mean the targeting of the call in the rows of the file. */
  targeting: z.array(z.string()).exactOptional(),
});
export type InputFile = Fixed<z.infer<typeof inputFile>>;
