import type { ByteSource } from "../platform/held-folder.ts";
import type { ValidColumns } from "./columns.ts";
import type { InputFile } from "./input-file.ts";

export type DetectedForm = Pick<InputFile, "sheet" | "seen">;

/**
 * The key under which the object of a file holds its detected form. It is a symbol, so that copies of the object share
 * the form, and JSON leaves it out of the stored run.
 */
const DETECTION: unique symbol = Symbol("detection");

export type ReadableFile = Pick<
  InputFile,
  "format" | "encoding" | "digest" | "given" | "sheet" | "seen" | "targeting"
> & { readonly [DETECTION]?: { detected?: Promise<DetectedForm> } };

export function isUndetected({ given, sheet }: Pick<InputFile, "given" | "sheet">): boolean {
  return given !== undefined && sheet === undefined;
}

/** Marks a file whose form is not detected yet. It will be detected once for all copies of the file. */
export function markUndetected<File extends InputFile>(file: File): File & ReadableFile {
  return { ...file, [DETECTION]: {} };
}

/**
 * Returns a file with its detected form. Reads the whole file, but only once. Throws a FileError if the file cannot be
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
