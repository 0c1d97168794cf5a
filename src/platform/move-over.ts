import { rename } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** The operations of the system that moving uses. */
export interface MovingSystem {
  readonly platform: NodeJS.Platform;
  readonly rename: (from: string, to: string) => Promise<void>;
  readonly sleep: (ms: number) => Promise<unknown>;
}

const THIS_SYSTEM: MovingSystem = { platform: process.platform, rename: (from, to) => rename(from, to), sleep: delay };

/** Error codes of Windows for a file that another process or a scanner has open. */
const HELD: readonly unknown[] = ["EPERM", "EACCES", "EBUSY"];

/** The pauses between tries, in milliseconds: about two seconds in all, well below what makes a lease count as dead. */
const PAUSES_MS = [10, 20, 40, 80, 150, 200, 250, 300, 400, 500] as const;

/**
 * Replaces a file by another in one step. On Windows this fails while a process has the other file open, mostly for a
 * moment, so that it is tried again for about two seconds there. Throws the last error of the operating system.
 */
export async function moveOver(from: string, to: string, system: MovingSystem = THIS_SYSTEM): Promise<void> {
  for (const pause of system.platform === "win32" ? PAUSES_MS : []) {
    try {
      return await system.rename(from, to);
    } catch (thrown) {
      if (!isHeld(thrown)) throw thrown;
      await system.sleep(pause);
    }
  }
  await system.rename(from, to);
}

function isHeld(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && HELD.includes(thrown.code);
}
