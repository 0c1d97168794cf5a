import type { ByteSource } from "../platform/held-folder.ts";
import type { ValidColumns } from "./columns.ts";
import type { InputFile } from "./input-file.ts";

export type DetectedForm = Pick<InputFile, "sheet" | "seen">;

/**
 * The property of an `InputFile` that holds its detected form. Copies of the object share the form. JSON omits
 * properties with a symbol as their key, so this property is not stored with the run.
 */
const DETECTION: unique symbol = Symbol("detection");

export type ReadableFile = Pick<
  InputFile,
  "format" | "encoding" | "digest" | "given" | "sheet" | "seen" | "targeting"
> & { readonly [DETECTION]?: { detected?: Promise<DetectedForm> } };

export function isUndetected({ given, sheet }: Pick<InputFile, "given" | "sheet">): boolean {
  return given !== undefined && sheet === undefined;
}

/**
 * Marks a file whose form (delimiter, columns and so on) has not been detected yet. It is then detected once for all
 * copies of the object.
 */
export function markUndetected<File extends InputFile>(file: File): File & ReadableFile {
  return { ...file, [DETECTION]: {} };
}

/**
 * Returns a file with its detected form. The first call reads the whole file. Throws a FileError if the file cannot be
 * read or lacks a required column.
 */
export async function withDetectedForm<File extends ReadableFile>(
  bytes: ByteSource,
  file: File,
  shape: ValidColumns,
): Promise<File> {
  if (!isUndetected(file)) return file;
  const detection = file[DETECTION] ?? {};
  detection.detected ??= detected(bytes, file, shape);
  return { ...file, ...(await detection.detected) };
}

async function detected(bytes: ByteSource, file: ReadableFile, shape: ValidColumns): Promise<DetectedForm> {
  const { format, encoding, given = {} } = file;
  if (format !== "csv" && format !== "xlsx") return {};
  const { detectSheet } = await import("./detect-sheet.ts");
  const { isTabbed = false, maxBytes, ...asked } = given;
  return detectSheet({ bytes, format, encoding, shape, isTabbed, maxBytes }, asked);
}
