import { open, stat } from "node:fs/promises";
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
  sheet: "sheet",
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

/**
 * The summary of a run; undefined where it never came to rest, or the summary cannot be read. It says where the other
 * files of the run do not fit it.
 */
export async function readSummary(folder: string, runId: string): Promise<RunSummary | undefined> {
  const text = await readText(join(folder, runId, FILES.summary));
  const kept = text === undefined ? undefined : keptSummary.safeParse(parseJson(text)).data;
  if (kept === undefined) return undefined;
  const { journalBytes: _, ...summary } = kept;
  return (await isDamaged(folder, runId, kept)) ? { ...summary, isDamaged: true } : summary;
}

/**
 * Whether the header or the journal of a run is damaged, as far as their ends show: what lies between is looked at when
 * it is read. To be asked after the summary was read, since a journal may grow meanwhile.
 */
export async function isDamaged(folder: string, runId: string, summary?: RunSummary): Promise<boolean> {
  const [header, journal] = await Promise.all([
    endsOf(join(folder, runId, FILES.header)),
    endsOf(join(folder, runId, FILES.journal), summary?.journalBytes),
  ]);
  if (header === undefined ? summary !== undefined || journal !== undefined : !isObject(header)) return true;
  const { succeeded = 0, alreadyDone = 0, failed = 0 } = summary?.counts ?? {};
  // Versions before did not say how long it was; what they reported as done is in it.
  const isNeeded = (summary?.journalBytes ?? succeeded + alreadyDone + failed) > 0;
  if (journal === undefined || journal.bytes === 0) return isNeeded;
  if (journal.first !== "{") return true;
  const { journalBytes = 0 } = summary ?? {};
  return journalBytes > 0 && (journal.bytes < journalBytes || journal.last !== "\n");
}

/** The length of a file, its first character, and the last one, or that before `upTo`; undefined where it is not there. */
async function endsOf(file: string, upTo?: number) {
  const handle = await unlessMissing(open(file, "r"));
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    const at = async (position: number): Promise<string> => {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, Math.max(0, position));
      return buffer.toString("latin1", 0, bytesRead);
    };
    return { bytes: size, first: await at(0), last: await at((upTo ?? size) - 1) };
  } finally {
    await handle.close();
  }
}

function isObject({ first, last }: { readonly first: string; readonly last: string }): boolean {
  return first === "{" && last === "}";
}

/** What can be read of a run's header, even of a damaged one. */
export async function readHeader(folder: string, runId: string): Promise<z.infer<typeof partOfHeader> | undefined> {
  const text = await readText(join(folder, runId, FILES.header));
  return text === undefined ? undefined : (partOfHeader.safeParse(parseJson(text)).data ?? {});
}
