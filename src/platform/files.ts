import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, link, mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** The parts of the operating system that are used to retry locked files. Tests replace them. */
interface PatientSystem {
  readonly platform: NodeJS.Platform;
  readonly sleep: (ms: number) => Promise<unknown>;
}

interface MovingSystem extends PatientSystem {
  readonly rename: (from: string, to: string) => Promise<void>;
}

const THIS_SYSTEM: MovingSystem = {
  platform: process.platform,
  rename: (from, to) => rename(from, to),
  sleep: delay,
};

/** The error codes of Windows for a file that another program, such as a virus scanner, has open. */
const HELD: readonly unknown[] = ["EPERM", "EACCES", "EBUSY"];

/** The pauses between attempts to replace or remove a file, in ms: two seconds in all, much less than a lease lasts. */
const PAUSES_MS = [10, 20, 40, 80, 150, 200, 250, 300, 400, 500] as const;

/** Replaces a file in one step. On Windows, retries for two seconds while another program has the file open. */
export function moveIntoPlace(from: string, to: string, system: MovingSystem = THIS_SYSTEM): Promise<void> {
  return retryWhileLocked(() => system.rename(from, to), system);
}

async function retryWhileLocked(work: () => Promise<void>, { platform, sleep }: PatientSystem): Promise<void> {
  for (const pause of platform === "win32" ? PAUSES_MS : []) {
    try {
      return await work();
    } catch (thrown) {
      if (!(thrown instanceof Error && "code" in thrown && HELD.includes(thrown.code))) throw thrown;
      await sleep(pause);
    }
  }
  await work();
}

export function removeFile(file: string, system: PatientSystem = THIS_SYSTEM): Promise<void> {
  return retryWhileLocked(() => rm(file, { force: true }), system);
}

/** Thrown if a file cannot be read, written or used. `message` names the problem, and `remedy` the next step. */
export class FileError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** Thrown if a path is outside all folders that this caller may use, or if none is allowed. */
export class FolderRefused extends FileError {
  readonly path: string;
  constructor(path: string, message: string, remedy: string) {
    super(message, remedy);
    this.path = path;
  }
}

export async function withHandle<T>(
  opening: Promise<FileHandle>,
  work: (handle: FileHandle) => Promise<T>,
): Promise<T> {
  const handle = await opening;
  return work(handle).finally(() => handle.close());
}

/** Opens a regular file. For a folder, a pipe or a device, throws EISDIR: reading a pipe could wait forever. */
export async function openFile(path: string, flags = constants.O_RDONLY): Promise<FileHandle> {
  const handle = await open(path, flags | constants.O_NONBLOCK, OWNER_ONLY);
  if ((await handle.stat()).isFile()) return handle;
  await handle.close();
  throw Object.assign(new Error(`${path} is not a file`), { code: "EISDIR", syscall: "open" });
}

/** Reads a regular file as UTF-8. For anything else, throws the error of `openFile`. */
export function readTextFile(path: string): Promise<string> {
  return withHandle(openFile(path), (handle) => handle.readFile("utf8"));
}

/** Returns whether an error says that a path is not of the expected kind, such as a folder instead of a file. */
export function isOtherKind(thrown: unknown): boolean {
  return ["EISDIR", "ENOTDIR", "ENXIO"].some((code) => hasCode(thrown, code));
}

export function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === code;
}

/** Returns the result of `work`, or undefined if it fails with an expected error. */
export async function undefinedIf<T>(
  isExpected: (thrown: unknown) => boolean,
  work: Promise<T>,
): Promise<T | undefined> {
  try {
    return await work;
  } catch (thrown) {
    if (isExpected(thrown)) return undefined;
    throw thrown;
  }
}

export function undefinedIfFileError<T>(work: Promise<T>): Promise<T | undefined> {
  return undefinedIf((thrown) => thrown instanceof FileError, work);
}

/** Returns the result of work with a file, or undefined if there is no such file or folder. */
export function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  return undefinedIf((thrown) => hasCode(thrown, "ENOENT"), work);
}

/** Returns the error for a path that contains a symbolic link, or that was replaced between its check and its use. */
export function linkRefused(path: string, remedy: string, options?: ErrorOptions): FileError {
  return new FileError(`${JSON.stringify(path)} contains a link, which is refused`, remedy, options);
}

/** The content of a file as texts and byte arrays, which are written one after another. */
export type Pieces = AsyncIterable<string | Uint8Array> | Iterable<string | Uint8Array>;

const OWNER_ONLY = 0o600;

/** The error codes of systems that cannot sync folders: Windows, vfat and some network file systems. */
const NOT_SYNCED: readonly unknown[] = ["EPERM", "EACCES", "EISDIR", "EINVAL", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/** Syncs a folder, so that its entries survive a power failure. Returns false if the system cannot do that. */
export async function syncFolder(folder: string): Promise<boolean> {
  try {
    await withHandle(open(folder, "r"), (handle) => handle.sync());
    return true;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && NOT_SYNCED.includes(thrown.code)) return false;
    throw thrown;
  }
}

/** Creates a folder and its missing parents, readable only by the owner. Syncs each of them to the disk. */
export async function makeFolder(folder: string): Promise<void> {
  const first = await mkdir(folder, { recursive: true, mode: 0o700 });
  if (first === undefined) return;
  for (let made = resolve(folder); made.length >= resolve(first).length; made = dirname(made)) {
    await syncFolder(dirname(made));
  }
}

/** Replaces a file in one step, on the disk: after a power failure, it has the old or the new content. */
export async function replaceFile(file: string, pieces: string | Pieces, mode = OWNER_ONLY): Promise<void> {
  const fresh = besideOf(file);
  try {
    await writeWhole(fresh, typeof pieces === "string" ? [pieces] : pieces, mode);
    await moveIntoPlace(fresh, file);
  } catch (thrown) {
    await removeFile(fresh);
    throw thrown;
  }
  await syncFolder(dirname(file));
}

/**
 * Creates a file. Resolves to true when it is on the disk, or to false if it already exists. On file systems without
 * hard links, other processes may see an empty file for a moment.
 */
export async function createFile(file: string, text: string): Promise<boolean> {
  const fresh = besideOf(file);
  try {
    await writeWhole(fresh, [text], OWNER_ONLY);
    const isMade = await isCreated(link(fresh, file)).catch(() =>
      isCreated(writeFile(file, text, { flag: "wx", mode: OWNER_ONLY, flush: true })),
    );
    await syncFolder(dirname(file));
    return isMade;
  } finally {
    await removeFile(fresh);
  }
}

/** Appends a line to a file and syncs it. If a power failure has cut off the last line, ends that line first. */
export async function appendLine(file: string, line: string): Promise<void> {
  const isNew = await withHandle(openFile(file, APPENDING), async (handle) => {
    const { size } = await handle.stat();
    const { buffer } = await handle.read(Buffer.alloc(1), 0, 1, Math.max(0, size - 1));
    const isCutOff = size > 0 && buffer[0] !== NEWLINE;
    await handle.appendFile(`${isCutOff ? "\n" : ""}${line}\n`);
    await handle.datasync();
    return size === 0;
  });
  if (isNew) await syncFolder(dirname(file));
}

const NEWLINE = 0x0a;
export const APPENDING = constants.O_RDWR | constants.O_CREAT | constants.O_APPEND;

/** Returns a temporary name in the same folder, for a file that is being written. */
function besideOf(file: string): string {
  return join(dirname(file), `${randomUUID()}.new`);
}

function writeWhole(file: string, pieces: Pieces, mode: number): Promise<void> {
  return withHandle(open(file, "wx", mode), async (handle) => {
    for await (const piece of pieces) await handle.appendFile(piece);
    await handle.datasync();
  });
}

/** Waits until a file is created. Resolves to false if it already existed. */
export async function isCreated(making: Promise<void>): Promise<boolean> {
  try {
    await making;
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "EEXIST")) return false;
    throw thrown;
  }
}

const PIECE_CHARACTERS = 65_536;

/** Combines short texts into longer ones, to write to the disk less often. Byte arrays stay as they are. */
export async function* inPieces<Piece extends string | Uint8Array>(
  pieces: AsyncIterable<Piece> | Iterable<Piece>,
): AsyncGenerator<Piece | string> {
  let text = "";
  for await (const piece of pieces) {
    const isText = typeof piece === "string";
    if (isText) text += piece;
    if (text !== "" && (!isText || text.length >= PIECE_CHARACTERS)) {
      yield text;
      text = "";
    }
    if (!isText) yield piece;
  }
  if (text !== "") yield text;
}
