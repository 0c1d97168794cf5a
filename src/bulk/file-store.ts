import { mkdir, open, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { parseJson } from "../api/answers.ts";
import { isApiError } from "../api/errors.ts";
import { moveOver } from "../disk/move-over.ts";
import { ulidTime } from "../spec/ulid.ts";
import { FileError, hasCode } from "./files/file-error.ts";
import { openJournal, readJournal, START_ANEW } from "./journal-file.ts";
import { isLeased, tryLease } from "./lease.ts";
import type { RunForm } from "./run-form.ts";
import { keepPart, partIn } from "./run-parts.ts";
import { type RunHeader, type RunStore, RunStoreError, type RunSummary, type StoredRun } from "./store.ts";

/** Journals of this form are read; those of a newer version of the server are left alone. */
const VERSION = 1;
const DAY_MS = 86_400_000;
const KEEP_MS = 30 * DAY_MS;
const KEEP_RUNS = 500;
/** A planned run that nobody confirmed is of no use once its confirmation has expired. */
const KEEP_PLANNED_MS = DAY_MS;

const FILES = {
  header: "run.json",
  started: "started",
  journal: "journal.ndjson",
  input: "input",
  removed: "removed.ndjson",
  rejects: "rejects",
  summary: "summary.json",
} as const;

const header = z.object({
  version: z.number(),
  runId: z.string(),
  call: z.unknown(),
  project: z.string(),
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  createdAt: z.number(),
  fingerprint: z.string(),
  unplanned: z.literal(true).exactOptional(),
});
const versioned = z.looseObject({ version: z.number() });
const summary = z.object({
  tool: z.string(),
  caller: z.string(),
  fingerprint: z.string(),
  status: z.string(),
  counts: z.record(z.string(), z.number()),
  startedAt: z.number(),
  updatedAt: z.number(),
  open: z.boolean(),
});

/**
 * Keeps each run in a folder of its own below `folder`, readable by the owner only: the call, an append-only journal
 * of JSON lines, what was taken away, a summary. Folders are made when the first run is. `form` says what calls and
 * entries are like.
 */
export function fileRunStore<Call, Entry>(
  folder: string,
  now: () => number,
  form: RunForm<Call, Entry>,
): RunStore<Call, Entry> {
  const at = (runId: string, file: string): string => join(folder, runId, file);
  return {
    async create(given) {
      await usable(folder, async () => {
        await mkdir(join(folder, given.runId), { recursive: true, mode: 0o700 });
        await writeDurably(at(given.runId, FILES.header), JSON.stringify({ version: VERSION, ...given }));
      });
      await removeOld(folder, now());
    },
    async keepCall(runId, call) {
      const text = await readText(at(runId, FILES.header));
      if (text === undefined) return;
      const kept = header.parse(JSON.parse(text));
      await usable(folder, () => replaceDurably(at(runId, FILES.header), JSON.stringify({ ...kept, call })));
    },
    start: (runId) => usable(folder, () => createMarker(at(runId, FILES.started))),
    journal: (runId) => usable(folder, () => openJournal(at(runId, FILES.journal), form)),
    keep: (runId, part, pieces) => usable(folder, () => keepPart(at(runId, FILES[part]), pieces)),
    part: (runId, part) => partIn(at(runId, FILES[part])),
    read: (runId) => (isRunId(runId) ? readRun(folder, runId, form) : Promise.resolve(undefined)),
    async list() {
      return (await usable(folder, () => namesIn(folder))).filter(isRunId).sort().reverse();
    },
    async summarise(runId, given) {
      await usable(folder, () => writeFile(at(runId, FILES.summary), JSON.stringify(given), { mode: 0o600 }));
    },
    async summary(runId) {
      return readSummary(at(runId, FILES.summary));
    },
    lease: (runId) => usable(folder, () => tryLease(join(folder, runId), "driver", now)),
    async isDriven(runId) {
      return (await namesIn(join(folder, runId))).length > 0 && isLeased(join(folder, runId), "driver", now);
    },
  };
}

/** Only names that we make are ever looked up: no path leads out of the folder. */
function isRunId(text: string): boolean {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text);
}

async function usable<T>(folder: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    // What was to be kept may come from elsewhere, and fail there.
    if (isApiError(thrown) || thrown instanceof FileError) throw thrown;
    const why = thrown instanceof Error ? thrown.message : String(thrown);
    throw new RunStoreError(
      `runs cannot be kept in ${folder} (${why}); nothing was sent`,
      "Make room, or let TARGETING_MCP_STATE_DIR name a folder that can be written.",
      { cause: thrown },
    );
  }
}

async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(file, "w", 0o600);
  try {
    await handle.writeFile(text);
    await handle.datasync();
  } finally {
    await handle.close();
  }
}

/** Puts a file in the place of another in one step. */
async function replaceDurably(file: string, text: string): Promise<void> {
  await writeDurably(`${file}.new`, text);
  await moveOver(`${file}.new`, file);
}

async function createMarker(file: string): Promise<boolean> {
  try {
    await (await open(file, "wx", 0o600)).close();
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "EEXIST")) return false;
    throw thrown;
  }
}

async function readRun<Call, Entry>(
  folder: string,
  runId: string,
  form: RunForm<Call, Entry>,
): Promise<StoredRun<Call, Entry> | undefined> {
  const text = await readText(join(folder, runId, FILES.header));
  if (text === undefined) return undefined;
  const found = parseHeader(runId, text, form);
  const started = (await readText(join(folder, runId, FILES.started))) !== undefined;
  return { header: found, started, entries: readJournal(join(folder, runId, FILES.journal), runId, form) };
}

function parseHeader<Call>(runId: string, text: string, form: Pick<RunForm<Call, unknown>, "call">): RunHeader<Call> {
  const value = parseJson(text);
  const { data } = versioned.safeParse(value);
  if (data !== undefined && data.version > VERSION) {
    throw new RunStoreError(`run ${runId} was made by a newer version of this server`, "Use that version for it.");
  }
  const parsed = header.safeParse(value);
  const call = form.call.safeParse(parsed.data?.call);
  if (parsed.success && call.success) {
    const { version: _, ...found } = parsed.data;
    return { ...found, call: call.data };
  }
  throw new RunStoreError(`what is kept of run ${runId} is damaged: it cannot be resumed`, START_ANEW);
}

async function readText(file: string): Promise<string | undefined> {
  try {
    return await readFile(file, "utf8");
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
}

async function readSummary(file: string): Promise<RunSummary | undefined> {
  const text = await readText(file);
  return text === undefined ? undefined : summary.safeParse(parseJson(text)).data;
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return [];
    throw thrown;
  }
}

/** Removes finished runs after 30 days or beyond 500, and plans that nobody confirmed; never an unfinished run. */
async function removeOld(folder: string, now: number): Promise<void> {
  const runs = (await namesIn(folder)).filter(isRunId).sort().reverse();
  let kept = 0;
  for (const runId of runs) {
    const age = now - (await createdAt(folder, runId));
    kept += 1;
    if (kept <= KEEP_RUNS && age < KEEP_PLANNED_MS) continue;
    const started = (await readText(join(folder, runId, FILES.started))) !== undefined;
    const told = await readSummary(join(folder, runId, FILES.summary));
    const isOld = kept > KEEP_RUNS || age > KEEP_MS;
    const useless = started ? isOld && told !== undefined && !told.open : age > KEEP_PLANNED_MS;
    if (useless) await rm(join(folder, runId), { recursive: true, force: true });
  }
}

/** When a run was kept. A folder whose header is just being written is as old as its ID says. */
async function createdAt(folder: string, runId: string): Promise<number> {
  const text = await readText(join(folder, runId, FILES.header));
  const parsed = header.partial().safeParse(parseJson(text ?? ""));
  return parsed.data?.createdAt ?? ulidTime(runId);
}
