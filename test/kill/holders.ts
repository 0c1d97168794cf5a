import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as z from "zod";
import { runsIn } from "./journals.ts";

const lease = z.looseObject({ pid: z.number() });

/** The holder of a lease: a number, which is larger for each new holder, and the ID of the holder's process. */
export interface Holder {
  readonly number: number;
  readonly pid: number;
}

/** A lease that a process needs to write to the project, or to execute a run. */
export type LeaseName = "project" | `run ${string}`;

/** Where two processes of the same project store their runs. */
export interface SharedPlace {
  /** The settings with which a process stores its runs here. */
  readonly settings: Readonly<Record<string, string>>;
  runs(): Promise<readonly string[]>;
  /** Returns the newest holder of a lease. Undefined if it never had one. */
  holder(name: LeaseName): Promise<Holder | undefined>;
  /** Removes everything. */
  close(): Promise<void>;
}

/** Stores runs in files, for processes with this project. */
export function placeInFiles(project: string): SharedPlace {
  const state = mkdtempSync(join(tmpdir(), "targeting-mcp-pause-"));
  const runs = join(state, "runs");
  const folder = join(state, "projects", createHash("sha256").update(project).digest("hex").slice(0, 16));
  return {
    settings: { TARGETING_MCP_STATE_DIR: state },
    runs: async () => runsIn(runs),
    holder: async (name) =>
      name === "project" ? holderIn(folder, "write") : holderIn(join(runs, name.slice("run ".length)), "driver"),
    close: () => rm(state, { recursive: true, force: true }),
  };
}

/** Returns the newest holder of a lease, according to the files in a folder; undefined if it never had a holder. */
function holderIn(folder: string, name: string): Holder | undefined {
  try {
    const numbers = readdirSync(folder).flatMap((file) => {
      const number = file.startsWith(`${name}.lease.`) ? Number(file.split(".").at(-1)) : Number.NaN;
      return Number.isSafeInteger(number) ? [number] : [];
    });
    const number = Math.max(...numbers);
    const { pid } = lease.parse(JSON.parse(readFileSync(join(folder, `${name}.lease.${number}`), "utf8")));
    return { number, pid };
  } catch {
    // The folder does not exist yet, or the file was replaced while it was read.
    return undefined;
  }
}
