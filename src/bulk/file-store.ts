import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as z from "zod";
import { isApiError } from "../api/errors.ts";
import { ulidTime } from "../spec/ulid.ts";
import { writeCall } from "./call.ts";
import { FileError, hasCode } from "./files/file-error.ts";
import { journalEntry } from "./journal-format.ts";
import { isLeased, tryLease } from "./lease.ts";
import { keepPart, partIn } from "./run-parts.ts";
import {
  type RunHeader,
  type RunJournal,
  type RunStore,
  RunStoreError,
  type RunSummary,
  type StoredRun,
} from "./store.ts";
import type { JournalEntry } from "./work.ts";

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
  call: writeCall,
  project: z.string(),
  caller: z.string(),
  environment: z.enum(["live", "sandbox"]),
  createdAt: z.number(),
  fingerprint: z.string(),
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
 * of JSON lines, what was taken away, a summary. Folders are made when the first run is.
 */
export function fileRunStore(folder: string, now: () => number): RunStore {
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
    journal: (runId) => usable(folder, () => openJournal(at(runId, FILES.journal))),
    keep: (runId, part, pieces) => usable(folder, () => keepPart(at(runId, FILES[part]), pieces)),
    part: (runId, part) => partIn(at(runId, FILES[part])),
    read: (runId) => (isRunId(runId) ? readRun(folder, runId) : Promise.resolve(undefined)),
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

const START_ANEW = "Look at what was applied with list_options, and start anew.";

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
  await rename(`${file}.new`, file);
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

/** Opens a journal for appending. A last line that was cut off by a crash never took effect, and is cut away. */
async function openJournal(file: string): Promise<RunJournal> {
  const handle = await open(file, "a+", 0o600);
  await handle.truncate(await endOfLastLine(handle));
  let waiting: string[] = [];
  const flush = async (): Promise<void> => {
    if (waiting.length === 0) return;
    const text = waiting.join("");
    waiting = [];
    await handle.appendFile(text);
    await handle.datasync();
  };
  return {
    append: (entry) => void waiting.push(...linesOf(entry)),
    flush,
    async close() {
      try {
        await flush();
      } finally {
        await handle.close();
      }
    },
  };
}

const STEPS_PER_LINE = 500;

/** An entry as lines; a plan of many steps takes several, so that no line grows with the call. */
function linesOf(entry: JournalEntry): readonly string[] {
  const line = (part: JournalEntry): string => `${JSON.stringify(part)}\n`;
  if (entry.t === "steps") return chunks(entry.steps).map((steps) => line({ t: "steps", steps }));
  if (entry.t === "objects") return chunks(entry.objects).map((objects) => line({ t: "objects", objects }));
  return [line(entry)];
}

function chunks<T>(list: readonly T[]): readonly (readonly T[])[] {
  const count = Math.ceil(list.length / STEPS_PER_LINE);
  return Array.from({ length: count }, (_, chunk) => list.slice(chunk * STEPS_PER_LINE, (chunk + 1) * STEPS_PER_LINE));
}

async function endOfLastLine(handle: FileHandle): Promise<number> {
  const { size } = await handle.stat();
  const chunk = Buffer.alloc(65_536);
  for (let end = size; end > 0; ) {
    const start = Math.max(0, end - chunk.length);
    const { bytesRead } = await handle.read(chunk, 0, end - start, start);
    const newline = chunk.subarray(0, bytesRead).lastIndexOf(0x0a);
    if (newline >= 0) return start + newline + 1;
    end = start;
  }
  return 0;
}

async function readRun(folder: string, runId: string): Promise<StoredRun | undefined> {
  const text = await readText(join(folder, runId, FILES.header));
  if (text === undefined) return undefined;
  const { version: _, ...found } = parseHeader(runId, text);
  const started = (await readText(join(folder, runId, FILES.started))) !== undefined;
  return { header: found, started, entries: readJournal(join(folder, runId, FILES.journal), runId) };
}

function parseHeader(runId: string, text: string): RunHeader & { readonly version: number } {
  const value = parseJson(text);
  const { data } = versioned.safeParse(value);
  if (data !== undefined && data.version > VERSION) {
    throw new RunStoreError(`run ${runId} was made by a newer version of this server`, "Use that version for it.");
  }
  const parsed = header.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new RunStoreError(`what is kept of run ${runId} is damaged: it cannot be resumed`, START_ANEW);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads a journal line by line. A damaged last line was cut off by a crash; a damaged line before it is an error. */
async function* readJournal(file: string, runId: string): AsyncGenerator<JournalEntry> {
  if ((await openOrUndefined(file)) === undefined) return;
  let damaged = false;
  for await (const line of createInterface({ input: createReadStream(file, "utf8"), crlfDelay: Infinity })) {
    if (damaged) throw new RunStoreError(`the journal of run ${runId} is damaged: it cannot be resumed`, START_ANEW);
    const entry = journalEntry.safeParse(parseJson(line));
    if (entry.success) yield entry.data;
    else damaged = true;
  }
}

async function openOrUndefined(file: string): Promise<true | undefined> {
  try {
    await (await open(file, "r")).close();
    return true;
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
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
