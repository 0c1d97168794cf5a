import { randomBytes } from "node:crypto";
import { type FileHandle, link, open, stat } from "node:fs/promises";
import { dirname, extname } from "node:path";
import {
  FileError,
  hasCode,
  linkRefused,
  moveIntoPlace,
  type Pieces,
  removeFile,
  syncFolder,
} from "../platform/files.ts";
import { holdFolder, type Place, type SafeDirectory, SymlinkError } from "../platform/held-folder.ts";
import { BYTE_ORDER_MARK, csvLine } from "./delimited.ts";
import { findFreePlace } from "./folders.ts";
import { DELIMITERS } from "./input-file.ts";
import type { SheetFormat, WrittenSheet } from "./written-rows.ts";

export type SavedForm = SheetFormat | { readonly format: "ndjson" };

export interface FreePlace extends Place {
  readonly form: SavedForm;
}

/**
 * Returns where and in which format a file can be saved. Throws a FileError if the path is not allowed, if the file
 * exists or its folder does not, or if the extension or the delimiter cannot be used.
 */
export async function freePlaceFor(
  path: string,
  allowedDirs: readonly string[],
  delimiter?: string,
): Promise<FreePlace> {
  const place = await findFreePlace(path, allowedDirs);
  return { ...place, form: savedForm(path, delimiter) };
}

/**
 * Returns the format for a file with this extension. Throws a FileError if the extension is unknown, or if a delimiter
 * was sent that is unknown or for another format than `.csv`.
 */
export function savedForm(path: string, delimiter: string | undefined): SavedForm {
  const ending = extname(path).toLowerCase();
  const between = delimiter === undefined ? undefined : delimiterNamed(delimiter);
  if (delimiter !== undefined && (between === undefined || ending !== ".csv")) {
    throw new FileError(
      `the delimiter ${JSON.stringify(delimiter)} cannot be used in ${JSON.stringify(path)}`,
      'delimiter is for .csv files: ",", ";" or "tab".',
    );
  }
  if (ending === ".csv") return { format: "csv", delimiter: between ?? "," };
  if (ending === ".tsv") return { format: "csv", delimiter: "\t" };
  if (ending === ".xlsx") return { format: "xlsx" };
  if (ending === ".ndjson" || ending === ".jsonl") return { format: "ndjson" };
  throw new FileError(
    `${JSON.stringify(path)} must end in .xlsx, .csv, .tsv or .ndjson`,
    "The extension decides the format.",
  );
}

interface NewFile {
  readonly place: Place;
  readonly pieces: Pieces;
}

/**
 * Creates a file, either completely or not at all (but see `putInFreePlace`). Throws a FileError if the file exists, or
 * if the path now contains a link.
 */
export function saveFile(place: Place, pieces: Pieces, makeLink = link): Promise<void> {
  return saveFiles([{ place, pieces }], makeLink);
}

/**
 * Saves several files. First writes all of them completely under temporary names. The first file gets its name last, so
 * if it exists, the others do, too.
 */
export async function saveFiles([file, ...others]: readonly NewFile[], makeLink = link): Promise<void> {
  if (file === undefined) return;
  const whole = () => saveFiles(others, makeLink);
  const put: Put = (written, unfinished, path) => putInFreePlace(written, unfinished, path, makeLink);
  await saveBy(file, put, whole);
}

/** Replaces a file in one step, with the same permissions. Throws a FileError if the path now contains a link. */
export async function replaceFile(place: Place, pieces: Pieces): Promise<void> {
  await saveBy({ place, pieces }, async (written, unfinished, path) => {
    await written.chmod((await stat(path)).mode & 0o777);
    await moveIntoPlace(unfinished, path);
  });
}

type Put = (written: FileHandle, unfinished: string, path: string) => Promise<void>;

async function saveBy({ place, pieces }: NewFile, put: Put, whole?: () => Promise<void>): Promise<void> {
  try {
    const folder = await holdFolder(place);
    await saveIn(folder, place.steps.at(-1) ?? "", { pieces, put, whole }).finally(() => folder.close());
  } catch (thrown) {
    if (thrown instanceof FileError) throw thrown;
    const { path } = place;
    if (thrown instanceof SymlinkError) throw linkRefused(path, "Give another file name or folder.", { cause: thrown });
    if (!(thrown instanceof Error && "syscall" in thrown)) throw thrown;
    const why = hasCode(thrown, "EEXIST") ? "it exists already; files are not overwritten" : wordsOf(thrown);
    throw new FileError(`${JSON.stringify(path)} cannot be written: ${why}`, "Give another file name or folder.", {
      cause: thrown,
    });
  }
}

async function saveIn(
  folder: SafeDirectory,
  name: string,
  { pieces, put, whole }: Pick<NewFile, "pieces"> & { put: Put; whole: (() => Promise<void>) | undefined },
): Promise<void> {
  const unfinished = folder.at(`.${name}.${randomBytes(6).toString("hex")}.unfinished`);
  const handle = await open(unfinished, "wx+");
  try {
    // Not every system can keep a folder open, so a link may have replaced the folder. With this check, nothing is
    // written through such a link.
    await folder.check();
    for await (const piece of pieces) await handle.appendFile(piece);
    await handle.datasync();
    await whole?.();
    await folder.check();
    const path = folder.at(name);
    await put(handle, unfinished, path);
    await syncFolder(dirname(path));
  } finally {
    await handle.close();
    await removeFile(unfinished);
  }
}

async function putInFreePlace(
  written: FileHandle,
  unfinished: string,
  place: string,
  makeLink: typeof link,
): Promise<void> {
  try {
    await makeLink(unfinished, place);
  } catch (thrown) {
    if (hasCode(thrown, "EEXIST")) throw thrown;
    // File systems without hard links (FAT, some network shares) need a copy. It does not replace an existing file
    // either, but other programs can see it before it is complete.
    await copyTo(place, written);
  }
}

/** Copies an open file. Reads from its handle, because the name may already belong to another file. */
async function copyTo(place: string, written: FileHandle): Promise<void> {
  const copy = await open(place, "wx");
  let isWhole = false;
  try {
    const content = written.createReadStream({ start: 0, autoClose: false });
    for await (const piece of content) await copy.appendFile(piece);
    await copy.datasync();
    isWhole = true;
  } finally {
    // Windows cannot remove an open file, so the copy is closed first.
    await copy.close();
    if (!isWhole) await removeFile(place);
  }
}

/** Returns the message of a system error without paths, because some of them are descriptors of this process. */
function wordsOf(thrown: Error): string {
  return thrown.message.replace(/, \w+ '.*$/s, "");
}

/** Yields UTF-8 text with a byte order mark, or a workbook. Throws a FileError if a workbook cannot hold the data. */
export async function* writtenSheet(
  sheet: WrittenSheet,
  form: SheetFormat,
): AsyncGenerator<string | Uint8Array, void, undefined> {
  if (form.format === "xlsx") {
    const { writtenWorkbook } = await import("./xlsx/write-workbook.ts");
    yield* writtenWorkbook(sheet);
    return;
  }
  yield BYTE_ORDER_MARK;
  for await (const { cells } of sheet.rows) yield csvLine(cells, form.delimiter);
}

const TAB_NAMES = ["\t", "tab", "\\t"];

/** Returns the delimiter that a caller means; undefined if files cannot be written with it. */
function delimiterNamed(text: string): string | undefined {
  if (TAB_NAMES.includes(text.toLowerCase())) return "\t";
  return DELIMITERS.find((one) => one === text && one !== "|");
}
