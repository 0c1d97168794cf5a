import { mkdir, open, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { parseJson } from "../api/answers.ts";
import { isApiError } from "../api/errors.ts";
import { moveOver } from "../disk/move-over.ts";
import { FileError, hasCode } from "./files/file-error.ts";
import { openJournal, readJournal, START_ANEW } from "./journal-file.ts";
import { isLeased, tryLease } from "./lease.ts";
import { sweeper } from "./old-runs.ts";
import { FILES, isRunId, keptHeader, markAnew, markOf, namesIn, readSummary, readText, runsIn } from "./run-files.ts";
import type { RunForm } from "./run-form.ts";
import { type RunIndex, runIndex } from "./run-index.ts";
import { keepPart, partIn } from "./run-parts.ts";
import { type Revision, type RunHeader, type RunStore, RunStoreError, type StoredRun } from "./store.ts";

/** Journals of this form are read; those of a newer version of the server are left alone. */
const VERSION = 1;
/** So many runs of versions without an index are looked at for one call; the others once old runs are looked for. */
const UNMARKED_AT_ONCE = 50;

const versioned = z.looseObject({ version: z.number() });

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
  const index = runIndex(folder);
  const newRun = sweeper(folder, index, now);
  return {
    async create(given) {
      await usable(folder, async () => {
        await mkdir(join(folder, given.runId), { recursive: true, mode: 0o700 });
        await index.mayBeOpen(given.runId, given.fingerprint);
        // In one step: of a run that died before, there is no call that could not be read.
        await replaceDurably(at(given.runId, FILES.header), JSON.stringify({ version: VERSION, ...given }));
      });
      newRun();
    },
    async keepCall(runId, call) {
      const text = await readText(at(runId, FILES.header));
      if (text === undefined) return;
      const kept = keptHeader.parse(JSON.parse(text));
      await usable(folder, () => replaceDurably(at(runId, FILES.header), JSON.stringify({ ...kept, call })));
    },
    propose: (runId, entries) => usable(folder, () => keepPart(at(runId, FILES.proposed), linesOf(entries, form))),
    start: (runId) => usable(folder, () => createMarker(at(runId, FILES.started))),
    journal: (runId) => usable(folder, () => openJournal(at(runId, FILES.journal), form)),
    keep: (runId, part, pieces) => usable(folder, () => keepPart(at(runId, FILES[part]), pieces)),
    part: (runId, part) => partIn(at(runId, FILES[part])),
    read: (runId) => (isRunId(runId) ? readRun(folder, runId, form) : Promise.resolve(undefined)),
    revision: (runId) => (isRunId(runId) ? revisionOf(join(folder, runId)) : Promise.resolve(undefined)),
    list: () => usable(folder, () => runsIn(folder)),
    unfinished: (fingerprint) => usable(folder, () => unfinishedIn(folder, index, fingerprint)),
    async summarise(runId, given) {
      await usable(folder, () => writeFile(at(runId, FILES.summary), JSON.stringify(given), { mode: 0o600 }));
      if (markOf(given) === "atRest") await index.rests(runId, given.fingerprint);
      else await index.mayBeOpen(runId, given.fingerprint);
    },
    summary: (runId) => readSummary(folder, runId),
    lease: (runId) => usable(folder, () => tryLease(join(folder, runId), "driver", now)),
    async isDriven(runId) {
      return (await namesIn(join(folder, runId))).length > 0 && isLeased(join(folder, runId), "driver", now);
    },
  };
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
  const from = (file: string): AsyncIterable<Entry> => readJournal(join(folder, runId, file), runId, form);
  return { header: found, started, proposed: from(FILES.proposed), entries: from(FILES.journal) };
}

function parseHeader<Call>(runId: string, text: string, form: Pick<RunForm<Call, unknown>, "call">): RunHeader<Call> {
  const value = parseJson(text);
  const { data } = versioned.safeParse(value);
  if (data !== undefined && data.version > VERSION) {
    throw new RunStoreError(`run ${runId} was made by a newer version of this server`, "Use that version for it.");
  }
  const parsed = keptHeader.safeParse(value);
  const call = form.call.safeParse(parsed.data?.call);
  if (parsed.success && call.success) {
    const { version: _, ...found } = parsed.data;
    return { ...found, call: call.data };
  }
  throw new RunStoreError(`what is kept of run ${runId} is damaged: it cannot be resumed`, START_ANEW);
}

/** Runs that the index does not show to be at rest, or to be of another call. */
async function unfinishedIn(
  folder: string,
  index: RunIndex,
  fingerprint: string | undefined,
): Promise<readonly string[]> {
  const [runs, marks] = await Promise.all([runsIn(folder), index.read()]);
  const unmarked = runs.filter((runId) => !marks.has(runId));
  const found = new Map(marks);
  for (const runId of fingerprint === undefined ? unmarked : unmarked.slice(0, UNMARKED_AT_ONCE)) {
    const mark = await markAnew(folder, index, runId);
    if (mark !== undefined) found.set(runId, mark);
  }
  return runs.filter((runId) => {
    const mark = found.get(runId);
    if (mark === undefined || mark === "atRest") return false;
    return fingerprint === undefined || mark.fingerprint === fingerprint;
  });
}

/** Replaced files have another inode or time, and a journal that grew has another size. */
async function revisionOf(place: string): Promise<Revision> {
  const files = [FILES.header, FILES.started, FILES.proposed, FILES.journal];
  const stats = await Promise.all(files.map((file) => statOrUndefined(join(place, file))));
  const text = stats.map((stats) => (stats ? [stats.ino, stats.size, stats.mtimeNs].join(":") : "")).join(" ");
  return { text, bytes: stats.reduce((sum, one) => sum + Number(one?.size ?? 0), 0) };
}

async function statOrUndefined(file: string) {
  try {
    return await stat(file, { bigint: true });
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  }
}

function* linesOf<Entry>(
  entries: Iterable<Entry>,
  { line }: Pick<RunForm<unknown, Entry>, "line">,
): Generator<string | Uint8Array> {
  for (const entry of entries) {
    yield* line(entry);
    yield "\n";
  }
}
