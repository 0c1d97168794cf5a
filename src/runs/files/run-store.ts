import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, DAY_MS, systemClock } from "../../platform/clock.ts";
import { createFile, makeFolder, removeFile, replaceFile, unlessMissing } from "../../platform/files.ts";
import { parseJson } from "../../platform/json.ts";
import { ulidAt, ulidTime } from "../../spec/names-and-contexts.ts";
import { onceDone } from "../kind-runs.ts";
import { type RetentionWatch, retentionWatch, seenClock } from "../retention-clock.ts";
import {
  callGroupOf,
  DamagedRunError,
  isRunId,
  isUnstarted,
  mayBeUnfinished,
  parseRunHeader,
  type Revision,
  type RunQuery,
  type RunStore,
  readRunHeader,
  type StoredRun,
  VERSION,
} from "../store.ts";
import { type Lease, RECENT_MS, releaseOnError } from "../turn.ts";
import { isLeased, machineLock, tryLease } from "./lease.ts";
import {
  bytesInFolder,
  bytesOfFiles,
  callerFolder,
  detachJournal,
  FILES,
  INDEX_FOLDER,
  type IndexedRun,
  isDamaged,
  journalLines,
  type KeptMark,
  keepPart,
  namesInRun,
  openJournal,
  partIn,
  type RunIndex,
  readHeader,
  readRecord,
  readText,
  recordFile,
  runIndex,
  runsIn,
  statOf,
  wholeBytes,
  withStoreErrors,
} from "./run-folder.ts";

const NEVER = new AbortController().signal;

const COUNTED = [FILES.header, FILES.input, FILES.sheet, FILES.proposed] as const;

const UNSENT = "; nothing was sent";

/** A run store in files. Each run has a folder with the call, the journal as JSON lines, the record and the parts. */
export function fileRunStore(folder: string, clock: Clock, keep = DEFAULT_RETENTION): RunStore {
  const at = (runId: string, file: string): string => join(folder, runId, file);
  const index = runIndex(folder);
  const retention = clockOf(folder, index, clock, keep);
  const old = sweeper({ folder, index, clock, doubt: retention.doubt }, keep);
  const turns = machineLock((turn) => join(folder, INDEX_FOLDER, "turns", turn), systemClock);
  /** Adds runs that the index lacks. Does this once in each process, before runs are first listed or tidied. */
  const known = onceDone(() => adoptRuns(folder, index));
  const withIndex = <T>(work: () => Promise<T>) => withStoreErrors(folder, () => known().then(work));
  return {
    async create(given) {
      const create = async (): Promise<void> => {
        await index.add(given);
        await makeFolder(join(folder, given.runId));
        await replaceFile(at(given.runId, FILES.header), JSON.stringify({ version: VERSION, ...given }));
      };
      await withStoreErrors(folder, create, "runs", UNSENT);
    },
    update: (runId, record, lease) =>
      withStoreErrors(folder, async () => {
        await lease?.check(RECENT_MS);
        const { rest } = record;
        const before = record.version === 1 ? undefined : await readRecord(folder, runId);
        const isReopened = before !== undefined && !mayBeUnfinished(before) && mayBeUnfinished(record);
        const run = isReopened ? await indexedRun(folder, runId) : undefined;
        // The index entry is written to disk first, so that a repeated call finds the run after a power failure.
        if (run !== undefined) await index.reopen(run);
        const journalBytes = rest && (await wholeBytes(at(runId, FILES.journal)));
        const stored = rest === undefined ? record : { ...record, rest: { ...rest, journalBytes } };
        if (!(await createFile(at(runId, recordFile(record.version)), JSON.stringify(stored)))) return false;
        if (rest === undefined) return true;
        await noteRest(folder, index, runId);
        if (!mayBeUnfinished(record)) {
          old.sweepCaller(rest.caller, (await bytesInFolder(join(folder, runId))) >= LARGE_BYTES);
        }
        return true;
      }),
    record: (runId) => (isRunId(runId) ? readRecord(folder, runId) : Promise.resolve(undefined)),
    journal: (runId, lease) =>
      withStoreErrors(folder, () =>
        openJournal(at(runId, FILES.journal), lease, async () => (await stopsAsked(folder, runId)).length > 0),
      ),
    parts: {
      keep: (runId, part, pieces) => {
        const file = at(runId, FILES[part]);
        // The rejects, and parts that replace earlier ones, may be stored after requests were sent.
        const effect = part === "rejects" || existsSync(file) ? "" : UNSENT;
        return withStoreErrors(folder, () => keepPart(file, pieces), "runs", effect);
      },
      read: (runId, part) => partIn(at(runId, FILES[part])),
    },
    read: (runId) => (isRunId(runId) ? readRun(folder, runId) : Promise.resolve(undefined)),
    discard: (runId) => withStoreErrors(folder, () => removeRun(folder, index, runId)),
    revision: (runId) => (isRunId(runId) ? revisionOf(join(folder, runId)) : Promise.resolve(undefined)),
    list: (query) => withIndex(() => listed(index, query)),
    async withCallLock(fingerprint, work) {
      const hold = () => turns.hold(callGroupOf(fingerprint), () => Promise.allSettled([work()]), NEVER);
      const [done] = await withStoreErrors(folder, hold);
      if (done.status === "rejected") throw done.reason;
      return done.value;
    },
    lease: (runId) => withStoreErrors(folder, () => driverLease(join(folder, runId), clock)),
    isDriven: (runId) => isLeased(join(folder, runId), "driver", () => clock.now()),
    stops: {
      ask: (runId) => withStoreErrors(folder, () => replaceFile(at(runId, `${STOP_ASKED}${randomUUID()}`), "")),
      asked: (runId) => stopsAsked(folder, runId),
      async forget(runId, asked) {
        await withStoreErrors(folder, () => Promise.all(asked.map((name) => removeFile(at(runId, name)))));
      },
    },
    sizes: {
      of: (runIds) =>
        withStoreErrors(folder, () => bytesOfFiles(runIds.flatMap((runId) => COUNTED.map((file) => at(runId, file))))),
    },
    retention: { ...retention, tidy: () => withIndex(() => old.sweepAll()) },
  };
}

async function removeRun(folder: string, index: RunIndex, runId: string): Promise<void> {
  const { caller, fingerprint } = (await readHeader(folder, runId)) ?? {};
  await removeFolder(join(folder, runId));
  await index.forget(runId, callerFolder(caller ?? ""), fingerprint);
}

/** Removes a folder. Tries again if another process creates a file meanwhile, as it does to take the lease. */
function removeFolder(place: string): Promise<void> {
  return rm(place, { recursive: true, force: true, maxRetries: 3 });
}

async function stopsAsked(folder: string, runId: string): Promise<readonly string[]> {
  return (await namesInRun(join(folder, runId))).filter((name) => name.startsWith(STOP_ASKED));
}

async function listed(index: RunIndex, query: RunQuery): Promise<readonly string[]> {
  if ("lastOf" in query) return [(await index.last(query.lastOf)) ?? []].flat();
  if ("unfinished" in query) return index.open(query.unfinished);
  const { caller, before } = query;
  const ids = (await index.of(caller)).map(({ runId }) => runId);
  return before === undefined ? ids : ids.filter((runId) => runId < before);
}

const STOP_ASKED = "stop-asked.";

/** Takes the lease of a run. After a takeover, copies the journal, so that late writes of the old holder are lost. */
async function driverLease(place: string, clock: Clock): Promise<Lease | undefined> {
  const lease = await tryLease(place, "driver", clock);
  if (!lease?.isTakenOver) return lease;
  return releaseOnError(lease, async () => {
    await detachJournal(join(place, FILES.journal));
    return lease;
  });
}

async function readRun(folder: string, runId: string): Promise<StoredRun | undefined> {
  const record = await readRecord(folder, runId);
  const text = await readText(join(folder, runId, FILES.header));
  const { rest } = record ?? {};
  if (rest === undefined ? await isDamaged(folder, runId) : rest.isDamaged) {
    throw new DamagedRunError(runId, { header: parseRunHeader(parseJson(text ?? "")) });
  }
  if (record === undefined || text === undefined) return undefined;
  const header = readRunHeader(runId, text);
  const from = (file: string): AsyncIterable<string> => ({
    [Symbol.asyncIterator]: () => journalLines(join(folder, runId, file)),
  });
  return { header, record, proposed: from(FILES.proposed), entries: from(FILES.journal) };
}

/** Returns a run's revision. It changes if a file is replaced (other inode, other time) or the journal grows. */
async function revisionOf(place: string): Promise<Revision> {
  const records = (await namesInRun(place)).filter((name) => name.startsWith("record."));
  const files = [FILES.header, FILES.proposed, FILES.journal];
  const stats = await Promise.all(files.map((file) => statOf(join(place, file))));
  const text = stats.map((stats) => (stats ? [stats.ino, stats.size, stats.mtimeNs].join(":") : "")).join(" ");
  const bytes = stats.reduce((sum, one) => sum + Number(one?.size ?? 0), 0);
  return { text: `${text} ${records.length}`, bytes };
}

const KEEP_PLANNED_MS = DAY_MS;

/** How long (days) a caller's finished runs stay stored, how many of them, and how many bytes they may take. */
export interface Retention {
  readonly days: number;
  readonly runs: number;
  readonly bytes?: number;
}

const DEFAULT_RETENTION: Retention = { days: 30, runs: 500 };

const LARGE_BYTES = 262_144;

interface RunsFolder {
  readonly folder: string;
  readonly index: RunIndex;
  readonly clock: Clock;
  readonly doubt: () => Promise<string | undefined>;
}

const CLOCK = "clock.json";

function clockOf(folder: string, index: RunIndex, clock: Clock, keep: Retention): RetentionWatch {
  const file = join(folder, INDEX_FOLDER, CLOCK);
  const startedAt = clock.now();
  return retentionWatch({
    clock,
    keepMs: keep.days * DAY_MS,
    async read() {
      const text = await readText(file);
      return text === undefined ? undefined : seenClock.safeParse(parseJson(text)).data;
    },
    async store(seen) {
      if ((await unlessMissing(stat(folder))) === undefined) return;
      await makeFolder(dirname(file));
      await replaceFile(file, JSON.stringify(seen));
    },
    async newest() {
      const times = [...(await index.all()).values()].flat().map(({ runId }) => ulidTime(runId));
      const before = times.filter((time) => time < startedAt);
      return before.length === 0 ? undefined : before.reduce((one, other) => Math.max(one, other));
    },
  });
}

/**
 * Removes old runs. Runs that were never started are removed after a day, and other unfinished runs are never removed.
 * Finished runs that store what they removed from the service are removed only by age.
 */
function sweeper(of: RunsFolder, keep: Retention) {
  const { index, clock, doubt } = of;
  const waiting = new Map<string, boolean>();
  let going = false;
  /** Resolves when the background sweep ends. Of two sweeps at once, each would find leases that the other one holds. */
  let background = Promise.resolve();
  let lastAll = clock.now();
  const sweep = async (
    name: string,
    marks: readonly KeptMark[],
    { withPlans = false, isWeighed = true },
  ): Promise<void> => {
    // IDs from the future do not count. Otherwise runs created while the clock was ahead would replace all others.
    const newest = ulidAt(clock.now() + DAY_MS);
    const byNow = marks.filter(({ runId }) => runId <= newest);
    const found = await surplus(of, byNow, { keep, withPlans, isWeighed });
    for (const runId of found) await removeIfUseless(of, runId, name).catch(() => undefined);
  };
  const sweepWaiting = async (): Promise<void> => {
    const isInDoubt = (await doubt()) !== undefined;
    for (const [caller, isWeighed] of waiting) {
      waiting.delete(caller);
      if (isInDoubt) continue;
      await sweep(callerFolder(caller), await index.of(caller), { isWeighed }).catch(() => undefined);
    }
  };
  const sweepAll = async (): Promise<void> => {
    lastAll = clock.now();
    if ((await doubt()) !== undefined) return;
    for (const [name, marks] of await index.all()) await sweep(name, marks, { withPlans: true });
    await forgetGone(of);
  };
  return {
    sweepCaller(caller: string, isLarge: boolean): void {
      waiting.set(caller, isLarge || waiting.get(caller) === true);
      if (going) return;
      going = true;
      const isDue = clock.now() - lastAll >= KEEP_PLANNED_MS;
      // A failed sweep is repeated when another run ends.
      background = (isDue ? sweepAll() : Promise.resolve())
        .then(sweepWaiting)
        .catch(() => undefined)
        .finally(() => {
          going = false;
        });
    },
    sweepAll: () => background.then(sweepAll),
  };
}

/** Returns the IDs of the runs to remove, the oldest first. `marks`: a caller's runs in the index, the newest first. */
async function surplus(
  { folder, index, clock }: RunsFolder,
  marks: readonly KeptMark[],
  { keep, withPlans, isWeighed }: { readonly keep: Retention } & Readonly<Record<"withPlans" | "isWeighed", boolean>>,
): Promise<readonly string[]> {
  const open = new Set(await index.open());
  const { bytes: mostBytes = Number.POSITIVE_INFINITY } = keep;
  const old = ulidAt(clock.now() - keep.days * DAY_MS);
  const oldPlan = ulidAt(clock.now() - KEEP_PLANNED_MS);
  const found: string[] = [];
  let [plain, bytes] = [0, 0];
  for (const { runId, holdsRemoved } of marks) {
    const isOpen = open.has(runId);
    const isPlain = !isOpen && !holdsRemoved;
    if (isPlain) plain += 1;
    // A run whose size cannot be read counts as 0 bytes, so that no other run is removed because of it.
    if (isPlain && isWeighed && keep.bytes !== undefined)
      bytes += await bytesInFolder(join(folder, runId)).catch(() => 0);
    const isBeyond = isPlain && (plain > keep.runs || bytes > mostBytes);
    const isOld = isOpen ? withPlans && runId <= oldPlan : runId <= old;
    if (isBeyond || isOld) found.push(runId);
  }
  return found.reverse();
}

async function removeIfUseless(of: RunsFolder, runId: string, name: string): Promise<void> {
  const { folder, index, clock } = of;
  if (!(await isUseless(of, runId))) return;
  // While this process holds the lease, no other one can start or resume the run.
  const lease = await tryLease(join(folder, runId), "driver", clock);
  if (lease === undefined) return;
  try {
    if (!(await isUseless(of, runId))) return;
    const record = await readRecord(folder, runId);
    const isMarkedOpen = (await index.open()).includes(runId);
    // The process of this finished run ended before it could remove the mark of the run. Now, only the mark is removed.
    if (record !== undefined && !isUnstarted(record.status) && isMarkedOpen) return await index.markAtRest(runId);
    const fingerprint = record?.rest?.fingerprint ?? (await readHeader(folder, runId))?.fingerprint;
    // The index is changed first, so that no process finds half of the run. After a crash, a later process adds it again.
    await index.forget(runId, name, fingerprint);
    await removeFolder(join(folder, runId));
  } finally {
    await lease.release();
  }
}

async function isUseless({ folder, clock }: RunsFolder, runId: string): Promise<boolean> {
  const record = await readRecord(folder, runId);
  const wasStarted = record !== undefined && !isUnstarted(record.status);
  return wasStarted ? !mayBeUnfinished(record) : isLong(runId, clock.now(), KEEP_PLANNED_MS);
}

function isLong(runId: string, now: number, ms: number): boolean {
  return now - ulidTime(runId) >= ms;
}

/**
 * Removes index entries without a run, and run folders without a header, if they are older than a day. Newer ones may
 * belong to a run that is just being stored, because the entry is created before the run.
 */
async function forgetGone({ folder, index, clock }: RunsFolder): Promise<void> {
  const runs = new Set(await runsIn(folder));
  const marked = new Set<string>();
  for (const [name, marks] of await index.all()) {
    for (const { runId } of marks) {
      marked.add(runId);
      if (!runs.has(runId) && isLong(runId, clock.now(), DAY_MS)) await index.forget(runId, name, undefined);
    }
  }
  for (const runId of runs) {
    if (marked.has(runId) || !isLong(runId, clock.now(), DAY_MS)) continue;
    if ((await readHeader(folder, runId)) !== undefined || (await isHeld(folder, runId, clock))) continue;
    await rm(join(folder, runId), { recursive: true, force: true });
  }
}

/** Returns whether a process holds the lease of a run. True if that is unknown, so that the run is not removed. */
async function isHeld(folder: string, runId: string, clock: Clock): Promise<boolean> {
  try {
    return await isLeased(join(folder, runId), "driver", () => clock.now());
  } catch {
    return true;
  }
}

/** Adds runs that the index lacks: for example copied runs, or runs whose removal was cut off by a crash. */
async function adoptRuns(folder: string, index: RunIndex): Promise<void> {
  const runs = await runsIn(folder);
  if (runs.length === 0) return;
  const marked = new Set([...(await index.all()).values()].flatMap((marks) => marks.map(({ runId }) => runId)));
  // The runs of a call are added from the oldest to the newest, because the index keeps the one that is added last.
  for (const runId of runs.filter((one) => !marked.has(one)).reverse()) {
    const run = await indexedRun(folder, runId);
    if (run === undefined) continue;
    await index.add(run);
    await noteRest(folder, index, runId);
  }
}

async function noteRest(folder: string, index: RunIndex, runId: string): Promise<void> {
  const record = await readRecord(folder, runId);
  if (record?.rest === undefined) return;
  const holdsRemoved = await unlessMissing(stat(join(folder, runId, FILES.removed)));
  if (holdsRemoved !== undefined) await index.markHoldsRemoved(runId, record.rest.caller);
  if (!mayBeUnfinished(record)) await index.markAtRest(runId);
}

async function indexedRun(folder: string, runId: string): Promise<IndexedRun | undefined> {
  const { caller, project, environment, fingerprint } = (await readHeader(folder, runId)) ?? {};
  if (caller === undefined || project === undefined || environment === undefined) return undefined;
  return { runId, caller, project, environment, fingerprint: fingerprint ?? "" };
}
