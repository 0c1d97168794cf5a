import { randomBytes } from "node:crypto";
import { constants, copyFile, link, open, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { FileError, hasCode } from "./file-error.ts";
import { findFreePlace } from "./folders.ts";
import { formatOf } from "./open-file.ts";

/** The forms in which rows are saved. */
export type SavedFormat = "csv" | "ndjson";

/** Where a file will be, and in which form. */
export interface FreePlace {
  readonly path: string;
  readonly format: SavedFormat;
}

/**
 * A place for a new file of rows in an allowed folder. Throws a FileError where there may be none, or there is a file
 * already.
 */
export async function freePlaceFor(path: string, allowedDirs: readonly string[]): Promise<FreePlace> {
  const place = await findFreePlace(path, allowedDirs);
  const format = formatOf(path);
  if (format === "csv" || format === "ndjson") return { path: place, format };
  throw new FileError(`${JSON.stringify(path)} must end in .csv or .ndjson`, "The ending says in which form to save.");
}

/**
 * Writes a file that is there as a whole or not at all, and replaces none. Throws a FileError where it cannot be
 * written, and what the pieces throw. `makeLink` is how the operating system makes a second name for a file.
 */
export async function saveFile(path: string, pieces: AsyncIterable<string>, makeLink = link): Promise<void> {
  const unfinished = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.unfinished`);
  try {
    await writeNew(unfinished, pieces);
    await putInFreePlace(unfinished, path, makeLink);
  } catch (thrown) {
    if (!(thrown instanceof Error && "syscall" in thrown)) throw thrown;
    const why = hasCode(thrown, "EEXIST") ? "it exists already, and nothing is overwritten" : thrown.message;
    throw new FileError(`${JSON.stringify(path)} cannot be written: ${why}`, "Give another name or folder.", {
      cause: thrown,
    });
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** A link is made only where nothing is yet, which a renaming would not look at. */
async function putInFreePlace(file: string, place: string, makeLink: typeof link): Promise<void> {
  try {
    await makeLink(file, place);
  } catch (thrown) {
    if (hasCode(thrown, "EEXIST")) throw thrown;
    // FAT, exFAT and some shares have no links, and each system says so in its own way. A copy replaces nothing
    // either, but is there in part while it is made.
    await copyFile(file, place, constants.COPYFILE_EXCL);
    const handle = await open(place, "r+");
    await handle.datasync().finally(() => handle.close());
  }
}

/** A text as the pieces of a file. */
export async function* inOnePiece(text: string): AsyncGenerator<string> {
  yield text;
}

async function writeNew(file: string, pieces: AsyncIterable<string>): Promise<void> {
  const handle = await open(file, "wx");
  try {
    for await (const piece of pieces) await handle.appendFile(piece);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}
