import { lstat, readdir, realpath, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, parse, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { letterPairs, shareOf } from "../platform/by-key.ts";
import { FileError, FolderRefused, hasCode, linkRefused } from "../platform/files.ts";
import { holdFolder, type Place, SymlinkError } from "../platform/held-folder.ts";

export type { Place } from "../platform/held-folder.ts";

const NAMES_SHOWN = 5;

/**
 * Finds a file in the allowed folders. Refuses `..` and links in its path. If there is no such file, throws a FileError
 * that names the folders, and the files in them whose names are most similar.
 */
export async function findFile(given: string, allowedDirs: readonly string[]): Promise<Place> {
  const places = await placesOf(given, allowedDirs);
  const found = await firstThere(places);
  if (found !== undefined) return found;
  throw new FileError(
    `there is no file ${quoted(given)} in ${folderWords(allowedDirs)}`,
    await nearWords(given, places, allowedDirs),
  );
}

export async function findFileIfThere(given: string, allowedDirs: readonly string[]): Promise<Place | undefined> {
  return firstThere(await placesOf(given, allowedDirs));
}

async function firstThere(places: readonly Place[]): Promise<Place | undefined> {
  for (const place of places) if (await exists(place.path)) return place;
  return undefined;
}

/** Finds the place for a new file. Throws a FileError if the file already exists, or if its folder does not. */
export async function findFreePlace(given: string, allowedDirs: readonly string[]): Promise<Place> {
  const places = await placesOf(given, allowedDirs);
  for (const place of places) {
    if (await exists(place.path, "any")) {
      throw new FileError(`${quoted(given)} exists already; files are not overwritten`, "Give another file name.");
    }
  }
  for (const place of places) if (await exists(dirname(place.path), "folder")) return place;
  throw new FileError(
    `the folder for the file ${quoted(given)} does not exist`,
    `Name a file in ${folderWords(allowedDirs)}.`,
  );
}

/** Returns the places that a path may mean: at most one in each allowed folder. Refuses links below these folders. */
async function placesOf(given: string, allowedDirs: readonly string[]): Promise<readonly Place[]> {
  if (allowedDirs.length === 0) {
    throw new FolderRefused(
      given,
      "file and saveTo are refused: no folder is allowed",
      "To allow folders, list them in TARGETING_MCP_ALLOWED_DIRS; over HTTP, in the entry of the caller's token. " +
        "If no folder can be allowed, give the data in the call.",
    );
  }
  const inside = `Give a path inside ${folderWords(allowedDirs)}, without .. and links.`;
  if (given.split(/[\\/]/).includes(".."))
    throw new FileError(`${quoted(given)} contains .., which is not allowed`, inside);
  if (given.includes("\0") || given.trim() === "") throw new FileError(`${quoted(given)} is not a path`, inside);
  const places: Place[] = [];
  let absent: string | undefined;
  for (const folder of allowedDirs) {
    const root = await unlessAbsent(folder, (one) => realpath(one));
    const parts =
      partsInside(root ?? folder, resolve(root ?? folder, given)) ?? partsInside(folder, resolve(folder, given));
    if (parts === undefined) continue;
    if (root === undefined) {
      absent = folder;
      continue;
    }
    if (await hasLink(root, parts)) throw linkRefused(given, inside);
    places.push(placeIn(root, parts));
  }
  if (places.length === 0 && absent !== undefined)
    throw new FileError(
      `the allowed folder ${quoted(absent)} does not exist`,
      "Ask the person who runs this server to create it, or to correct TARGETING_MCP_ALLOWED_DIRS; over HTTP, the entry of the caller's token.",
    );
  if (places.length === 0) throw new FolderRefused(given, `${quoted(given)} is outside the allowed folders`, inside);
  return places;
}

function placeIn(root: string, steps: readonly string[]): Place {
  return { root, steps, path: join(root, ...steps) };
}

function partsInside(folder: string, path: string): readonly string[] | undefined {
  const inside = relative(folder, path);
  if (inside === "" || isAbsolute(inside)) return undefined;
  const parts = inside.split(sep);
  return parts[0] === ".." ? undefined : parts;
}

/**
 * Returns the result of `read` for a path; undefined if the path does not exist. Throws a FileError if it cannot be
 * read.
 */
async function unlessAbsent<Found>(path: string, read: (path: string) => Promise<Found>): Promise<Found | undefined> {
  try {
    return await read(path);
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT") || hasCode(thrown, "ENOTDIR")) return undefined;
    throw unreadable(path, thrown);
  }
}

async function hasLink(root: string, parts: readonly string[]): Promise<boolean> {
  for (let length = 1; length <= parts.length; length += 1) {
    const found = await unlessAbsent(join(root, ...parts.slice(0, length)), (one) => lstat(one));
    if (found === undefined) return false;
    if (found.isSymbolicLink()) return true;
  }
  return false;
}

async function exists(path: string, kind: "file" | "folder" | "any" = "file"): Promise<boolean> {
  const found = await unlessAbsent(path, (one) => lstat(one));
  if (found === undefined || kind === "any") return found !== undefined;
  if (kind === "folder") return found.isDirectory();
  if (found.isFile()) return true;
  throw new FileError(`${quoted(path)} is not a file`, "Give the path of an .xlsx, CSV, NDJSON or JSON file.");
}

function unreadable(path: string, thrown: unknown): FileError {
  const why = thrown instanceof Error && "code" in thrown ? String(thrown.code) : "unknown reason";
  return new FileError(
    `${quoted(path)} cannot be used (${why})`,
    "Check that the server has permission to read and write there.",
    { cause: thrown },
  );
}

async function nearWords(given: string, places: readonly Place[], allowedDirs: readonly string[]): Promise<string> {
  const tops = places.map(({ root }) => placeIn(root, [basename(given)]));
  const found = await Promise.all([...tops, ...places].map(filesBeside));
  const wanted = letterPairs(basename(given).toLowerCase());
  const near = [...new Set(found.flat())]
    .map((name) => ({ name, likeness: shareOf(wanted, letterPairs(name.toLowerCase())) }))
    .sort((a, b) => b.likeness - a.likeness || (a.name < b.name ? -1 : 1))
    .slice(0, NAMES_SHOWN);
  if (near.length === 0) return `There are no files directly in ${folderWords(allowedDirs)}.`;
  return `The nearest files there: ${near.map(({ name }) => quoted(name)).join(", ")}.`;
}

async function filesBeside(place: Place): Promise<readonly string[]> {
  try {
    const folder = await holdFolder(place);
    const entries = await readdir(folder.at("."), { withFileTypes: true }).finally(() => folder.close());
    return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
  } catch (thrown) {
    if (thrown instanceof SymlinkError || (thrown instanceof Error && "code" in thrown)) return [];
    throw thrown;
  }
}

function folderWords(allowedDirs: readonly string[]): string {
  return allowedDirs.map(quoted).join(" or ");
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

export interface RootGuard {
  readonly home: string;
  /** Folders with protected data. A root of the client may not contain such a folder, nor be in one. */
  readonly folders: readonly string[];
  /**
   * Files with protected data. A root of the client may not contain such a file. Nor may it be the file's folder or a
   * folder inside of it. The second rule does not apply if the file's folder contains the home folder, because then no
   * folder of the user would be allowed.
   */
  readonly files: readonly string[];
}

/**
 * Returns the folders that a client offers as its roots (MCP) and that may be used. Not allowed are the root of a disk,
 * the home folder, folders that contain it, and folders that `guard` protects.
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
