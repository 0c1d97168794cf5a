import { createHash } from "node:crypto";
import { extname } from "node:path";
import { FileError } from "../platform/files.ts";
import { type ByteSource, bytesAt } from "../platform/held-folder.ts";
import type { ValidColumns } from "./columns.ts";
import { type BoundedUnit, lineLimit } from "./delimited.ts";
import type { SheetArguments } from "./detect-sheet.ts";
import { markUndetected, withDetectedForm } from "./detected-form.ts";
import { findFile } from "./folders.ts";
import { AS_XLSX, checkContent } from "./foreign-content.ts";
import type { Encoding, Format, InputFile } from "./input-file.ts";
import type { OpenedFile } from "./rows.ts";
import { certainEncoding, EncodingDetector } from "./text.ts";

const BY_ENDING: Readonly<Record<string, Format>> = {
  ".csv": "csv",
  ".tsv": "csv",
  ".txt": "csv",
  ".xlsx": "xlsx",
  ".xlsm": "xlsx",
  // Many programs write a text or a new workbook (.xlsx) into a file that they name .xls. So the content decides.
  ".xls": "xlsx",
  ".ndjson": "ndjson",
  ".jsonl": "ndjson",
  ".json": "json",
};

const UNITS: Readonly<Record<Exclude<Format, "xlsx">, BoundedUnit>> = {
  csv: "line",
  ndjson: "line",
  json: { jsonDepth: 1 },
};

const MAX_PACKED_BYTES = 104_857_600;

export interface FileRules {
  readonly allowedDirs: readonly string[];
  readonly maxLineBytes: number;
}

/**
 * Reads a file to find its format and encoding, but not the form of a sheet. Throws a FileError if the file cannot be
 * used, or if a line is too long.
 */
export async function openFile(
  path: string,
  given: SheetArguments,
  { allowedDirs, maxLineBytes }: FileRules,
): Promise<OpenedFile> {
  const found = await findFile(path, allowedDirs);
  const format = formatOf(path);
  if (format === undefined) throw unknownForm(path);
  return unreadBytes(bytesAt(found), { path, format, maxLineBytes }, given);
}

interface NamedContent {
  readonly path: string;
  readonly format: Format;
  readonly maxLineBytes: number | undefined;
}

/**
 * Opens bytes, and detects the form of a sheet. Throws a FileError if they cannot be used or lack a required column.
 */
export async function openBytes(
  bytes: ByteSource,
  named: NamedContent,
  given: SheetArguments,
  shape: ValidColumns,
): Promise<OpenedFile> {
  const opened = await unreadBytes(bytes, named, given);
  return { ...opened, file: await withDetectedForm(bytes, opened.file, shape) };
}

/**
 * Reads bytes to find their format and encoding, but not the form of a sheet. Throws a FileError if they cannot be
 * used, or if a line is too long.
 */
export async function unreadBytes(
  bytes: ByteSource,
  { path, format: named, maxLineBytes }: NamedContent,
  { encoding: said, sheet, columns, separator, fillDown }: SheetArguments,
): Promise<OpenedFile> {
  const hash = createHash("sha256");
  const encodings = new EncodingDetector();
  // An empty file counts as text, even if its name ends in .xlsx.
  let format: Format = named === "xlsx" ? "csv" : named;
  let check: ((chunk: Uint8Array) => void) | undefined;
  let size = 0;
  for await (const chunk of bytes()) {
    if (size === 0) format = formatByContent(chunk, named, path);
    size += chunk.length;
    hash.update(chunk);
    if (format === "xlsx") {
      if (size > MAX_PACKED_BYTES) throw tooLargeWorkbook(path);
      continue;
    }
    encodings.take(chunk);
    if (maxLineBytes === undefined) continue;
    check ??= lineLimit(UNITS[format], maxLineBytes, encodings.soFar(said));
    check(chunk);
  }
  if (format === "csv" && size > 0 && sheet !== undefined && sheet !== 1) {
    throw new FileError(
      `sheet was given, but ${JSON.stringify(path)} is a text file and has no sheets`,
      "Leave sheet out.",
    );
  }
  const encoding = said ?? (await encodingOf(format, encodings, bytes));
  const file: InputFile = { format, encoding, digest: hash.digest("hex") };
  if (format !== "csv" && format !== "xlsx") {
    checkNoSheetArguments({ sheet, columns, separator, fillDown }, path);
    return { file, bytes, size };
  }
  const given = {
    ...(sheet !== undefined && { sheet }),
    ...(columns !== undefined && { columns: { ...columns } }),
    ...(separator !== undefined && { separator }),
    ...(fillDown !== undefined && { fillDown: [...fillDown] }),
    ...(extname(path).toLowerCase() === ".tsv" && { isTabbed: true as const }),
    ...(maxLineBytes !== undefined && { maxBytes: maxLineBytes }),
  };
  return { file: markUndetected({ ...file, given }), bytes, size };
}

/** Throws a FileError if arguments about sheets and their columns were sent for a JSON file. */
function checkNoSheetArguments(given: Omit<SheetArguments, "encoding">, path: string): void {
  const names = Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (names.length === 0) return;
  throw new FileError(
    `${names.join(" and ")} ${names.length === 1 ? "is" : "are"} only for sheets, but ${JSON.stringify(path)} contains JSON`,
    `Leave ${names.length === 1 ? "it" : "them"} out. If the fields of the file have other names, rename them, or save the data as CSV.`,
  );
}

/**
 * Returns the encoding of a file. JSON must be UTF-8 or UTF-16. If it seems to be neither, it is read as UTF-8, so that
 * the error names the line of the first wrong byte. Throws a FileError if the encoding of a sheet is uncertain.
 */
async function encodingOf(format: Format, encodings: EncodingDetector, bytes: ByteSource): Promise<Encoding> {
  if (format === "xlsx") return "utf-8";
  const found = await encodings.found(bytes);
  if (format === "csv") return certainEncoding(found);
  return found?.startsWith("utf-") ? found : "utf-8";
}

export function formatOf(path: string): Format | undefined {
  return BY_ENDING[extname(path).toLowerCase()];
}

const OPEN_DOCUMENT = [
  "an OpenDocument spreadsheet",
  "In LibreOffice: File, Save As, Excel 2007-365 (.xlsx).",
] as const;

const COMPRESSED = ["a compressed file", "Unpack it first."] as const;

/** For unsupported file extensions: what the file is, and how to save it in a supported format. */
const FOREIGN: Readonly<Record<string, readonly [what: string, remedy: string]>> = {
  ".xlsb": ["a binary Excel workbook", AS_XLSX],
  ".ods": OPEN_DOCUMENT,
  ".fods": OPEN_DOCUMENT,
  ".numbers": ["a Numbers document", "In Numbers: File, Export To, Excel or CSV."],
  ".gz": COMPRESSED,
  ".zip": COMPRESSED,
  ".gsheet": ["a link to a Google sheet", "In Google Sheets: File, Download, Microsoft Excel (.xlsx)."],
};

export function unknownForm(path: string, further = ""): FileError {
  const foreign = FOREIGN[extname(path).toLowerCase()];
  if (foreign !== undefined) {
    return new FileError(`${JSON.stringify(path)} is ${foreign[0]}, which cannot be read`, foreign[1]);
  }
  return new FileError(
    `${JSON.stringify(path)} has an unknown extension`,
    `Name it ${further}.csv, .tsv or .txt (a header and rows), .xlsx, .ndjson (one JSON object a line) or .json.`,
  );
}

/**
 * Returns the format of a file. Its name decides, but a sheet is text or a workbook according to its first bytes.
 * Throws a FileError if it cannot be read.
 */
function formatByContent(chunk: Uint8Array, named: Format, path: string): Format {
  checkContent(chunk, path);
  const isSheet = named === "csv" || named === "xlsx";
  if (
    isSheet &&
    /^(?:\u00EF\u00BB\u00BF)?\s*(?:\[\s*)?\{\s*"/.test(Buffer.from(chunk.subarray(0, 200)).toString("latin1"))
  ) {
    throw new FileError(
      `${JSON.stringify(path)} contains JSON`,
      "Name it .json if it is one array, or .ndjson if each line is an object.",
    );
  }
  const isArchive = Buffer.from(chunk.subarray(0, 4)).toString("latin1") === "PK\u0003\u0004";
  if (isArchive && named === "csv") return "xlsx";
  return !isArchive && named === "xlsx" ? "csv" : named;
}

function tooLargeWorkbook(path: string): FileError {
  return new FileError(
    `${JSON.stringify(path)} has more than 100 MB`,
    "Save its sheet as CSV UTF-8, which has no size limit.",
  );
}
