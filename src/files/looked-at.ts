import type { ByteSource } from "../platform/held-folder.ts";
import type { ValidColumns } from "./columns.ts";
import type { InputFile } from "./input-file.ts";

/** How the rows of a sheet are read, and what was seen of it. */
export type SheetLook = Pick<InputFile, "sheet" | "seen">;

/**
 * What a file carries while it is in memory, so that it is detected once how its rows are read: copies of the file share
 * it, and nothing of it is stored.
 */
const LOOK: unique symbol = Symbol("look");

/** A file, as far as it decides how its rows are read. */
export type ReadableFile = Pick<
  InputFile,
  "format" | "encoding" | "digest" | "given" | "sheet" | "seen" | "targeting"
> & { readonly [LOOK]?: { detected?: Promise<SheetLook> } };

/** Whether it is still to be detected how the rows of a file are read. */
export function isUnread({ given, sheet }: Pick<InputFile, "given" | "sheet">): boolean {
  return given !== undefined && sheet === undefined;
}

/** A file that was just opened, and all copies of it, as one of which it is detected once how its rows are read. */
export function toBeLookedAt<File extends InputFile>(file: File): File & ReadableFile {
  return { ...file, [LOOK]: {} };
}

/**
 * The file with how its rows are read, which of a large one takes as long as reading it. Throws a FileError where it
 * cannot be read, or lacks a column.
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
  // Loaded with the first sheet that is looked at.
  const { detectSheet } = await import("./detect-sheet.ts");
  const { isTabbed = false, maxBytes, ...asked } = given;
  return detectSheet({ bytes, format, encoding, shape, isTabbed, maxBytes }, asked);
}
