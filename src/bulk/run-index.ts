import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** Names of run folders are 26 letters and digits, so that this is none of them. */
export const INDEX_FOLDER = "calls";
/** Stands where the fingerprint of the call stood, once nothing is left of a run that the same call could go on with. */
const AT_REST = "rests";

/** What the index knows of a run: the fingerprint of its call, or that nobody has to look at it any more. */
export type RunMark = { readonly fingerprint: string } | "atRest";

/**
 * Tells by the names of empty files which runs may be unfinished, and of which call, so that nobody has to open every
 * run to find that out. It is a help only and never wrong for long: a run without a mark is looked at, a mark without a
 * run means nothing, and a mark that came to rest too late costs a look. So nothing here fails.
 */
export interface RunIndex {
  /** Notes that a run may be unfinished. */
  mayBeOpen(runId: string, fingerprint: string): Promise<void>;
  /** Notes that a run came to rest. */
  rests(runId: string, fingerprint: string): Promise<void>;
  /** What is known, by run. */
  read(): Promise<ReadonlyMap<string, RunMark>>;
  forget(runId: string, mark: RunMark | undefined): Promise<void>;
}

/** The index of the runs below a folder. */
export function runIndex(folder: string): RunIndex {
  const place = join(folder, INDEX_FOLDER);
  const fileOf = (runId: string, mark: string): string => join(place, `${runId}.${mark}`);
  const touch = async (file: string): Promise<void> => {
    const write = (): Promise<void> => writeFile(file, "", { flag: "a", mode: 0o600 });
    if (await works(write)) return;
    await works(() => mkdir(place, { recursive: true, mode: 0o700 }));
    await works(write);
  };
  return {
    mayBeOpen: async (runId, fingerprint) => {
      if (isFileName(fingerprint)) await touch(fileOf(runId, fingerprint));
    },
    async rests(runId, fingerprint) {
      const before = fileOf(runId, fingerprint);
      const after = fileOf(runId, AT_REST);
      if (isFileName(fingerprint) && (await works(() => rename(before, after)))) return;
      await touch(after);
    },
    async read() {
      const marks = new Map<string, RunMark>();
      for (const name of await namesIn(place)) {
        const dot = name.indexOf(".");
        if (dot < 0) continue;
        const [runId, mark] = [name.slice(0, dot), name.slice(dot + 1)];
        // Where two processes left both, the one that makes somebody look counts.
        if (mark !== AT_REST) marks.set(runId, { fingerprint: mark });
        else if (!marks.has(runId)) marks.set(runId, "atRest");
      }
      return marks;
    },
    async forget(runId, mark) {
      await works(() => rm(fileOf(runId, AT_REST), { force: true }));
      if (mark === undefined || mark === "atRest") return;
      await works(() => rm(fileOf(runId, mark.fingerprint), { force: true }));
    },
  };
}

function isFileName(fingerprint: string): boolean {
  return /^[\w-]+$/.test(fingerprint) && fingerprint !== AT_REST;
}

async function works(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch {
    return false;
  }
}

async function namesIn(folder: string): Promise<readonly string[]> {
  try {
    return await readdir(folder);
  } catch {
    return [];
  }
}
