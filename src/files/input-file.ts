import * as z from "zod";
import type { Fixed } from "../platform/json.ts";

/** The forms of files, by the ending of their names. `csv` is any text of cells, with any delimiter. */
const FORMATS = ["csv", "xlsx", "ndjson", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** Encodings of files. `euc-kr` is what Korean Excel saves as CSV (CP949). */
export const ENCODINGS = ["utf-8", "utf-16le", "utf-16be", "euc-kr", "windows-1252", "macintosh"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Encodings by their common names. */
export const ENCODING_NAMES: Readonly<Record<Encoding, string>> = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16",
  "utf-16be": "UTF-16 (big endian)",
  "euc-kr": "EUC-KR (CP949)",
  "windows-1252": "Windows-1252",
  macintosh: "Mac Roman",
};

/** The possible delimiters of a text file, in the order in which they are tried. */
export const DELIMITERS = [",", ";", "\t", "|"] as const;
export type Delimiter = (typeof DELIMITERS)[number];

/** How a sheet is read, whether specified or detected. With it the sheet can be read in the same way again. */
const sheetForm = z.object({
  delimiter: z.enum(DELIMITERS).exactOptional(),
  sheet: z.string().exactOptional(),
  /** Headings by the column that they are read as. */
  columns: z.record(z.string(), z.string()).exactOptional(),
  /** The separator of several Context IDs in one cell, in addition to line breaks. */
  separator: z.string().exactOptional(),
  /** Columns whose blank cells repeat the cell above. */
  fillDown: z.array(z.string()).exactOptional(),
  /** The lines of total rows, and of rows that explain the columns. They are skipped. */
  subtotals: z.array(z.number()).exactOptional(),
  hints: z.array(z.number()).exactOptional(),
});
export type SheetForm = Fixed<z.infer<typeof sheetForm>>;

const count = z.number().exactOptional();

/** The remarks about a sheet from when it was opened. A remark that does not apply is absent. */
const sheetSeen = z.object({
  /** The line of the header, if it is not the first, and the number of filled rows above it. */
  headerLine: count,
  above: count,
  /** The number of ignored columns, and the first of them. */
  ignored: count,
  ignoredHeadings: z.array(z.string()).exactOptional(),
  /** Columns that were read from an alias of their heading. */
  read: z.array(z.object({ column: z.string(), heading: z.string() })).exactOptional(),
  /** The number of cells with several Context IDs, and the separators in them. */
  severalIds: count,
  /** The number of cells that contain commas, or other separators that do not separate. */
  commas: count,
  unseparated: count,
  /** The number of rows that continue the option above, and of cells that were filled down. */
  continued: count,
  filled: count,
  /** The number of blank group cells below filled ones. */
  blankGroups: count,
  /** The number of cells whose Hangul was composed. */
  composed: count,
  /** The number of Context IDs that look like numbers with thousands separators. */
  grouped: count,
  /** The number of Context IDs that look like dates. */
  dates: count,
  /** The number of line breaks inside cells of a text file: its lines are not the rows of a spreadsheet. */
  lineBreaks: count,
  /** The number of events with the `tx_id` of an earlier one. */
  repeatedTx: count,
  /** The number of numeric Context IDs that are shorter than all others. */
  shorter: count,
  /** The number of rows that repeat the header, as multi-page sheets do. They were skipped. */
  repeated: count,
  /** The number of rows that are about no option, as at the end of a template. They were skipped. */
  template: count,
  /** The number of names that had spaces around them, and of filled cells to the right of all headings. */
  trimmed: count,
  beyond: count,
  /** The heading of an ignored column that may hold the Context IDs, if no other does. */
  likelyContexts: z.string().exactOptional(),
  /** The line of a total row at the end, in runs of earlier versions. */
  total: count,
  /** The line of the first row that looks like a total row but is an option. */
  notTotal: count,
  /** The number of other sheets of the workbook, and the first of them. */
  otherSheets: count,
  sheets: z.array(z.string()).exactOptional(),
  /** The number of hidden rows, which were read. */
  hidden: count,
  /** Whether links, macros or formulas of the workbook were ignored. */
  formulas: count,
  macros: z.literal(true).exactOptional(),
  /** The targeting that the first filled row names. */
  targeting: z.string().exactOptional(),
});
export type SheetSeen = Fixed<z.infer<typeof sheetSeen>>;

/** The caller's arguments about a sheet, and the facts that its file name states: the basis of the detection. */
const sheetGiven = z.object({
  sheet: z.union([z.string(), z.number()]).exactOptional(),
  columns: z.record(z.string(), z.string()).exactOptional(),
  separator: z.string().exactOptional(),
  fillDown: z.array(z.string()).exactOptional(),
  isTabbed: z.literal(true).exactOptional(),
  /** The maximum length of a line, in bytes. */
  maxBytes: count,
});

/** A file, identified by its content and not by its path. */
export const inputFile = z.object({
  format: z.enum(FORMATS),
  encoding: z.enum(ENCODINGS),
  /** SHA-256 of its bytes, in hexadecimal digits. */
  digest: z.string(),
  /** For sheets only; absent in runs of earlier versions. */
  given: sheetGiven.exactOptional(),
  /** Absent for a sheet whose form was not yet detected when its call answered. */
  sheet: sheetForm.exactOptional(),
  seen: sheetSeen.exactOptional(),
  /** The ID and names by which its rows may refer to the targeting of the call. */
  targeting: z.array(z.string()).exactOptional(),
});
export type InputFile = Fixed<z.infer<typeof inputFile>>;
