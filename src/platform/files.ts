import { rename, rm } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** The system that an operation on a file is tried again on. */
export interface PatientSystem {
  readonly platform: NodeJS.Platform;
  readonly sleep: (ms: number) => Promise<unknown>;
}

/** The operations of the system that moving uses. */
interface MovingSystem extends PatientSystem {
  readonly rename: (from: string, to: string) => Promise<void>;
}

/** The system that this process runs on. */
const THIS_SYSTEM: MovingSystem = {
  platform: process.platform,
  rename: (from, to) => rename(from, to),
  sleep: delay,
};

/** Error codes of Windows for a file that another process or a scanner has open. */
const HELD: readonly unknown[] = ["EPERM", "EACCES", "EBUSY"];

/** The pauses between tries, in milliseconds: about two seconds in all, well below what makes a lease count as dead. */
const PAUSES_MS = [10, 20, 40, 80, 150, 200, 250, 300, 400, 500] as const;

/**
 * Replaces a file by another in one step. On Windows this fails while a process has the other file open, mostly for a
 * moment, so that it is tried again for about two seconds there. Throws the last error of the operating system.
 */
export function moveIntoPlace(from: string, to: string, system: MovingSystem = THIS_SYSTEM): Promise<void> {
  return retryWhileLocked(() => system.rename(from, to), system);
}

/**
 * Runs an operation on a file. On Windows it is tried again for about two seconds while another program has the file
 * open. Throws the last error of the operating system.
 */
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

/**
 * Removes a file; nothing where it is not there. On Windows that fails while another program has it open, mostly for a
 * moment: there it is tried again for a short while. Throws what the operating system says at last.
 */
export function removeFile(file: string, system: PatientSystem = THIS_SYSTEM): Promise<void> {
  return retryWhileLocked(() => rm(file, { force: true }), system);
}

/** A file cannot be read or written: what is wrong, and what to do. */
export class FileError extends Error {
  readonly remedy: string;
  constructor(message: string, remedy: string, options?: ErrorOptions) {
    super(message, options);
    this.remedy = remedy;
  }
}

/** The error for a path that lies in no folder which may be used. */
export class FolderRefused extends FileError {
  readonly path: string;
  constructor(path: string, message: string, remedy: string) {
    super(message, remedy);
    this.path = path;
  }
}

/** Whether something thrown is an error of the operating system with this code. */
export function hasCode(thrown: unknown, code: string): boolean {
  return thrown instanceof Error && "code" in thrown && thrown.code === code;
}

/** The error for a path that goes through a link, or did so by the time it was used. */
export function linkRefused(path: string, remedy: string, options?: ErrorOptions): FileError {
  return new FileError(`${JSON.stringify(path)} goes through a link, which is refused`, remedy, options);
}
