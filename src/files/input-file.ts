import * as z from "zod";
import type { Fixed } from "../platform/json.ts";

/** The forms of files, by the ending of their names; `csv` is any text of cells, whatever separates them. */
const FORMATS = ["csv", "xlsx", "ndjson", "json"] as const;
export type Format = (typeof FORMATS)[number];

/** Encodings of files; `euc-kr` is what Korean Excel saves as CSV (CP949). */
export const ENCODINGS = ["utf-8", "utf-16le", "utf-16be", "euc-kr", "windows-1252"] as const;
export type Encoding = (typeof ENCODINGS)[number];

/** Encodings as people know them. */
export const ENCODING_NAMES: Readonly<Record<Encoding, string>> = {
  "utf-8": "UTF-8",
  "utf-16le": "UTF-16",
  "utf-16be": "UTF-16 (big endian)",
  "euc-kr": "EUC-KR (CP949)",
  "windows-1252": "Windows-1252",
};

/** What may separate the cells of a text file, in the order in which they are tried. */
export const DELIMITERS = [",", ";", "\t", "|"] as const;
export type Delimiter = (typeof DELIMITERS)[number];

/** How a sheet is read, as it was given or detected: what it needs to be read the same way again. */
const sheetForm = z.object({
  delimiter: z.enum(DELIMITERS).exactOptional(),
  /** The name of the sheet of a workbook. */
  sheet: z.string().exactOptional(),
  /** Headings by the column that they are read as. */
  columns: z.record(z.string(), z.string()).exactOptional(),
  /** What separates the Context IDs of one cell, beside line breaks. */
  separator: z.string().exactOptional(),
  /** Columns whose blank cells continue the one above. */
  fillDown: z.array(z.string()).exactOptional(),
  /** The lines of rows of totals above the last row, which are skipped. */
  subtotals: z.array(z.number()).exactOptional(),
});
export type SheetForm = Fixed<z.infer<typeof sheetForm>>;

const count = z.number().exactOptional();

/** What was seen of a sheet when it was opened; what did not occur is absent. */
const sheetSeen = z.object({
  /** Where the header is, when not on the first line, and how many filled rows stand above it. */
  headerLine: count,
  above: count,
  /** How many columns are ignored, and the first of them. */
  ignored: count,
  ignoredHeadings: z.array(z.string()).exactOptional(),
  /** Columns that were read from another heading than their own. */
  read: z.array(z.object({ column: z.string(), heading: z.string() })).exactOptional(),
  /** How many cells hold several Context IDs, and which separators were found there. */
  severalIds: count,
  /** How many cells hold commas, or other separators that do not separate. */
  commas: count,
  unseparated: count,
  /** How many rows continue the option above, and how many cells were filled down. */
  continued: count,
  filled: count,
  /** How many blank cells of a group stand below filled ones. */
  blankGroups: count,
  /** How many cells had their Hangul composed. */
  composed: count,
  /** How many Context IDs of a column of digits are shorter than all others. */
  shorter: count,
  /** How many rows repeat the header, as sheets of several pages have it; they were skipped. */
  repeated: count,
  /** The line of a row of totals at the end, which was skipped. */
  total: count,
  /** Other sheets of the workbook. */
  otherSheets: count,
  /** Whether links, macros or formulas of the workbook were left alone. */
  formulas: count,
  macros: z.literal(true).exactOptional(),
  /** The targeting that the first filled row names. */
  targeting: z.string().exactOptional(),
});
export type SheetSeen = Fixed<z.infer<typeof sheetSeen>>;

/** What the caller said of a sheet, and what its name says: by this it is found out how the sheet is read. */
const sheetGiven = z.object({
  sheet: z.union([z.string(), z.number()]).exactOptional(),
  columns: z.record(z.string(), z.string()).exactOptional(),
  separator: z.string().exactOptional(),
  fillDown: z.array(z.string()).exactOptional(),
  isTabbed: z.literal(true).exactOptional(),
  /** The longest line, in bytes. */
  maxBytes: count,
});

/** A file by its content, independent of its path. */
export const inputFile = z.object({
  format: z.enum(FORMATS),
  encoding: z.enum(ENCODINGS),
  /** SHA-256 of its bytes, in hexadecimal digits. */
  digest: z.string(),
  /** Of a sheet; runs of earlier versions have none. */
  given: sheetGiven.exactOptional(),
  /** Absent in a sheet of which it was not found out, when its call answered, how it is read. */
  sheet: sheetForm.exactOptional(),
  seen: sheetSeen.exactOptional(),
  /** By which ID and names its rows may speak of the targeting of the call. */
  targeting: z.array(z.string()).exactOptional(),
});
export type InputFile = Fixed<z.infer<typeof inputFile>>;
