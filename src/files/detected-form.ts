import type { ByteSource } from "../platform/held-folder.ts";
import type { ValidColumns } from "./columns.ts";
import type { InputFile } from "./input-file.ts";

/** How to read the rows of a sheet, and observations about it. */
export type DetectedForm = Pick<InputFile, "sheet" | "seen">;

/**
 * Marks a file whose form is to be detected. All copies of the file share the result. It is not stored with the run.
 */
const DETECTION: unique symbol = Symbol("detection");

/** What is needed to read the rows of a file. */
export type ReadableFile = Pick<
  InputFile,
  "format" | "encoding" | "digest" | "given" | "sheet" | "seen" | "targeting"
> & { readonly [DETECTION]?: { detected?: Promise<DetectedForm> } };

/** Returns whether the form of a file must still be detected. */
export function isUndetected({ given, sheet }: Pick<InputFile, "given" | "sheet">): boolean {
  return given !== undefined && sheet === undefined;
}

/** Marks a newly opened file, so that its form is detected once for all copies of it. */
export function markUndetected<File extends InputFile>(file: File): File & ReadableFile {
  return { ...file, [DETECTION]: {} };
}

/**
 * Returns the file with the form of its rows. Detecting it reads the whole file, once. Throws a FileError if the file
 * cannot be read or lacks a required column.
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
  // Imported only when a file is a sheet, which makes the start faster.
  const { detectSheet } = await import("./detect-sheet.ts");
  const { isTabbed = false, maxBytes, ...asked } = given;
  return detectSheet({ bytes, format, encoding, shape, isTabbed, maxBytes }, asked);
}
