import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ulidTime } from "../spec/ulid.ts";
import { isLeased } from "./lease.ts";
import { FILES, markAnew, readHeader, readSummary, readText, runsIn } from "./run-files.ts";
import { INDEX_FOLDER, type RunIndex, type RunMark } from "./run-index.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;
const KEEP_MS = 30 * DAY_MS;
const KEEP_RUNS = 500;
/** A planned run that nobody confirmed is of no use once its confirmation has expired. */
const KEEP_PLANNED_MS = DAY_MS;

/** Old runs are looked for once an hour, by one of all processes, and by each that makes so many. */
const SWEEP_MS = HOUR_MS;
const SWEEP_RUNS = 100;

/** Where it is kept when somebody last looked for old runs. */
const SWEPT = "swept";

/**
 * Removes finished runs after 30 days or beyond 500, and plans that nobody confirmed; never an unfinished run. Gives a
 * function that is told of every new run and looks for old ones once in a while, in the background: no call waits.
 */
export function sweeper(folder: string, index: RunIndex, now: () => number): () => void {
  let made = 0;
  let last: number | undefined;
  let going = false;
  const sweepIfDue = async (isMany: boolean): Promise<void> => {
    const at = now();
    last = at;
    made = 0;
    const note = join(folder, INDEX_FOLDER, SWEPT);
    const before = isMany ? Number.NaN : Number((await readText(note)) ?? Number.NaN);
    if (before <= at && at - before < SWEEP_MS) return;
    await mkdir(join(folder, INDEX_FOLDER), { recursive: true, mode: 0o700 });
    await writeFile(note, String(at), { mode: 0o600 });
    await sweep(folder, index, at);
  };
  return () => {
    made += 1;
    const isMany = made >= SWEEP_RUNS;
    if (going || (!isMany && last !== undefined && now() - last < SWEEP_MS)) return;
    going = true;
    // What cannot be removed now is in nobody's way, and is tried again.
    void sweepIfDue(isMany)
      .catch(() => undefined)
      .finally(() => {
        going = false;
      });
  };
}

async function sweep(folder: string, index: RunIndex, now: number): Promise<void> {
  const runs = await runsIn(folder);
  const marks = await index.read();
  for (const [newer, runId] of runs.entries()) {
    try {
      const mark = marks.get(runId) ?? (await markAnew(folder, index, runId));
      const isBeyond = newer >= KEEP_RUNS;
      if (!isBeyond && now - ulidTime(runId) < KEEP_PLANNED_MS) continue;
      if (!(await isUseless(folder, { runId, mark, isBeyond, now }))) continue;
      await rm(join(folder, runId), { recursive: true, force: true });
      await index.forget(runId, mark);
    } catch {
      // A run that cannot be looked at or removed keeps nobody from the others.
    }
  }
  const kept = new Set(runs);
  for (const [runId, mark] of marks) {
    // A mark comes before its run.
    if (!kept.has(runId) && now - ulidTime(runId) > DAY_MS) await index.forget(runId, mark);
  }
}

interface OldRun {
  readonly runId: string;
  readonly mark: RunMark | undefined;
  readonly isBeyond: boolean;
  readonly now: number;
}

async function isUseless(folder: string, { runId, mark, isBeyond, now }: OldRun): Promise<boolean> {
  const ageById = now - ulidTime(runId);
  if (mark === "atRest" && !isBeyond && ageById < KEEP_MS) return false;
  const header = await readHeader(folder, runId);
  // A folder whose header is just being written is as old as its ID says.
  const age = header?.createdAt === undefined ? ageById : now - header.createdAt;
  const isStarted = (await readText(join(folder, runId, FILES.started))) !== undefined;
  if (!isStarted || header === undefined) return age > KEEP_PLANNED_MS && !(await isHeld(folder, runId, now));
  if (!isBeyond && age < KEEP_MS) return false;
  const told = await readSummary(folder, runId);
  return told !== undefined && !told.open && !(await isHeld(folder, runId, now));
}

/** Somebody may have taken up again what was at rest; where that cannot be told it stays. */
async function isHeld(folder: string, runId: string, now: number): Promise<boolean> {
  try {
    return await isLeased(join(folder, runId), "driver", () => now);
  } catch {
    return true;
  }
}
