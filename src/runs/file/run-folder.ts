import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { hasCode } from "../../platform/file-error.ts";
import { parseJson } from "../../platform/json.ts";
import type { RunSummary } from "../backend/store.ts";

/** The files in the folder of a run. */
export const FILES = {
  header: "run.json",
  started: "started",
  proposed: "proposed.ndjson",
  journal: "journal.ndjson",
  input: "input",
  removed: "removed.ndjson",
  rejects: "rejects",
  summary: "summary.json",
} as const;

/** The header of a run as it is kept. */
export const keptHeader = z.object({
  version: z.number(),
  runId: z.string(),
  kind: z.string().exactOptional(),
  call: z.unknown(),
  project: z.string(),
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  createdAt: z.number(),
  fingerprint: z.string(),
  unplanned: z.literal(true).exactOptional(),
});
const partOfHeader = keptHeader
  .pick({ createdAt: true, fingerprint: true, caller: true, project: true, environment: true })
  .partial();
/** The summary of a run as it is kept. */
export const keptSummary = z.object({
  tool: z.string(),
  caller: z.string(),
  fingerprint: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.number()),
  targetingId: z.string().exactOptional(),
  startedAt: z.number(),
  updatedAt: z.number(),
  open: z.boolean(),
});

/**
 * Whether a text has the form of a run's ID. Only such names are looked up, so that no path leads out of the folder.
 */
export function isRunId(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

/** The runs below a folder, the newest first. */
export async function runsIn(folder: string): Promise<readonly string[]> {
  return (await namesIn(folder)).filter(isRunId).sort().reverse();
}

/** The names in a folder that may not be there. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return [];
    throw thrown;
  }
}

/** Makes an empty file, where it does not exist. */
export function mark(folder: string, name: string): Promise<void> {
  return inFolder(folder, () => writeFile(join(folder, name), "", { flag: "a", mode: 0o600 }));
}

/** Writes into a folder, which is made where it is not there. */
export async function inFolder(folder: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (thrown) {
    if (!hasCode(thrown, "ENOENT")) throw thrown;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await write();
  }
}

/** Removes a mark. A mark that cannot be removed does no harm: it costs one look at its run each time. */
export async function unmark(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

/** The content of a file; undefined where it is not there. */
export async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
}

/** The summary of a run; undefined where it never came to rest, or the summary cannot be read. */
export async function readSummary(folder: string, runId: string): Promise<RunSummary | undefined> {
  const text = await readText(join(folder, runId, FILES.summary));
  return text === undefined ? undefined : keptSummary.safeParse(parseJson(text)).data;
}

/** What can be read of a run's header, even of a damaged one. */
export async function readHeader(folder: string, runId: string): Promise<z.infer<typeof partOfHeader> | undefined> {
  const text = await readText(join(folder, runId, FILES.header));
  return text === undefined ? undefined : (partOfHeader.safeParse(parseJson(text)).data ?? {});
}

/**
 * Whether a run that came to rest like this is not finished: a later call may go on with it, or ask what it came to.
 */
export function isUnfinished({ open, status, counts }: RunSummary): boolean {
  // One that was interrupted before it was planned has nothing open, and is not done either. What is unknown can be
  // asked about by the same call, also where it cannot be resumed.
  return open || status === "interrupted" || (counts.unknown ?? 0) > 0;
}
