import { rename } from "node:fs/promises";
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
export const THIS_SYSTEM: MovingSystem = {
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
export function moveOver(from: string, to: string, system: MovingSystem = THIS_SYSTEM): Promise<void> {
  return whenFree(() => system.rename(from, to), system);
}

/**
 * Runs an operation on a file. On Windows it is tried again for about two seconds while another program has the file
 * open. Throws the last error of the operating system.
 */
export async function whenFree(work: () => Promise<void>, { platform, sleep }: PatientSystem): Promise<void> {
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
