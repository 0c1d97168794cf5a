import type { ByteSource } from "../platform/held-folder.ts";
import type { ValidColumns } from "./columns.ts";
import type { InputFile } from "./input-file.ts";

/** How the rows of a sheet are read, and what was detected in it. */
export type SheetLook = Pick<InputFile, "sheet" | "seen">;

/** The key for the detected form of a file in memory. Copies share it, so it is detected once; it is not stored. */
const LOOK: unique symbol = Symbol("look");

/** The parts of a file that determine how its rows are read. */
export type ReadableFile = Pick<
  InputFile,
  "format" | "encoding" | "digest" | "given" | "sheet" | "seen" | "targeting"
> & { readonly [LOOK]?: { detected?: Promise<SheetLook> } };

/** Returns whether the form of a file's rows still has to be detected. */
export function isUnread({ given, sheet }: Pick<InputFile, "given" | "sheet">): boolean {
  return given !== undefined && sheet === undefined;
}

/** Marks a file that was just opened, and all copies of it, so that its form is detected once. */
export function toBeLookedAt<File extends InputFile>(file: File): File & ReadableFile {
  return { ...file, [LOOK]: {} };
}

/**
 * Returns the file with the detected form of its rows, which takes as long as reading it. Throws a FileError if it
 * cannot be read or lacks a column.
 */
export async function lookedAt<File extends ReadableFile>(
  bytes: ByteSource,
  file: File,
  shape: ValidColumns,
): Promise<File> {
  if (!isUnread(file)) return file;
  const look = file[LOOK] ?? {};
  look.detected ??= detected(bytes, file, shape);
  return { ...file, ...(await look.detected) };
}

async function detected(bytes: ByteSource, file: ReadableFile, shape: ValidColumns): Promise<SheetLook> {
  const { format, encoding, given = {} } = file;
  if (format !== "csv" && format !== "xlsx") return {};
  // Loaded with the first sheet.
  const { detectSheet } = await import("./detect-sheet.ts");
  const { isTabbed = false, maxBytes, ...asked } = given;
  return detectSheet({ bytes, format, encoding, shape, isTabbed, maxBytes }, asked);
}
