import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { moveOver } from "../../platform/move-over.ts";
import { isRunId } from "../backend/kept.ts";
import { callerRuns, type KeptMark } from "./caller-runs.ts";
import { inFolder, mark, namesIn, readText, unmark } from "./files.ts";

/** Names of run folders are 26 letters and digits, so that this is none of them. */
export const INDEX_FOLDER = "calls";
/** Marks of runs that may be unfinished: `<run>.<fingerprint>.<scope>`. */
const OPEN = "open";
/** The runs of each caller, see `callerRuns`. */
const CALLERS = "callers";
/** For each fingerprint a file that holds the run that was made last. */
const LAST = "last";

/** What the index needs to know of a run. */
export interface IndexedRun {
  readonly runId: string;
  readonly caller: string;
  readonly project: string;
  readonly environment: string;
  readonly fingerprint: string;
}

/** A run that may be unfinished. */
export interface OpenMark {
  readonly runId: string;
  readonly fingerprint: string;
  readonly scope: string;
}

/**
 * Knows by the names of small files which caller a run belongs to, whether it may be unfinished, and which run of a
 * call was made last, so that not every run has to be opened for it. A run is noted before it is kept: so a mark
 * without a run means nothing, and a run without a mark is one that another version of this server kept. A mark of an
 * open run that was not taken away in time costs one look.
 */
export interface RunIndex {
  /** Notes a run, before it is kept, as one that may be unfinished. Throws where that cannot be written. */
  add(run: IndexedRun): Promise<void>;
  /** Notes that a run may be unfinished again. Throws where that cannot be written. */
  reopen(run: IndexedRun): Promise<void>;
  /** Notes that a run came to rest. */
  markAtRest(runId: string): Promise<void>;
  /** Notes that a run holds what it took away. */
  markHoldsRemoved(runId: string, caller: string): Promise<void>;
  /** The runs that may be unfinished, the newest first. */
  open(): Promise<readonly OpenMark[]>;
  /** The runs of a caller, the newest first. */
  of(caller: string): Promise<readonly KeptMark[]>;
  /** The runs of every caller, by the name of the caller's folder. */
  all(): Promise<ReadonlyMap<string, readonly KeptMark[]>>;
  /** The run of a call that was made last; undefined where there was none, or it is gone. */
  last(fingerprint: string): Promise<string | undefined>;
  /** Forgets a run that is gone; `callerFolder` as in `all`. */
  forget(runId: string, callerFolder: string, fingerprint: string | undefined): Promise<void>;
}

/** One text for a caller's runs of one project and environment: answers of this scope may name the run. */
export function scopeOf({ caller, project, environment }: Omit<IndexedRun, "runId" | "fingerprint">): string {
  return digest(JSON.stringify([caller, project, environment]));
}

/** The name of a caller's folder in the index. */
export function callerFolder(caller: string): string {
  return digest(caller);
}

/** The index of the runs below a folder. */
export function runIndex(folder: string): RunIndex {
  const place = join(folder, INDEX_FOLDER);
  const open = join(place, OPEN);
  const callers = callerRuns(join(place, CALLERS));
  const lastOf = (fingerprint: string): string => join(place, LAST, digest(fingerprint));
  const reopen = ({ runId, fingerprint, ...run }: IndexedRun): Promise<void> =>
    mark(open, `${runId}.${digest(fingerprint)}.${scopeOf(run)}`);
  const markAtRest = async (runId: string): Promise<void> => {
    const mine = (await namesIn(open)).filter((name) => name.startsWith(`${runId}.`));
    await Promise.all(mine.map((name) => unmark(join(open, name))));
  };
  return {
    async add(run) {
      await callers.note(callerFolder(run.caller), run.runId, "kept");
      await reopen(run);
      await keepLast(join(place, LAST), digest(run.fingerprint), run.runId);
    },
    reopen,
    markAtRest,
    markHoldsRemoved: (runId, caller) => callers.note(callerFolder(caller), runId, "removed"),
    async open() {
      return (await namesIn(open)).flatMap(openMark).sort(newestFirst);
    },
    of: (caller) => callers.of(callerFolder(caller)),
    async all() {
      const found = new Map<string, readonly KeptMark[]>();
      for (const name of await callers.callers()) found.set(name, await callers.of(name));
      return found;
    },
    async last(fingerprint) {
      const runId = await readText(lastOf(fingerprint));
      return runId !== undefined && isRunId(runId) ? runId : undefined;
    },
    async forget(runId, name, fingerprint) {
      await callers.note(name, runId, "gone");
      await markAtRest(runId);
      if (fingerprint === undefined) return;
      if ((await readText(lastOf(fingerprint))) === runId) await unmark(lastOf(fingerprint));
    },
  };
}

/** Whether a mark is one of this call. */
export function isOfCall(mark: OpenMark, fingerprint: string): boolean {
  return mark.fingerprint === digest(fingerprint);
}

/** A short name for a file: callers and fingerprints may hold any character. */
function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

function openMark(name: string): readonly OpenMark[] {
  const [runId = "", fingerprint = "", scope = ""] = name.split(".");
  return isRunId(runId) ? [{ runId, fingerprint, scope }] : [];
}

function newestFirst(one: { readonly runId: string }, other: { readonly runId: string }): number {
  return one.runId < other.runId ? 1 : -1;
}

/** Replaced in one step, so that a reader finds either the old ID or the new one. */
async function keepLast(folder: string, name: string, runId: string): Promise<void> {
  const fresh = join(folder, `${name}-${runId}`);
  await inFolder(folder, () => writeFile(fresh, runId, { mode: 0o600 }));
  await moveOver(fresh, join(folder, name));
}
