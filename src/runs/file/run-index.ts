import { createHash } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncFolder } from "../../platform/durable-files.ts";
import { moveOver } from "../../platform/move-over.ts";
import { isRunId } from "../backend/kept.ts";
import type { Unfinished } from "../backend/store.ts";
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

/** One text for a caller's runs of one project and environment: answers of this scope may name the run. */
function scopeOf({ caller, project, environment }: Omit<IndexedRun, "runId" | "fingerprint">): string {
  return digest(JSON.stringify([caller, project, environment]));
}

/** The name of a caller's folder in the index. */
export function callerFolder(caller: string): string {
  return digest(caller);
}

/** What a folder of runs knows of them beside what is in their own folders. */
export type RunIndex = ReturnType<typeof runIndex>;

/**
 * The index of the runs below a folder. It knows by the names of small files which caller a run belongs to, whether it
 * may be unfinished, and which run of a call was made last, so that not every run has to be opened for it. A run is
 * noted before it is kept: so a mark without a run means nothing, and a run without a mark is one that another version
 * of this server kept. A mark of an open run that was not taken away in time costs one look.
 */
export function runIndex(folder: string) {
  const place = join(folder, INDEX_FOLDER);
  const open = join(place, OPEN);
  const callers = callerRuns(join(place, CALLERS));
  const lastOf = (fingerprint: string): string => join(place, LAST, digest(fingerprint));
  /** Notes that a run may be unfinished again. Throws where that cannot be written. */
  const reopen = async ({ runId, fingerprint, ...run }: IndexedRun): Promise<void> => {
    await mark(open, `${runId}.${digest(fingerprint)}.${scopeOf(run)}`);
    // The same call, made again after a power failure, must find the run.
    await syncFolder(open);
  };
  /** Notes that a run came to rest. */
  const markAtRest = async (runId: string): Promise<void> => {
    const mine = (await namesIn(open)).filter((name) => name.startsWith(`${runId}.`));
    await Promise.all(mine.map((name) => unmark(join(open, name))));
  };
  return {
    reopen,
    markAtRest,
    /** Notes a run, before it is kept, as one that may be unfinished. Throws where that cannot be written. */
    async add(run: IndexedRun): Promise<void> {
      await callers.note(callerFolder(run.caller), run.runId, "kept");
      await reopen(run);
      await keepLast(join(place, LAST), digest(run.fingerprint), run.runId);
    },
    /** Notes that a run holds what it took away. */
    markHoldsRemoved: (runId: string, caller: string) => callers.note(callerFolder(caller), runId, "removed"),
    /** The runs that may be unfinished, the newest first. */
    async open(which: Unfinished = "all"): Promise<readonly string[]> {
      const isAll = which === "all";
      const wanted = isAll ? undefined : "fingerprint" in which ? digest(which.fingerprint) : scopeOf(which);
      const found = (await namesIn(open)).flatMap((name) => {
        const [runId = "", ...marks] = name.split(".");
        return isRunId(runId) && (wanted === undefined || marks.includes(wanted)) ? runId : [];
      });
      return found.sort().reverse();
    },
    /** The runs of a caller, the newest first. */
    of: (caller: string) => callers.of(callerFolder(caller)),
    /** The runs of every caller, by the name of the caller's folder. */
    async all(): Promise<ReadonlyMap<string, readonly KeptMark[]>> {
      const found = new Map<string, readonly KeptMark[]>();
      for (const name of await callers.callers()) found.set(name, await callers.of(name));
      return found;
    },
    /** The run of a call that was made last; undefined where there was none, or it is gone. */
    async last(fingerprint: string): Promise<string | undefined> {
      const runId = await readText(lastOf(fingerprint));
      return runId !== undefined && isRunId(runId) ? runId : undefined;
    },
    /** Forgets a run that is gone; `name` is that of the caller's folder, as in `all`. */
    async forget(runId: string, name: string, fingerprint: string | undefined): Promise<void> {
      await callers.note(name, runId, "gone");
      await markAtRest(runId);
      if (fingerprint === undefined) return;
      if ((await readText(lastOf(fingerprint))) === runId) await unmark(lastOf(fingerprint));
    },
  };
}

/** A short name for a file: callers and fingerprints may hold any character. */
function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}

/** Replaced in one step, so that a reader finds either the old ID or the new one. */
async function keepLast(folder: string, name: string, runId: string): Promise<void> {
  const fresh = join(folder, `${name}-${runId}`);
  await inFolder(folder, () => writeFile(fresh, runId, { mode: 0o600 }));
  await moveOver(fresh, join(folder, name));
}
