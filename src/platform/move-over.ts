import { rename } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";

/** What trying again depends on. */
export interface PatientSystem {
  readonly platform: NodeJS.Platform;
  readonly sleep: (ms: number) => Promise<unknown>;
}

/** What moving depends on. */
interface MovingSystem extends PatientSystem {
  readonly rename: (from: string, to: string) => Promise<void>;
}

/** The system that this process runs on. */
export const THIS_SYSTEM: MovingSystem = {
  platform: process.platform,
  rename: (from, to) => rename(from, to),
  sleep: delay,
};

/** What Windows says of a file that another process reads, or that a scanner looks at. */
const HELD: readonly unknown[] = ["EPERM", "EACCES", "EBUSY"];

/** The pauses between tries, in milliseconds: about two seconds in all, well below what makes a lease count as dead. */
const PAUSES_MS = [10, 20, 40, 80, 150, 200, 250, 300, 400, 500] as const;

/**
 * Moves a file into the place of another in one step. On Windows that fails while somebody has the other one open,
 * mostly for a moment: there it is tried again for a short while. Throws what the operating system says at last.
 */
export function moveOver(from: string, to: string, system: MovingSystem = THIS_SYSTEM): Promise<void> {
  return whenFree(() => system.rename(from, to), system);
}

/**
 * Does something to a file. On Windows it is tried again for a short while where another program has the file open.
 * Throws what the operating system says at last.
 */
export async function whenFree(work: () => Promise<void>, { platform, sleep }: PatientSystem): Promise<void> {
  for (const pause of platform === "win32" ? PAUSES_MS : []) {
    try {
      return await work();
    } catch (thrown) {
      if (!isHeld(thrown)) throw thrown;
      await sleep(pause);
    }
  }
  await work();
}

function isHeld(thrown: unknown): boolean {
  return thrown instanceof Error && "code" in thrown && HELD.includes(thrown.code);
}
