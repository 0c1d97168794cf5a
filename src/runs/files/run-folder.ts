import { hash } from "node:crypto";
import { type BigIntStats, createReadStream } from "node:fs";
import { copyFile, type FileHandle, open, readdir, rm, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import type * as z from "zod";
import {
  APPENDING,
  hasCode,
  isOtherKind,
  makeFolder,
  moveIntoPlace,
  openFile,
  type Pieces,
  readTextFile,
  removeFile,
  replaceFile,
  syncFolder,
  undefinedIf,
  unlessMissing,
  withHandle,
} from "../../platform/files.ts";
import { type ByteSource, bytesOf } from "../../platform/held-folder.ts";
import { parseJson } from "../../platform/json.ts";
import {
  CREATED,
  callerName,
  isRunId,
  isUnstarted,
  lineBytes,
  type RunHeader,
  type RunJournal,
  type RunRecord,
  RunStoreError,
  type RunSummary,
  runHeaderSchema,
  runRecord,
  type Unfinished,
} from "../store.ts";
import { type Lease, RECENT_MS } from "../turn.ts";

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

/** Returns the file name of a record's version. The highest version is the current record. */
export function recordFile(version: number): string {
  return `record.${version}.json`;
}

const partOfHeader = runHeaderSchema
  .pick({ createdAt: true, fingerprint: true, caller: true, project: true, environment: true })
  .partial();
export async function runsIn(folder: string): Promise<readonly string[]> {
  return (await namesIn(folder)).filter(isRunId).sort().reverse();
}

/**
 * Reads the record of a run. If the newest record cannot be read, or says that the run is not started although the
 * journal has entries, the run counts as started: after a power failure, an old record can reappear. The summary, if
 * any, says whether the header or the journal is damaged.
 */
export async function readRecord(folder: string, runId: string): Promise<RunRecord | undefined> {
  const place = join(folder, runId);
  const names = await namesInRun(place);
  if (names.length === 0)
    return (await statOf(place))?.isDirectory() === false ? { version: 1, status: "running" } : undefined;
  const version = Math.max(0, ...names.map((name) => Number(/^record\.([1-9]\d*)\.json$/.exec(name)?.[1] ?? 0)));
  const text = version === 0 ? undefined : await readText(join(place, recordFile(version)));
  const read = runRecord.safeParse(parseJson(text ?? "")).data ?? (version === 0 ? CREATED : undefined);
  const record: RunRecord = read ?? { version, status: "running" };
  const hasEntries = async () => (await bytesOfFiles([join(place, FILES.journal)])) > 0;
  if (isUnstarted(record.status) && (await hasEntries())) return { version, status: "running" };
  const { rest } = record;
  if (rest === undefined) return record;
  const { journalBytes: _, ...summary } = rest;
  return { ...record, rest: (await isDamaged(folder, runId, rest)) ? { ...summary, isDamaged: true } : summary };
}

/**
 * Returns whether the header or the journal of a run is damaged, judged by length and by first and last characters.
 * `summary` must be read before the files, because the journal may grow in the meantime.
 */
export async function isDamaged(folder: string, runId: string, summary?: RunSummary): Promise<boolean> {
  const [header, journal] = await Promise.all([
    endsOf(join(folder, runId, FILES.header)),
    endsOf(join(folder, runId, FILES.journal), summary?.journalBytes),
  ]);
  const isWhole = header?.first === "{" && header.last === "}";
  if (header === undefined ? summary !== undefined || journal !== undefined : !isWhole) return true;
  const { journalBytes = 0 } = summary ?? {};
  if (journal === undefined || journal.bytes === 0) return journalBytes > 0;
  if (journal.first !== "{") return true;
  return journalBytes > 0 && (journal.bytes < journalBytes || journal.last !== "\n");
}

function endsOf(file: string, upTo?: number) {
  const ends = withHandle(openFile(file), async (handle) => {
    const { size } = await handle.stat();
    const at = async (position: number): Promise<string> => {
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(1), 0, 1, Math.max(0, position));
      return buffer.toString("latin1", 0, bytesRead);
    };
    return { bytes: size, first: await at(0), last: await at((upTo ?? size) - 1) };
  });
  // If the path is no file, these values are returned. They fit no valid file, so the run counts as damaged.
  return unlessMissing(orIfOtherKind(ends, { bytes: 1, first: "", last: "" }));
}

export async function readHeader(folder: string, runId: string): Promise<z.infer<typeof partOfHeader> | undefined> {
  const text = await readText(join(folder, runId, FILES.header));
  return text === undefined ? undefined : (partOfHeader.safeParse(parseJson(text)).data ?? {});
}

/** Returns `instead` if the path exists but is of another kind, for example a folder where a file is expected. */
async function orIfOtherKind<T>(work: Promise<T>, instead: T): Promise<T> {
  return (await undefinedIf(isOtherKind, work)) ?? instead;
}

/** Returns the text of a file. Undefined if it is missing; empty if the path is something else, such as a folder. */
export function readText(file: string): Promise<string | undefined> {
  return unlessMissing(orIfOtherKind(readTextFile(file), ""));
}

export async function namesIn(folder: string): Promise<readonly string[]> {
  return (await unlessMissing(readdir(folder))) ?? [];
}

/** Returns the names of the files in a run's folder. Empty if its path is not that of a folder. */
export function namesInRun(place: string): Promise<readonly string[]> {
  return orIfOtherKind(namesIn(place), []);
}

/** Returns the size and times of a file. Undefined if it is missing, or if a part of its path is not a folder. */
export function statOf(path: string): Promise<BigIntStats | undefined> {
  return orIfOtherKind(unlessMissing(stat(path, { bigint: true })), undefined);
}

export async function bytesOfFiles(files: readonly string[]): Promise<number> {
  const stats = await Promise.all(files.map(statOf));
  return stats.reduce((sum, one) => sum + Number(one?.size ?? 0), 0);
}

export async function bytesInFolder(folder: string): Promise<number> {
  return bytesOfFiles((await namesInRun(folder)).map((name) => join(folder, name)));
}

function mark(folder: string, name: string): Promise<void> {
  return inFolder(folder, () => writeFile(join(folder, name), "", { flag: "a", mode: 0o600 }));
}

async function unmark(file: string): Promise<void> {
  await rm(file, { force: true }).catch(() => undefined);
}

export async function inFolder(folder: string, write: () => Promise<void>): Promise<void> {
  try {
    await write();
  } catch (thrown) {
    if (!hasCode(thrown, "ENOENT")) throw thrown;
    await makeFolder(folder);
    await write();
  }
}

/** Runs `work`. Turns errors of the file system into a RunStoreError whose message contains `what` and `effect`. */
export async function withStoreErrors<T>(
  folder: string,
  work: () => Promise<T>,
  what = "runs",
  effect = "",
): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    // An error without `syscall` is not of the file system. It comes from the source of the pieces, such as a request.
    if (!(thrown instanceof Error && "syscall" in thrown)) throw thrown;
    throw new RunStoreError(
      `${what} cannot be stored or read in ${folder} (${thrown.message})${effect}`,
      "Free disk space, or set TARGETING_MCP_STATE_DIR to a folder that this server can read and write.",
      { cause: thrown },
    );
  }
}

/** Replaces the file of a part. The old one stays until the new one is complete. Without pieces, it is removed. */
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

export function partIn(file: string): ByteSource {
  return async function* (pieceBytes) {
    try {
      yield* bytesOf(file)(pieceBytes);
    } catch (thrown) {
      if (!hasCode(thrown, "ENOENT") && !hasCode(thrown, "ENOTDIR")) throw thrown;
    }
  };
}

/** The folder of the index. It lies next to the folders of runs, whose names have 26 characters. */
export const INDEX_FOLDER = "calls";
/**
 * The folder whose files mark runs that may be unfinished. A file's name is the run ID and hashes of the fingerprint,
 * of the caller with project and environment, and of the caller's name, separated by dots.
 */
const OPEN = "open";
const CALLERS = "callers";
/** In this folder, a file named by the hash of a call's fingerprint contains the ID of the newest run of the call. */
const LAST = "last";

export type IndexedRun = Pick<RunHeader, "runId" | "caller" | "project" | "environment" | "fingerprint">;

function scopeOf({ caller, project, environment }: Pick<RunHeader, "caller" | "project" | "environment">): string {
  return digest(JSON.stringify([caller, project, environment]));
}

function markOf(which: Exclude<Unfinished, "all">): string {
  if ("callerName" in which) return digest(which.callerName);
  return "fingerprint" in which ? digest(which.fingerprint) : scopeOf(which);
}

export function callerFolder(caller: string): string {
  return digest(caller);
}

export type RunIndex = ReturnType<typeof runIndex>;

/**
 * Indexes all runs: the runs of each caller, the runs that may be unfinished, and the newest run of each call. A run is
 * indexed before it is stored, so that a crash leaves no run without an entry.
 */
export function runIndex(folder: string) {
  const place = join(folder, INDEX_FOLDER);
  const open = join(place, OPEN);
  const callers = callerRuns(join(place, CALLERS));
  const lastOf = (fingerprint: string): string => join(place, LAST, digest(fingerprint));
  const reopen = async ({ runId, fingerprint, ...run }: IndexedRun): Promise<void> => {
    const marks = [digest(fingerprint), scopeOf(run), digest(callerName(run.caller))];
    await mark(open, [runId, ...marks].join("."));
    // The mark is written to disk, so that a repeated call finds the run after a power failure.
    await syncFolder(open);
  };
  const markAtRest = async (runId: string): Promise<void> => {
    const mine = (await namesIn(open)).filter((name) => name.startsWith(`${runId}.`));
    await Promise.all(mine.map((name) => unmark(join(open, name))));
  };
  return {
    reopen,
    markAtRest,
    async add(run: IndexedRun): Promise<void> {
      await callers.note(callerFolder(run.caller), run.runId, "kept");
      await reopen(run);
      // The file is replaced in one step, so that a reader finds the old ID or the new one.
      const fresh = `${lastOf(run.fingerprint)}-${run.runId}`;
      await inFolder(join(place, LAST), () => writeFile(fresh, run.runId, { mode: 0o600 }));
      await moveIntoPlace(fresh, lastOf(run.fingerprint));
    },
    markHoldsRemoved: (runId: string, caller: string) => callers.note(callerFolder(caller), runId, "removed"),
    async open(which: Unfinished = "all"): Promise<readonly string[]> {
      const wanted = which === "all" ? undefined : markOf(which);
      const found = (await namesIn(open)).flatMap((name) => {
        const [runId = "", ...marks] = name.split(".");
        return isRunId(runId) && (wanted === undefined || marks.includes(wanted)) ? runId : [];
      });
      return [...new Set(found)].sort().reverse();
    },
    of: (caller: string) => callers.of(callerFolder(caller)),
    async all(): Promise<ReadonlyMap<string, readonly KeptMark[]>> {
      const found = new Map<string, readonly KeptMark[]>();
      for (const name of await callers.callers()) found.set(name, await callers.of(name));
      return found;
    },
    /** Returns the ID of the newest run of a call. Undefined if the call has no run or the run was removed. */
    async last(fingerprint: string): Promise<string | undefined> {
      const runId = await readText(lastOf(fingerprint));
      return runId !== undefined && isRunId(runId) ? runId : undefined;
    },
    /** Removes a deleted run from the index. `name`: the name of its caller's folder, as returned by `all`. */
    async forget(runId: string, name: string, fingerprint: string | undefined): Promise<void> {
      await callers.note(name, runId, "gone");
      await markAtRest(runId);
      if (fingerprint === undefined) return;
      if ((await readText(lastOf(fingerprint))) === runId) await unmark(lastOf(fingerprint));
    },
  };
}

/** Hashes a text to get a valid file name. Callers and fingerprints may contain any characters. */
function digest(text: string): string {
  return hash("sha256", text).slice(0, 32);
}

export interface KeptMark {
  readonly runId: string;
  readonly holdsRemoved: boolean;
}

/**
 * Lists the runs of each caller. Each caller has a folder with an empty file for each run, named `<run>`. The file is
 * named `<run>.removed` if the run stores what it removed from the service, because such runs are kept longer.
 */
export function callerRuns(place: string) {
  return {
    async note(caller: string, runId: string, change: "kept" | "removed" | "gone"): Promise<void> {
      const folder = join(place, caller);
      if (change !== "gone") await mark(folder, change === "kept" ? runId : `${runId}.${REMOVED}`);
      if (change !== "kept") await unmark(join(folder, runId));
      if (change === "gone") await unmark(join(folder, `${runId}.${REMOVED}`));
      else await syncFolder(folder);
    },
    async of(caller: string): Promise<readonly KeptMark[]> {
      const marks = new Map<string, boolean>();
      for (const name of await namesIn(join(place, caller))) {
        const [runId = "", flag] = name.split(".");
        if (isRunId(runId)) marks.set(runId, flag === REMOVED || marks.get(runId) === true);
      }
      const runIds = [...marks.keys()].sort().reverse();
      return runIds.map((runId) => ({ runId, holdsRemoved: marks.get(runId) === true }));
    },
    callers: () => namesIn(place),
  };
}

const REMOVED = "removed";

/** Opens a journal. Needs the run's lease. An incomplete last line was never confirmed and is cut off. */
export async function openJournal(
  file: string,
  lease: Lease,
  isStopAsked: () => Promise<boolean>,
): Promise<RunJournal> {
  const handle = await openFile(file, APPENDING);
  await handle.truncate(await endOfLastLine(handle));
  // Without this, a power failure could lose the name of the new file and so all entries.
  await syncFolder(dirname(file));
  let waiting: Uint8Array[] = [];
  const writeWaiting = async (): Promise<void> => {
    if (waiting.length === 0) return;
    const pieces = waiting;
    waiting = [];
    for (let at = 0; at < pieces.length; at += PIECES_AT_ONCE) {
      await writeWhole(handle, pieces.slice(at, at + PIECES_AT_ONCE));
    }
    await handle.datasync();
  };
  // After a failed write, nothing more is written: a line after an incomplete one would make the journal look damaged.
  let written = Promise.resolve();
  const write = (): Promise<void> => {
    written = written.then(writeWaiting);
    return written;
  };
  const held = async (): Promise<void> => {
    lease.lost.throwIfAborted();
    await write();
  };
  return {
    append(line) {
      for (const piece of lineBytes(line)) waiting.push(piece);
    },
    write: () => write().catch(() => undefined),
    async flush() {
      await held();
      await lease.check(RECENT_MS);
    },
    async intend(turn) {
      await held();
      // First waits for the previous holder, because clock readings from `turn` soon become too old.
      await lease.settled();
      const renewed = lease.renew();
      const [first, second, stopAsked] = await Promise.all([
        renewed,
        turn === lease ? renewed : turn.renew(),
        isStopAsked(),
      ]);
      return { ...(first.monotonic < second.monotonic ? first : second), stopAsked };
    },
    appendLate: (line) =>
      withHandle(open(file, "a", 0o600), async (now) => {
        await now.appendFile(Buffer.concat(lineBytes(line)));
        await now.datasync();
      }),
    close: () => held().finally(() => handle.close()),
  };
}

/** Replaces a journal by a copy, so that a process that has the old file open can no longer change it. */
export async function detachJournal(file: string): Promise<void> {
  const fresh = `${file}.new`;
  const isThere = await unlessMissing(copyFile(file, fresh).then(() => true));
  if (!isThere) return;
  await withHandle(open(fresh, "a+", 0o600), async (handle) => {
    await handle.truncate(await endOfLastLine(handle));
    await handle.datasync();
  });
  await moveIntoPlace(fresh, file);
  await syncFolder(dirname(file));
}

export async function wholeBytes(file: string): Promise<number> {
  return (await unlessMissing(withHandle(openFile(file), endOfLastLine))) ?? 0;
}

const PIECES_AT_ONCE = 512;

/** Writes pieces without joining them, because joining would copy all bytes. */
async function writeWhole(handle: FileHandle, pieces: readonly Uint8Array[]): Promise<void> {
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  const { bytesWritten } = await handle.writev([...pieces]);
  // A nearly full disk may accept only a part. Writing the rest then throws the error of the disk.
  if (bytesWritten < bytes) await handle.appendFile(Buffer.concat(pieces).subarray(bytesWritten));
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

/** Yields the complete lines of a journal. A last line that a crash left incomplete is omitted. */
export async function* journalLines(file: string): AsyncGenerator<string> {
  const bytes = await wholeBytes(file);
  if (bytes === 0) return;
  yield* createInterface({ input: createReadStream(file, { encoding: "utf8", end: bytes - 1 }), crlfDelay: Infinity });
}
