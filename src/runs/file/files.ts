import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type ByteSource, bytesOf } from "../../platform/bytes.ts";
import { makeFolder, type Pieces, replaceFile, syncFolder } from "../../platform/durable-files.ts";
import { hasCode } from "../../platform/file-error.ts";
import { removeFile } from "../../platform/remove-file.ts";
import { RunStoreError } from "../backend/store.ts";

/** What some work with a file or folder gives; undefined where that is not there. */
export function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch((thrown: unknown) => {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  });
}

/** The content of a file; undefined where it is not there. */
export function readText(file: string): Promise<string | undefined> {
  return unlessMissing(readFile(file, "utf8"));
}

/** The names in a folder that may not be there. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? [];
}

/** Makes an empty file, where it does not exist. */
export function mark(folder: string, name: string): Promise<void> {
  return inFolder(folder, () => writeFile(join(folder, name), "", { flag: "a", mode: 0o600 }));
}

/** Removes a mark. A mark that cannot be removed does no harm: it costs one look at its run each time. */
export async function unmark(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

/** Writes into a folder, which is made where it is not there. */
export async function inFolder(folder: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (thrown) {
    if (!hasCode(thrown, "ENOENT")) throw thrown;
    await makeFolder(folder);
    await write();
  }
}

/**
 * Does some work in a folder that keeps `what`. Throws a RunStoreError, which tells of the effect, where the operating
 * system refuses something.
 */
export async function usable<T>(
  folder: string,
  work: () => Promise<T>,
  what = "runs",
  effect = "; nothing was sent",
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    // The content to be kept may come from a source of its own, whose errors are passed on.
    if (!isSystemError(thrown)) throw thrown;
    throw new RunStoreError(
      `${what} cannot be kept in ${folder} (${thrown.message})${effect}`,
      "Make room, or let TARGETING_MCP_STATE_DIR name a folder that can be written.",
      { cause: thrown },
    );
  }
}

/** Whether the operating system refused something. */
function isSystemError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && "syscall" in thrown;
}

/**
 * Writes pieces to a file that only the owner can read, and replaces the file of this name when the last piece is on
 * the disk. Without pieces there is no file. Throws what the pieces or the operating system throw.
 */
export async function keepPart(file: string, pieces: Pieces): Promise<void> {
  let isEmpty = true;
  const noted = async function* () {
    for await (const piece of pieces) {
      isEmpty = false;
      yield piece;
    }
  };
  await replaceFile(file, noted());
  if (!isEmpty) return;
  await removeFile(file);
  await syncFolder(dirname(file));
}

/** The content of a file that may not be there. */
export function partIn(file: string): ByteSource {
  return async function* (pieceBytes) {
    try {
      yield* bytesOf(file)(pieceBytes);
    } catch (thrown) {
      if (!hasCode(thrown, "ENOENT")) throw thrown;
    }
  };
}
