import { createHash } from "node:crypto";
import { open, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type * as z from "zod";
import { makeFolder, type Pieces, replaceFile, syncFolder } from "../../platform/durable-files.ts";
import { hasCode, moveIntoPlace, removeFile } from "../../platform/files.ts";
import { type ByteSource, bytesOf } from "../../platform/held-folder.ts";
import { parseJson } from "../../platform/json.ts";
import { CREATED, isRunId, isUnstarted, type RunRecord, runHeaderSchema, runRecord } from "../lifecycle.ts";
import { callerName, RunStoreError, type RunSummary, type Unfinished } from "../store.ts";

export const FILES = {
  header: "run.json",
  proposed: "proposed.ndjson",
  journal: "journal.ndjson",
  input: "input",
  sheet: "sheet",
  removed: "removed.ndjson",
  former: "former.ndjson",
  rejects: "rejects",
} as const;

/** Returns the name of the file that stores this version of a run's record. The highest version is the current one. */
export function recordFile(version: number): string {
  return `record.${version}.json`;
}

function versionsIn(names: readonly string[]): number[] {
  const versions = names.flatMap((name) => /^record\.([1-9]\d*)\.json$/.exec(name)?.[1] ?? []).map(Number);
  return versions.sort((one, other) => other - one);
}

const partOfHeader = runHeaderSchema
  .pick({ createdAt: true, fingerprint: true, caller: true, project: true, environment: true })
  .partial();
/** Returns the IDs of the runs in a folder, the newest first. */
export async function runsIn(folder: string): Promise<readonly string[]> {
  return (await namesIn(folder)).filter(isRunId).sort().reverse();
}

/**
 * Reads the record of a run, if it exists. A power failure can restore a record from before the start of the run. So if
 * the journal has entries, the run counts as started. It also counts as started if its newest record cannot be read;
 * its journal then shows its status. If a file of the run is damaged, the summary in the record says so.
 */
export async function readRecord(folder: string, runId: string): Promise<RunRecord | undefined> {
  const place = join(folder, runId);
  const names = await namesIn(place);
  if (names.length === 0) return undefined;
  const [version = 0] = versionsIn(names);
  const text = version === 0 ? undefined : await readText(join(place, recordFile(version)));
  const read = runRecord.safeParse(parseJson(text ?? "")).data ?? (version === 0 ? CREATED : undefined);
  const record: RunRecord = read ?? { version, status: "running" };
  if (isUnstarted(record.status) && (await hasEntries(place))) return { version, status: "running" };
  const { rest } = record;
  if (rest === undefined) return record;
  const { journalBytes: _, ...summary } = rest;
  return { ...record, rest: (await isDamaged(folder, runId, rest)) ? { ...summary, isDamaged: true } : summary };
}

async function hasEntries(place: string): Promise<boolean> {
  return ((await unlessMissing(stat(join(place, FILES.journal))))?.size ?? 0) > 0;
}

/**
 * Returns whether the header or the journal of a run is damaged, judged by the first and last character of each. Read
 * the summary first, because the journal may grow meanwhile.
 */
export async function isDamaged(folder: string, runId: string, summary?: RunSummary): Promise<boolean> {
  const [header, journal] = await Promise.all([
    endsOf(join(folder, runId, FILES.header)),
    endsOf(join(folder, runId, FILES.journal), summary?.journalBytes),
  ]);
  if (header === undefined ? summary !== undefined || journal !== undefined : !isObject(header)) return true;
  const { journalBytes = 0 } = summary ?? {};
  if (journal === undefined || journal.bytes === 0) return journalBytes > 0;
  if (journal.first !== "{") return true;
  return journalBytes > 0 && (journal.bytes < journalBytes || journal.last !== "\n");
}

/**
 * Returns the length of a file, its first character, and the character at its end, or at the end of its first `upTo`
 * bytes.
 */
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

/** Returns the readable parts of a run's header, even if the header is damaged. */
export async function readHeader(folder: string, runId: string): Promise<z.infer<typeof partOfHeader> | undefined> {
  const text = await readText(join(folder, runId, FILES.header));
  return text === undefined ? undefined : (partOfHeader.safeParse(parseJson(text)).data ?? {});
}

/** Returns the result of `work`. Returns undefined if the file or folder does not exist. */
export function unlessMissing<T>(work: Promise<T>): Promise<T | undefined> {
  return work.catch((thrown: unknown) => {
    if (hasCode(thrown, "ENOENT")) return undefined;
    throw thrown;
  });
}

/** Returns the content of a file. Returns undefined if the file does not exist. */
export function readText(file: string): Promise<string | undefined> {
  return unlessMissing(readFile(file, "utf8"));
}

/** Returns the names in a folder. Returns none if the folder does not exist. */
export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? [];
}

function mark(folder: string, name: string): Promise<void> {
  return inFolder(folder, () => writeFile(join(folder, name), "", { flag: "a", mode: 0o600 }));
}

/** Removes a mark. A failure is ignored: a mark that remains only makes searches read its run once more. */
async function unmark(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

async function inFolder(folder: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (thrown) {
    if (!hasCode(thrown, "ENOENT")) throw thrown;
    await makeFolder(folder);
    await write();
  }
}

/**
 * Runs `work` on a folder. Throws a RunStoreError for an error of the operating system; its message names `what` and
 * ends with `effect`.
 */
export async function withStoreErrors<T>(
  folder: string,
  work: () => Promise<T>,
  what = "runs",
  effect = "; nothing was sent",
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    // Pieces to write may come from another source. Its errors are not errors of this store.
    if (!isSystemError(thrown)) throw thrown;
    throw new RunStoreError(
      `${what} cannot be stored in ${folder} (${thrown.message})${effect}`,
      "Free disk space, or set TARGETING_MCP_STATE_DIR to a folder that this server can write.",
      { cause: thrown },
    );
  }
}

/** Returns whether an error comes from the operating system. */
function isSystemError(thrown: unknown): thrown is Error {
  return thrown instanceof Error && "syscall" in thrown;
}

/**
 * Writes pieces to a file that only its owner can read. An existing file is replaced once all pieces are written.
 * Without any pieces, the file is removed.
 */
export async function keepPart(file: string, pieces: Pieces): Promise<void> {
  let isEmpty = true;
  const noted = async function* () {
    for await (const piece of pieces) {
      isEmpty = false;
      yield piece;
    }
  };
  await replaceFile(file, noted());
  if (!isEmpty) return;
  await removeFile(file);
  await syncFolder(dirname(file));
}

/** Returns the content of a file. The content is empty if the file does not exist. */
export function partIn(file: string): ByteSource {
  return async function* (pieceBytes) {
    try {
      yield* bytesOf(file)(pieceBytes);
    } catch (thrown) {
      if (!hasCode(thrown, "ENOENT")) throw thrown;
    }
  };
}

/** The folder of the index, next to the folders of the runs. Run IDs have 26 characters, so no run has this name. */
export const INDEX_FOLDER = "calls";
/**
 * The folder with the marks of runs that may be unfinished, named `<run>.<fingerprint>.<scope>.<name of the caller>`.
 */
const OPEN = "open";
const CALLERS = "callers";
/** The folder with one file for each fingerprint, which contains the ID of the newest run of that call. */
const LAST = "last";

export interface IndexedRun {
  readonly runId: string;
  readonly caller: string;
  readonly project: string;
  readonly environment: string;
  readonly fingerprint: string;
}

/** Returns the key of a caller, project and environment, for searches of unfinished runs. */
function scopeOf({ caller, project, environment }: Omit<IndexedRun, "runId" | "fingerprint">): string {
  return digest(JSON.stringify([caller, project, environment]));
}

/** Returns the part of a mark that the runs of a query have in common. */
function markOf(which: Exclude<Unfinished, "all">): string {
  if ("callerName" in which) return digest(which.callerName);
  return "fingerprint" in which ? digest(which.fingerprint) : scopeOf(which);
}

/** Returns the name of a caller's folder in the index. */
export function callerFolder(caller: string): string {
  return digest(caller);
}

/** What is known about the runs without opening their folders. */
export type RunIndex = ReturnType<typeof runIndex>;

/**
 * Returns the index of runs. Small files show the caller of each run, whether the run may be unfinished, and the newest
 * run of each call. So not every run has to be opened. A run is indexed before it is stored. So a mark may have no run
 * yet, but a run without a mark was stored by a version without an index. An outdated mark of an unfinished run only
 * costs an extra read.
 */
export function runIndex(folder: string) {
  const place = join(folder, INDEX_FOLDER);
  const open = join(place, OPEN);
  const callers = callerRuns(join(place, CALLERS));
  const lastOf = (fingerprint: string): string => join(place, LAST, digest(fingerprint));
  /** Records that a run may be unfinished again. Throws if that cannot be written. */
  const reopen = async ({ runId, fingerprint, ...run }: IndexedRun): Promise<void> => {
    const marks = [digest(fingerprint), scopeOf(run), digest(callerName(run.caller))];
    await mark(open, [runId, ...marks].join("."));
    // Without this, a repeated call would not find the run after a power failure.
    await syncFolder(open);
  };
  const markAtRest = async (runId: string): Promise<void> => {
    const mine = (await namesIn(open)).filter((name) => name.startsWith(`${runId}.`));
    await Promise.all(mine.map((name) => unmark(join(open, name))));
  };
  return {
    reopen,
    markAtRest,
    /** Adds a run to the index, before the run is stored. It counts as unfinished. Throws if that cannot be written. */
    async add(run: IndexedRun): Promise<void> {
      await callers.note(callerFolder(run.caller), run.runId, "kept");
      await reopen(run);
      await keepLast(join(place, LAST), digest(run.fingerprint), run.runId);
    },
    markHoldsRemoved: (runId: string, caller: string) => callers.note(callerFolder(caller), runId, "removed"),
    /** Returns the runs that may be unfinished, the newest first. */
    async open(which: Unfinished = "all"): Promise<readonly string[]> {
      const wanted = which === "all" ? undefined : markOf(which);
      const found = (await namesIn(open)).flatMap((name) => {
        const [runId = "", ...marks] = name.split(".");
        return isRunId(runId) && (wanted === undefined || marks.includes(wanted)) ? runId : [];
      });
      return [...new Set(found)].sort().reverse();
    },
    of: (caller: string) => callers.of(callerFolder(caller)),
    /** Returns the runs of all callers, by the name of the caller's folder. */
    async all(): Promise<ReadonlyMap<string, readonly KeptMark[]>> {
      const found = new Map<string, readonly KeptMark[]>();
      for (const name of await callers.callers()) found.set(name, await callers.of(name));
      return found;
    },
    /** Returns the newest run of a call. Returns undefined if there is none, or if it was removed. */
    async last(fingerprint: string): Promise<string | undefined> {
      const runId = await readText(lastOf(fingerprint));
      return runId !== undefined && isRunId(runId) ? runId : undefined;
    },
    /** Removes a deleted run from the index. `name` is the name of the caller's folder, as in `all`. */
    async forget(runId: string, name: string, fingerprint: string | undefined): Promise<void> {
      await callers.note(name, runId, "gone");
      await markAtRest(runId);
      if (fingerprint === undefined) return;
      if ((await readText(lastOf(fingerprint))) === runId) await unmark(lastOf(fingerprint));
    },
  };
}

/** Returns a short hash for use as a file name, because callers and fingerprints may contain any characters. */
function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/**
 * Writes the ID of the newest run of a call. Replaces the file at once, so that a reader finds the old ID or the new
 * one.
 */
async function keepLast(folder: string, name: string, runId: string): Promise<void> {
  const fresh = join(folder, `${name}-${runId}`);
  await inFolder(folder, () => writeFile(fresh, runId, { mode: 0o600 }));
  await moveIntoPlace(fresh, join(folder, name));
}

export interface KeptMark {
  readonly runId: string;
  /** Whether the run stores objects or Context IDs that it removed. */
  readonly holdsRemoved: boolean;
}

/**
 * Manages one folder for each caller, with an empty file for each run. The file is named `<run>`, or `<run>.removed` if
 * the run stores removed data.
 */
export function callerRuns(place: string) {
  return {
    /** Records that a run is stored, that it stores removed data, or that it is gone. */
    async note(caller: string, runId: string, change: "kept" | "removed" | "gone"): Promise<void> {
      const folder = join(place, caller);
      if (change !== "gone") await mark(folder, change === "kept" ? runId : `${runId}.${REMOVED}`);
      if (change !== "kept") await unmark(join(folder, runId));
      if (change === "gone") await unmark(join(folder, `${runId}.${REMOVED}`));
      // Retention relies on this mark to know that a run stores removed data.
      else await syncFolder(folder);
    },
    of: (caller: string): Promise<readonly KeptMark[]> => marksIn(join(place, caller)),
    callers: () => namesIn(place),
  };
}

const REMOVED = "removed";

async function marksIn(folder: string): Promise<readonly KeptMark[]> {
  const marks = new Map<string, boolean>();
  for (const name of await namesIn(folder)) {
    const [runId = "", flag] = name.split(".");
    if (isRunId(runId)) marks.set(runId, flag === REMOVED || marks.get(runId) === true);
  }
  const runIds = [...marks.keys()].sort().reverse();
  return runIds.map((runId) => ({ runId, holdsRemoved: marks.get(runId) === true }));
}
