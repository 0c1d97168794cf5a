import { realpath, stat } from "node:fs/promises";
import { dirname, isAbsolute, parse, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { hasCode } from "../platform/file-error.ts";

/** What no root of a client may open: places that hold keys or runs. */
export interface RootGuard {
  /** The home folder of the person. */
  readonly home: string;
  /** Folders that no root may hold, be, or lie in. */
  readonly folders: readonly string[];
  /** Files that no root may hold; no root lies in their folders, but for the home folder. */
  readonly files: readonly string[];
}

/**
 * The folders of a client's roots that may be read: existing folders, but never the root of a disk, the home folder, or
 * what the guard names. Everything is compared without links.
 */
export async function usableRoots(uris: readonly string[], guard: RootGuard): Promise<readonly string[]> {
  const home = await realOrSame(guard.home);
  const folders = await Promise.all(guard.folders.map(realOrSame));
  const files = await Promise.all(guard.files.map(realOrSame));
  const besideFiles = files.map((file) => dirname(file)).filter((folder) => !holds(folder, home));
  const closed = [...folders, ...besideFiles];
  const found = await Promise.all(uris.map(folderOf));
  const usable = found.filter((folder) => {
    if (folder === undefined || folder === parse(folder).root || holds(folder, home)) return false;
    return (
      !closed.some((one) => holds(folder, one) || holds(one, folder)) && !files.some((file) => holds(folder, file))
    );
  });
  return [...new Set(usable.flatMap((folder) => folder ?? []))];
}

/** Whether a folder is another one, or holds it. */
function holds(folder: string, other: string): boolean {
  const inside = relative(folder, other);
  return inside === "" || (!isAbsolute(inside) && inside.split(sep)[0] !== "..");
}

async function folderOf(uri: string): Promise<string | undefined> {
  try {
    if (!uri.startsWith("file:")) return undefined;
    const path = await realpath(fileURLToPath(uri));
    return (await stat(path)).isDirectory() ? path : undefined;
  } catch {
    // It is not there, may not be looked at, or is no path of this system: it opens nothing.
    return undefined;
  }
}

async function realOrSame(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT") || hasCode(thrown, "ENOTDIR") || hasCode(thrown, "EACCES")) return path;
    throw thrown;
  }
}
