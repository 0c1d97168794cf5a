import { type FileHandle, rename, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** The parts of the operating system that retries depend on; tests replace them. */
export interface PatientSystem {
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

/** Windows error codes for a file that another process or a scanner has open. */
const HELD: readonly unknown[] = ["EPERM", "EACCES", "EBUSY"];

/** The pauses between attempts in milliseconds: about two seconds in total, far less than the expiry of a lease. */
const PAUSES_MS = [10, 20, 40, 80, 150, 200, 250, 300, 400, 500] as const;

/**
 * Atomically replaces an existing file. On Windows, retries for two seconds while another program has the file open.
 */
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

/** A file cannot be read or written. `message` is the problem, `remedy` the next step for the user. */
export class FileError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** A path is outside all folders that the settings allow. */
export class FolderRefused extends FileError {
  readonly path: string;
  constructor(path: string, message: string, remedy: string) {
    super(message, remedy);
    this.path = path;
  }
}

/** Runs `work` with an opened file, and closes it afterwards. */
export async function withHandle<T>(
  opening: Promise<FileHandle>,
  work: (handle: FileHandle) => Promise<T>,
): Promise<T> {
  const handle = await opening;
  return work(handle).finally(() => handle.close());
}

export function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === code;
}

/** Returns the error for a path that contains a symbolic link now, or contained one when the file was opened. */
export function linkRefused(path: string, remedy: string, options?: ErrorOptions): FileError {
  return new FileError(`${JSON.stringify(path)} goes through a link, which is refused`, remedy, options);
}
