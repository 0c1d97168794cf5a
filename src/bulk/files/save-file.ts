import { randomBytes } from "node:crypto";
import { link, open, rm } from "node:fs/promises";
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
 * written, and what the pieces throw.
 */
export async function saveFile(path: string, pieces: AsyncIterable<string>): Promise<void> {
  const unfinished = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.unfinished`);
  try {
    await writeNew(unfinished, pieces);
    // A link is made only where nothing is yet, which a renaming would not look at.
    await link(unfinished, path);
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
