import { appendFile, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../../platform/durable-files.ts";
import { isRunId } from "../backend/kept.ts";
import { mark, namesIn, unlessMissing, unmark } from "./files.ts";

/** A run of a caller. */
export interface KeptMark {
  readonly runId: string;
  /** Whether the run keeps options or Context IDs that it took away. */
  readonly holdsRemoved: boolean;
}

/** What happened to a run of a caller. */
type MarkChange = "kept" | "removed" | "gone";

const REMOVED = "removed";
/** The log beside the marks of a caller: one line for each change of a mark, in the order of time. */
const LOG = "log";
const LONGEST_LOG = 1_000_000;
/** A list is read anew after this time, in milliseconds, in case the log misses a change. */
const READ_ANEW_MS = 60_000;
const MOST_CACHED = 64;

/** A list as it was read, and how far the log was read for it. */
interface Listed {
  readonly marks: readonly KeptMark[];
  readonly log: LogAt;
  readonly readAt: number;
}

/** Which file a log is, and how long. */
interface LogAt {
  readonly file: bigint;
  readonly bytes: number;
}

/**
 * Keeps a folder for each caller below `place`, with an empty file for each run: `<run>`, or `<run>.removed`. Listing
 * thousands of files takes long, so a process that has a list reads only the new lines of the log.
 */
export function callerRuns(place: string) {
  const cached = new Map<string, Listed>();
  const remember = (caller: string, listed: Listed): void => {
    cached.delete(caller);
    cached.set(caller, listed);
    const [oldest] = cached.keys();
    if (cached.size > MOST_CACHED && oldest !== undefined) cached.delete(oldest);
  };
  return {
    /** Notes that a run exists, that it keeps what it took away, or that it was removed. */
    async note(caller: string, runId: string, change: MarkChange): Promise<void> {
      const folder = join(place, caller);
      if (change !== "gone") await mark(folder, change === "kept" ? runId : `${runId}.${REMOVED}`);
      if (change !== "kept") await unmark(join(folder, runId));
      if (change === "gone") await unmark(join(folder, `${runId}.${REMOVED}`));
      // Runs that keep what they took away are told by their marks from those that may go. The log is a cache.
      if (change !== "gone") await syncFolder(folder);
      await appendFile(join(folder, LOG), `${runId} ${change}\n`, { mode: 0o600 });
    },
    /** The runs of a caller, the newest first. */
    async of(caller: string): Promise<readonly KeptMark[]> {
      const folder = join(place, caller);
      const log = await logAt(folder);
      const known = cached.get(caller);
      const canReadOn = known !== undefined && known.log.file === log.file && known.log.bytes <= log.bytes;
      if (canReadOn && Date.now() - known.readAt < READ_ANEW_MS) {
        if (known.log.bytes === log.bytes) return known.marks;
        const marks = changed(known.marks, await linesOf(folder, known.log.bytes, log.bytes));
        remember(caller, { marks, log, readAt: known.readAt });
        return marks;
      }
      const marks = await marksIn(folder);
      remember(caller, { marks, log, readAt: Date.now() });
      if (log.bytes > LONGEST_LOG) await unmark(join(folder, LOG));
      return marks;
    },
    /** The names of the callers' folders. */
    callers: () => namesIn(place),
  };
}

async function marksIn(folder: string): Promise<readonly KeptMark[]> {
  const marks = new Map<string, boolean>();
  for (const name of await namesIn(folder)) {
    const [runId = "", flag] = name.split(".");
    if (isRunId(runId)) marks.set(runId, flag === REMOVED || marks.get(runId) === true);
  }
  return newestFirst(marks);
}

/** A list after some lines of the log. */
function changed(before: readonly KeptMark[], lines: readonly string[]): readonly KeptMark[] {
  const fresh = new Map<string, MarkChange>();
  for (const line of lines) {
    const [runId = "", change] = line.split(" ");
    if (isRunId(runId) && (change === "kept" || change === "removed" || change === "gone")) fresh.set(runId, change);
  }
  const marks = new Map<string, boolean>();
  for (const [runId, change] of fresh) if (change !== "gone") marks.set(runId, change === REMOVED);
  const rest = before.filter(({ runId }) => !fresh.has(runId));
  const added = newestFirst(marks);
  const [newest] = rest;
  const oldest = added.at(-1);
  if (newest === undefined || oldest === undefined || oldest.runId > newest.runId) return [...added, ...rest];
  return [...added, ...rest].sort((one, other) => (one.runId < other.runId ? 1 : -1));
}

function newestFirst(marks: ReadonlyMap<string, boolean>): readonly KeptMark[] {
  const runIds = [...marks.keys()].sort().reverse();
  return runIds.map((runId) => ({ runId, holdsRemoved: marks.get(runId) === true }));
}

async function logAt(folder: string): Promise<LogAt> {
  const found = await unlessMissing(stat(join(folder, LOG), { bigint: true }));
  return { file: found?.ino ?? 0n, bytes: Number(found?.size ?? 0) };
}

async function linesOf(folder: string, from: number, to: number): Promise<readonly string[]> {
  const handle = await open(join(folder, LOG), "r");
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(to - from), 0, to - from, from);
    return buffer.toString("utf8", 0, bytesRead).split("\n");
  } finally {
    await handle.close();
  }
}
