import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";

const lease = z.looseObject({ pid: z.number() });

/** Who holds a lease: the number that grows with each holding, and the process. */
export interface Holder {
  readonly number: number;
  readonly pid: number;
}

/** The newest holder of the lease of this name in a folder, as the files say; undefined where there is none. */
export function holderIn(folder: string, name: string): Holder | undefined {
  try {
    const numbers = readdirSync(folder).flatMap((file) => {
      const number = file.startsWith(`${name}.lease.`) ? Number(file.split(".").at(-1)) : Number.NaN;
      return Number.isSafeInteger(number) ? [number] : [];
    });
    const number = Math.max(...numbers);
    const { pid } = lease.parse(JSON.parse(readFileSync(join(folder, `${name}.lease.${number}`), "utf8")));
    return { number, pid };
  } catch {
    // No folder yet, or a file that was replaced while it was read.
    return undefined;
  }
}
