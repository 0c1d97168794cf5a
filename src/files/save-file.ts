import { randomBytes } from "node:crypto";
import { type FileHandle, link, open, stat } from "node:fs/promises";
import { dirname, extname } from "node:path";
import { syncFolder } from "../platform/durable-files.ts";
import { FileError, hasCode, linkRefused, moveIntoPlace, removeFile } from "../platform/files.ts";
import { holdFolder, type Place, type SafeDirectory, SymlinkError } from "../platform/held-folder.ts";
import { findFreePlace } from "./folders.ts";
import { delimiterNamed } from "./sheet-writing.ts";
import type { SheetFormat } from "./written-rows.ts";

/** How rows are saved. */
export type SavedForm = SheetFormat | { readonly format: "ndjson" };

/** Where a file will be, and in which form. */
export interface FreePlace extends Place {
  readonly form: SavedForm;
}

/**
 * A place for a new file of rows in an allowed folder; `delimiter` as an argument names it. Throws a FileError where
 * there may be none, there is a file already, or its form has no delimiter.
 */
export async function freePlaceFor(
  path: string,
  allowedDirs: readonly string[],
  delimiter?: string,
): Promise<FreePlace> {
  const place = await findFreePlace(path, allowedDirs);
  return { ...place, form: savedForm(path, delimiter) };
}

/** The form that the name of a file says. Throws a FileError where it says none, or has no delimiter that is given. */
export function savedForm(path: string, delimiter: string | undefined): SavedForm {
  const ending = extname(path).toLowerCase();
  const between = delimiter === undefined ? undefined : delimiterNamed(delimiter);
  if (delimiter !== undefined && (between === undefined || ending !== ".csv")) {
    throw new FileError(
      `the delimiter ${JSON.stringify(delimiter)} does not go with ${JSON.stringify(path)}`,
      'delimiter is for .csv files: ",", ";" or "tab".',
    );
  }
  if (ending === ".csv") return { format: "csv", delimiter: between ?? "," };
  if (ending === ".tsv") return { format: "csv", delimiter: "\t" };
  if (ending === ".xlsx") return { format: "xlsx" };
  if (ending === ".ndjson" || ending === ".jsonl") return { format: "ndjson" };
  throw new FileError(
    `${JSON.stringify(path)} must end in .xlsx, .csv, .tsv or .ndjson`,
    "The ending says in which form to save.",
  );
}

/** A file that is to be written. */
interface NewFile {
  readonly place: Place;
  readonly pieces: AsyncIterable<string | Uint8Array>;
}

/**
 * Writes a file completely or not at all, and replaces none. Throws a FileError where it cannot be
 * written, or its path leads through a link by then, and the errors of `pieces`. `makeLink` is how the operating system
 * makes a second name for a file.
 */
export function saveFile(place: Place, pieces: NewFile["pieces"], makeLink = link): Promise<void> {
  return saveFiles([{ place, pieces }], makeLink);
}

/**
 * Writes files, one after another, and gives them their names once the last one is whole, the first at the very end:
 * where it is there, the others are. Throws as `saveFile`.
 */
export async function saveFiles([file, ...others]: readonly NewFile[], makeLink = link): Promise<void> {
  if (file === undefined) return;
  // The others come between its last byte and its name, so that a name means that the files before it are there.
  const whole = () => saveFiles(others, makeLink);
  const put: Put = (written, unfinished, path) => putInFreePlace(written, unfinished, path, makeLink);
  await saveBy(file, put, whole);
}

/** Replaces a file that is there in one step; it keeps its mode. Throws as `saveFile` does. */
export async function replaceFile(place: Place, pieces: AsyncIterable<string>): Promise<void> {
  await saveBy({ place, pieces }, async (written, unfinished, path) => {
    await written.chmod((await stat(path)).mode & 0o777);
    await moveIntoPlace(unfinished, path);
  });
}

/** Gives a written file its name. */
type Put = (written: FileHandle, unfinished: string, path: string) => Promise<void>;

async function saveBy({ place, pieces }: NewFile, put: Put, whole?: () => Promise<void>): Promise<void> {
  try {
    const folder = await holdFolder(place);
    await saveIn(folder, place.steps.at(-1) ?? "", { pieces, put, whole }).finally(() => folder.close());
  } catch (thrown) {
    if (thrown instanceof FileError) throw thrown;
    const { path } = place;
    if (thrown instanceof SymlinkError) throw linkRefused(path, "Give another name or folder.", { cause: thrown });
    if (!(thrown instanceof Error && "syscall" in thrown)) throw thrown;
    const why = hasCode(thrown, "EEXIST") ? "it exists already, and nothing is overwritten" : wordsOf(thrown);
    throw new FileError(`${JSON.stringify(path)} cannot be written: ${why}`, "Give another name or folder.", {
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
    // Where the system cannot hold a folder open: no byte may be written through a link.
    await folder.check();
    for await (const piece of pieces) await handle.appendFile(piece);
    await handle.datasync();
    await whole?.();
    // The answer names the path: it must still be the path of this folder.
    await folder.check();
    const path = folder.at(name);
    await put(handle, unfinished, path);
    await syncFolder(dirname(path));
  } finally {
    await handle.close();
    await removeFile(unfinished);
  }
}

/** Makes a hard link, which fails where a file exists already; a rename would replace it. */
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
    // FAT, exFAT and some shares have no links, and each system says so in its own way. A copy replaces nothing
    // either, but is visible while it is incomplete.
    await copyTo(place, written);
  }
}

/** Copies from the open handle, since its name may lead elsewhere by now. A failed copy is removed. */
async function copyTo(place: string, written: FileHandle): Promise<void> {
  const copy = await open(place, "wx");
  let isWhole = false;
  try {
    const content = written.createReadStream({ start: 0, autoClose: false });
    for await (const piece of content) await copy.appendFile(piece);
    await copy.datasync();
    isWhole = true;
  } finally {
    // Windows removes nothing that is open.
    await copy.close();
    if (!isWhole) await removeFile(place);
  }
}

/** The message of the operating system without its paths: some of them are descriptors of this process. */
function wordsOf(thrown: Error): string {
  return thrown.message.replace(/, \w+ '.*$/s, "");
}

/** A text as the pieces of a file. */
export async function* inOnePiece(text: string): AsyncGenerator<string> {
  yield text;
}
