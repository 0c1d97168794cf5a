import { createHash } from "node:crypto";
import { constants, existsSync } from "node:fs";
import { type FileHandle, lstat, open } from "node:fs/promises";
import { join } from "node:path";
import { FileError, hasCode, linkRefused, openFile } from "./files.ts";

/** Reads the same bytes from their beginning at each call. Files are read in pieces of at most `pieceBytes`. */
export type ByteSource = (pieceBytes?: number) => AsyncIterable<Uint8Array>;

const PIECE_BYTES = 65_536;
const LARGE_PIECE_BYTES = 524_288;

/** Reads one of this program's own files. Throws the system's errors, also if the file is a symbolic link. */
export function bytesOf(path: string): ByteSource {
  return (pieceBytes) => piecesOf(() => openFile(path, constants.O_RDONLY | constants.O_NOFOLLOW), pieceBytes);
}

/** Reads a file of the caller. Throws a FileError if it cannot be opened, or if its path now has a link. */
export function bytesAt(place: Place): ByteSource {
  return (pieceBytes) => piecesOf(() => openPlace(place), pieceBytes);
}

export function bytesIn(content: Uint8Array): ByteSource {
  return async function* () {
    yield content;
  };
}

const CHANGED = "The path changed while it was in use. Call again when no other program changes it.";

async function openPlace(place: Place): Promise<FileHandle> {
  try {
    const folder = await holdFolder(place);
    return await openInside(folder, place.steps.at(-1) ?? "").finally(() => folder.close());
  } catch (thrown) {
    if (thrown instanceof SymlinkError) throw linkRefused(place.path, CHANGED, { cause: thrown });
    if (!(thrown instanceof Error && "code" in thrown)) throw thrown;
    const remedy = hasCode(thrown, "EACCES") ? "Check that the server has permission to read it." : CHANGED;
    throw new FileError(`${JSON.stringify(place.path)} cannot be read (${String(thrown.code)})`, remedy, {
      cause: thrown,
    });
  }
}

async function* piecesOf(opened: () => Promise<FileHandle>, pieceBytes = PIECE_BYTES): AsyncGenerator<Uint8Array> {
  const handle = await opened();
  for await (const chunk of handle.createReadStream({ highWaterMark: pieceBytes })) {
    const bytes: unknown = chunk;
    if (bytes instanceof Uint8Array) yield bytes;
  }
}

/** Returns the SHA-256 of the bytes in hexadecimal. Equal digests mean equal bytes. */
export async function digestOf(bytes: ByteSource): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of bytes(LARGE_PIECE_BYTES)) hash.update(chunk);
  return hash.digest("hex");
}

/** Yields the bytes of a file. Throws a FileError at the end if their hash is not `digest`: the file has changed. */
export async function* unchanged(bytes: ByteSource, digest: string): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  for await (const chunk of bytes(LARGE_PIECE_BYTES)) {
    hash.update(chunk);
    yield chunk;
  }
  if (hash.digest("hex") === digest) return;
  throw new FileError(
    "the file changed while it was being read; nothing was sent",
    "Call again when the file is complete.",
  );
}

export async function wholeOf(bytes: ByteSource): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  for await (const chunk of bytes(LARGE_PIECE_BYTES)) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A path in a trusted folder, in which no part may be a symbolic link. */
export interface Place {
  readonly root: string;
  /** The names of the folders below `root`, followed by the name of the file. */
  readonly steps: readonly string[];
  readonly path: string;
}

/** Thrown if a part of a path is a symbolic link, is of the wrong kind, or was replaced since it was checked. */
export class SymlinkError extends Error {}

/** A folder for safe work: if a link or another folder replaces it, work is not redirected, or `check` notices. */
export interface SafeDirectory {
  /** Whether the paths of `at` use an open handle of the folder. Otherwise, call `check` before and after each use. */
  readonly isFirm: boolean;
  /** Returns the path with which a file of the folder can be opened, created, linked or removed. */
  readonly at: (name: string) => string;
  /** Throws an error, mostly a SymlinkError, if the path no longer leads to this folder. */
  readonly check: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Linux: opens a folder only to look up paths in it, without read permission. Node exports no such constant. */
const O_PATH = 0o10_000_000;
/** macOS: refuses a path that contains a link. Older versions ignore this flag. Node exports no such constant. */
const O_NOFOLLOW_ANY = 0x2000_0000;
/** On Linux, `/proc/self/fd/N/name` is the file `name` in the open folder N (`openat`). */
const DESCRIPTORS = "/proc/self/fd";
const HOLDS_DESCRIPTORS = process.platform === "linux" && existsSync(DESCRIPTORS);

/** Opens a folder without following links. Unless the result is `isFirm`, call `check` before and after each use. */
export async function holdFolder(place: Place, isFirm = HOLDS_DESCRIPTORS): Promise<SafeDirectory> {
  const folders = place.steps.slice(0, -1);
  const identity = () => identityOf(place.root, folders);
  if (!isFirm) {
    const held = await identity();
    const path = join(place.root, ...folders);
    return { isFirm, at: (name) => join(path, name), check: () => same(identity, held), close: async () => undefined };
  }
  const handle = await descend(place.root, folders);
  return {
    isFirm,
    at: (name) => `${DESCRIPTORS}/${handle.fd}/${name}`,
    check: async () => {
      const { dev, ino } = await handle.stat({ bigint: true });
      await same(identity, `${dev}:${ino}`);
    },
    close: () => handle.close(),
  };
}

/** Opens a regular file in a folder. Throws a SymlinkError for anything else, such as a link or a pipe. */
export async function openInside(folder: SafeDirectory, name: string): Promise<FileHandle> {
  const path = folder.at(name);
  const onMac = process.platform === "darwin" ? O_NOFOLLOW_ANY : 0;
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK | onMac;
  const handle = await linksRefused(open(path, flags));
  try {
    const opened = await handle.stat({ bigint: true });
    if (!opened.isFile()) throw new SymlinkError(`${name} is not a file`);
    if (folder.isFirm) return handle;
    await folder.check();
    const { dev, ino } = await lstat(path, { bigint: true });
    if (dev !== opened.dev || ino !== opened.ino) throw new SymlinkError(`${name} was replaced while it was opened`);
    return handle;
  } catch (thrown) {
    await handle.close();
    throw thrown;
  }
}

async function descend(root: string, folders: readonly string[]): Promise<FileHandle> {
  const flags = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  let folder = await linksRefused(open(root, flags));
  for (const name of folders) {
    const outer = folder;
    folder = await linksRefused(open(`${DESCRIPTORS}/${outer.fd}/${name}`, flags)).finally(() => outer.close());
  }
  return folder;
}

/** Returns the device and inode of a folder, to notice a replacement. Throws a SymlinkError for a link in the path. */
async function identityOf(root: string, folders: readonly string[]): Promise<string> {
  let identity = "";
  for (let length = 0; length <= folders.length; length += 1) {
    const found = await lstat(join(root, ...folders.slice(0, length)), { bigint: true });
    if (!found.isDirectory()) throw new SymlinkError(`${folders[length - 1] ?? root} is not a folder`);
    identity = `${found.dev}:${found.ino}`;
  }
  return identity;
}

async function same(identity: () => Promise<string>, held: string): Promise<void> {
  if ((await identity()) !== held) throw new SymlinkError("the folder was replaced while it was used");
}

async function linksRefused<Opened>(opening: Promise<Opened>): Promise<Opened> {
  try {
    return await opening;
  } catch (thrown) {
    const code = thrown instanceof Error && "code" in thrown ? thrown.code : undefined;
    // If a path contains a link that is not allowed, the system reports ELOOP (for a file) or ENOTDIR (for a folder).
    if (code === "ELOOP" || code === "ENOTDIR")
      throw new SymlinkError("a part of the path is a link", { cause: thrown });
    throw thrown;
  }
}
