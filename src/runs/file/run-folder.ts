import { stat } from "node:fs/promises";
import { join } from "node:path";
import type * as z from "zod";
import { parseJson } from "../../platform/json.ts";
import { isRunId, keptHeader, keptSummary } from "../backend/kept.ts";
import type { RunSummary } from "../backend/store.ts";
import { namesIn, readText, unlessMissing } from "./files.ts";

/** The files in the folder of a run. */
export const FILES = {
  header: "run.json",
  started: "started",
  proposed: "proposed.ndjson",
  journal: "journal.ndjson",
  input: "input",
  removed: "removed.ndjson",
  former: "former.ndjson",
  rejects: "rejects",
  summary: "summary.json",
} as const;

const partOfHeader = keptHeader
  .pick({ createdAt: true, fingerprint: true, caller: true, project: true, environment: true })
  .partial();
/** The runs below a folder, the newest first. */
export async function runsIn(folder: string): Promise<readonly string[]> {
  return (await namesIn(folder)).filter(isRunId).sort().reverse();
}

/** Whether a run was ever started: its journal says so, too, where a power failure has taken the mark away. */
export async function isStarted(folder: string, runId: string): Promise<boolean> {
  const sizes = [FILES.started, FILES.journal].map((file) => unlessMissing(stat(join(folder, runId, file))));
  const [mark, journal] = await Promise.all(sizes);
  return mark !== undefined || (journal?.size ?? 0) > 0;
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
