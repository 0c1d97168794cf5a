import { readFile, realpath, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { type Base, basePathOf, readBase } from "../../plans/base/base.ts";
import { formatOfDesired, type ReadDesired, readDesired } from "../../plans/file/read-desired.ts";
import { FileError, hasCode } from "../../platform/file-error.ts";

/** More bytes than this are not held in memory. */
const MOST_BYTES = 268_435_456;

/** Reads a desired state from a path that a person gave. Throws a FileError where it cannot be read. */
export async function readDesiredFile(path: string): Promise<ReadDesired> {
  const format = formatOfDesired(path);
  const bytes = await bytesAtPath(path);
  return readDesired({ bytes, format, folder: dirname(await realpath(path)) });
}

/** The base of a file: the one that is named, else the one beside it, if there is one. Throws a FileError. */
export async function baseFor(path: string, named: string | undefined): Promise<Base | undefined> {
  if (named !== undefined) return readBase((await bytesAtPath(named)).toString("utf8"), named);
  const beside = basePathOf(path);
  return (await isThere(beside)) ? readBase((await bytesAtPath(beside)).toString("utf8"), beside) : undefined;
}

/** Whether a file or folder exists at a path. */
export async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT") || hasCode(thrown, "ENOTDIR")) return false;
    throw unreadable(path, thrown);
  }
}

/** The content of a file that a person gave. Throws a FileError where it cannot be read. */
export async function bytesAtPath(path: string): Promise<Buffer> {
  try {
    const found = await stat(path);
    if (!found.isFile()) throw new FileError(`${JSON.stringify(path)} is no file`, "Give the path of a file.");
    if (found.size > MOST_BYTES) {
      throw new FileError(
        `${JSON.stringify(path)} has more than 256 MB`,
        "Put Context IDs into files of their own (contextsFile).",
      );
    }
    return await readFile(path);
  } catch (thrown) {
    if (thrown instanceof FileError) throw thrown;
    throw unreadable(path, thrown);
  }
}

function unreadable(path: string, thrown: unknown): FileError {
  if (hasCode(thrown, "ENOENT")) return new FileError(`there is no file ${JSON.stringify(path)}`, "Check the path.");
  const why = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown reason";
  return new FileError(`${JSON.stringify(path)} cannot be read (${why})`, "Check the path, and that it may be read.", {
    cause: thrown,
  });
}
