import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import * as z from "zod";
import { isRunId } from "../../src/runs/store.ts";

/** Returns the IDs of the runs in a folder. */
export function runsIn(folder: string): readonly string[] {
  return existsSync(folder) ? readdirSync(folder).filter(isRunId) : [];
}

/** Returns how many requests the journals announce. A request is announced just before it is sent. */
export function sendsIn(folder: string): number {
  return runsIn(folder).reduce((sum, runId) => {
    const file = join(folder, runId, "journal.ndjson");
    const journal = existsSync(file) ? readFileSync(file, "utf8") : "";
    return sum + journal.split("\n").filter((line) => line.startsWith('{"t":"send"')).length;
  }, 0);
}

const record = z.looseObject({ status: z.string() });

/** Returns the status in the newest record of a run. */
export function storedStatus(folder: string, runId: string): string | undefined {
  const versions = readdirSync(join(folder, runId)).flatMap((name) => /^record\.(\d+)\.json$/.exec(name)?.[1] ?? []);
  if (versions.length === 0) return undefined;
  const newest = Math.max(...versions.map(Number));
  return record.parse(JSON.parse(readFileSync(join(folder, runId, `record.${newest}.json`), "utf8"))).status;
}
