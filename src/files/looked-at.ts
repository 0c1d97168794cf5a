import type { ByteSource } from "../platform/held-folder.ts";
import type { ValidColumns } from "./columns.ts";
import type { InputFile } from "./input-file.ts";

/** A file, as far as it decides how its rows are read. */
export type ReadableFile = Pick<InputFile, "format" | "encoding" | "digest" | "given" | "sheet" | "seen" | "targeting">;

/** How the rows of a sheet are read, detected once for each sheet. */
const looks = new WeakMap<ReadableFile, Promise<ReadableFile>>();
/** What was detected last, by content and arguments: for reports of runs that were read from the store. */
const known = new Map<string, ReadableFile>();
const MOST_KNOWN = 100;

/** Whether it is still to be detected how the rows of a file are read. */
export function isUnread({ given, sheet }: ReadableFile): boolean {
  return given !== undefined && sheet === undefined;
}

/**
 * The file with how its rows are read, which of a large one takes as long as reading it. Throws a FileError where it
 * cannot be read, or lacks a column.
 */
export function lookedAt<File extends ReadableFile>(
  bytes: ByteSource,
  file: File,
  shape: ValidColumns,
): Promise<ReadableFile> {
  if (!isUnread(file)) return Promise.resolve(file);
  const look = looks.get(file) ?? detected(bytes, file, shape);
  note(file, look);
  return look;
}

/** The file with how its rows are read, where that is known by now. */
export function asKnown<File extends ReadableFile>(file: File): File {
  const { sheet, seen } = (isUnread(file) && known.get(keyOf(file))) || file;
  return { ...file, ...(sheet && { sheet }), ...(seen && { seen }) };
}

/** The file, whose rows may name their targeting by these IDs and names; how it is read is not detected again. */
export function aboutTargetings<File extends ReadableFile>(file: File, targeting: readonly string[]): File {
  const about = { ...file, targeting: [...targeting] };
  const look = looks.get(file);
  if (look !== undefined)
    note(
      about,
      look.then((found) => ({ ...found, targeting: [...targeting] })),
    );
  return about;
}

function note(file: ReadableFile, look: Promise<ReadableFile>): void {
  looks.set(file, look);
  look.then(
    (found) => {
      for (const [oldest] of known) if (known.size >= MOST_KNOWN) known.delete(oldest);
      known.set(keyOf(file), found);
    },
    // The caller that awaits the look gets its error.
    () => undefined,
  );
}

function keyOf({ digest, given }: ReadableFile): string {
  return `${digest} ${JSON.stringify(given)}`;
}

async function detected(bytes: ByteSource, file: ReadableFile, shape: ValidColumns): Promise<ReadableFile> {
  const { format, encoding, given = {} } = file;
  if (format !== "csv" && format !== "xlsx") return file;
  // Loaded with the first sheet that is looked at.
  const { detectSheet } = await import("./detect-sheet.ts");
  const { isTabbed = false, maxBytes, ...asked } = given;
  return { ...file, ...(await detectSheet({ bytes, format, encoding, shape, isTabbed, maxBytes }, asked)) };
}
