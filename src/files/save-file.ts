import { randomBytes } from "node:crypto";
import { type FileHandle, link, open } from "node:fs/promises";
import { FileError, hasCode, linkRefused } from "../platform/file-error.ts";
import { type HeldFolder, holdFolder, LinkOnTheWay, type Place } from "../platform/held-folder.ts";
import { removeFile } from "../platform/remove-file.ts";
import { findFreePlace } from "./folders.ts";
import { formatOf } from "./open-file.ts";

/** The forms in which rows are saved. */
export type SavedFormat = "csv" | "ndjson";

/** Where a file will be, and in which form. */
export interface FreePlace extends Place {
  readonly format: SavedFormat;
}

/**
 * A place for a new file of rows in an allowed folder. Throws a FileError where there may be none, or there is a file
 * already.
 */
export async function freePlaceFor(path: string, allowedDirs: readonly string[]): Promise<FreePlace> {
  const place = await findFreePlace(path, allowedDirs);
  const format = formatOf(path);
  if (format === "csv" || format === "ndjson") return { ...place, format };
  throw new FileError(`${JSON.stringify(path)} must end in .csv or .ndjson`, "The ending says in which form to save.");
}

/**
 * Writes a file that is there as a whole or not at all, and replaces none. Throws a FileError where it cannot be
 * written, or a link leads there by then, and what the pieces throw. `makeLink` is how the operating system makes a
 * second name for a file.
 */
export async function saveFile(place: Place, pieces: AsyncIterable<string>, makeLink = link): Promise<void> {
  try {
    const folder = await holdFolder(place);
    await saveIn(folder, place.steps.at(-1) ?? "", pieces, makeLink).finally(() => folder.close());
  } catch (thrown) {
    const { path } = place;
    if (thrown instanceof LinkOnTheWay) throw linkRefused(path, "Give another name or folder.", { cause: thrown });
    if (!(thrown instanceof Error && "syscall" in thrown)) throw thrown;
    const why = hasCode(thrown, "EEXIST") ? "it exists already, and nothing is overwritten" : wordsOf(thrown);
    throw new FileError(`${JSON.stringify(path)} cannot be written: ${why}`, "Give another name or folder.", {
      cause: thrown,
    });
  }
}

async function saveIn(
  folder: HeldFolder,
  name: string,
  pieces: AsyncIterable<string>,
  makeLink: typeof link,
): Promise<void> {
  const unfinished = folder.at(`.${name}.${randomBytes(6).toString("hex")}.unfinished`);
  const handle = await open(unfinished, "wx+");
  try {
    // Where a folder cannot be held: not a byte goes to where a link leads.
    await folder.check();
    for await (const piece of pieces) await handle.appendFile(piece);
    await handle.datasync();
    // The answer names the path: it must still be the path of this folder.
    await folder.check();
    await putInFreePlace(handle, unfinished, folder.at(name), makeLink);
  } finally {
    await handle.close();
    await removeFile(unfinished);
  }
}

/** A link is made only where nothing is yet, which a renaming would not look at. */
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
    // either, but is there in part while it is made.
    await copyTo(place, written);
  }
}

/** Copies what was written, whatever lies under its name by now; of a copy that fails nothing stays. */
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

/** What the operating system says, without the paths that it names: some are descriptors of ours. */
function wordsOf(thrown: Error): string {
  return thrown.message.replace(/, \w+ '.*$/s, "");
}

/** A text as the pieces of a file. */
export async function* inOnePiece(text: string): AsyncGenerator<string> {
  yield text;
}
