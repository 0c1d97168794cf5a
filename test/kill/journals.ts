import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRunId } from "../../src/runs/store.ts";

/** The runs that a folder holds. */
export function runsIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder).filter(isRunId) : [];
}

/** Requests that journals on the disk say were about to be sent. */
export function sendsIn(folder: string): number {
  return runsIn(folder).reduce((sum, runId) => {
    const file = join(folder, runId, "journal.ndjson");
    const journal = existsSync(file) ? readFileSync(file, "utf8") : "";
    return sum + journal.split("\n").filter((line) => line.startsWith('{"t":"send"')).length;
  }, 0);
}
