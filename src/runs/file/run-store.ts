import { randomUUID } from "node:crypto";
import { rm, stat } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { type Clock, systemClock } from "../../platform/clock.ts";
import { createFile, makeFolder, replaceFile } from "../../platform/durable-files.ts";
import { removeFile } from "../../platform/files.ts";
import { parseJson } from "../../platform/json.ts";
import { damaged } from "../entries.ts";
import { groupOf, headerIn, isRunId, VERSION } from "../kept.ts";
import { mayBeUnfinished } from "../lifecycle.ts";
import { onceDone } from "../same-call.ts";
import {
  type Revision,
  type RunHeader,
  type RunQuery,
  type RunStore,
  RunStoreError,
  type StoredRun,
} from "../store.ts";
import { type Lease, RECENT_MS, releaseOnError } from "../turn.ts";
import { journalLines, openJournal, partJournal, wholeBytes } from "./journal.ts";
import { isLeased, tryLease } from "./lease.ts";
import { machineLock } from "./project-lock.ts";
import { adoptRuns, clockOf, DEFAULT_RETENTION, indexedRun, isLargeRun, noteRest, sweeper } from "./retention.ts";
import {
  FILES,
  isDamaged,
  keepPart,
  namesIn,
  partIn,
  readHeader,
  readRecord,
  readText,
  recordFile,
  unlessMissing,
  usable,
} from "./run-folder.ts";
import { callerFolder, INDEX_FOLDER, type RunIndex, runIndex } from "./run-index.ts";

const NEVER = new AbortController().signal;

/** What is counted of a run that is not finished. */
const COUNTED = [FILES.header, FILES.input, FILES.sheet, FILES.proposed] as const;

const versioned = z.looseObject({ version: z.number() });

/**
 * Keeps each run in a folder of its own below `folder`, readable by the owner only: the call, an append-only journal
 * of JSON lines, what was taken away, the versions of its record. Folders are made when the first run is.
 */
export function fileRunStore(folder: string, clock: Clock, keep = DEFAULT_RETENTION): RunStore {
  const now = (): number => clock.now();
  const at = (runId: string, file: string): string => join(folder, runId, file);
  const index = runIndex(folder);
  const retention = clockOf(folder, index, clock, keep);
  const old = sweeper({ folder, index, now, doubt: retention.doubt }, keep);
  const turns = machineLock((turn) => join(folder, INDEX_FOLDER, "turns", turn), systemClock);
  /** The index knows every run once this process has looked for those without a mark. */
  const known = onceDone(() => adoptRuns(folder, index));
  const withIndex = <T>(work: () => Promise<T>) => usable(folder, () => known().then(work));
  return {
    async create(given) {
      await usable(folder, async () => {
        await index.add(given);
        await makeFolder(join(folder, given.runId));
        await replaceFile(at(given.runId, FILES.header), JSON.stringify({ version: VERSION, ...given }));
      });
    },
    update: (runId, record, lease) =>
      usable(folder, async () => {
        await lease?.check(RECENT_MS);
        const { rest } = record;
        const before = record.version === 1 ? undefined : await readRecord(folder, runId);
        const isReopened = before !== undefined && !mayBeUnfinished(before) && mayBeUnfinished(record);
        const run = isReopened ? await indexedRun(folder, runId) : undefined;
        // The same call, made again after a power failure, must find the run.
        if (run !== undefined) await index.reopen(run);
        const journalBytes = rest && (await wholeBytes(at(runId, FILES.journal)));
        const stored = rest === undefined ? record : { ...record, rest: { ...rest, journalBytes } };
        if (!(await createFile(at(runId, recordFile(record.version)), JSON.stringify(stored)))) return false;
        if (rest === undefined) return true;
        await noteRest(folder, index, runId);
        if (!mayBeUnfinished(record)) old.sweepCaller(rest.caller, await isLargeRun(folder, runId));
        return true;
      }),
    record: (runId) => (isRunId(runId) ? readRecord(folder, runId) : Promise.resolve(undefined)),
    journal: (runId, lease) =>
      usable(folder, () =>
        openJournal(at(runId, FILES.journal), lease, async () => (await stopsAsked(folder, runId)).length > 0),
      ),
    keep: (runId, part, pieces) => usable(folder, () => keepPart(at(runId, FILES[part]), pieces)),
    part: (runId, part) => partIn(at(runId, FILES[part])),
    read: (runId) => (isRunId(runId) ? readRun(folder, runId) : Promise.resolve(undefined)),
    discard: (runId) => usable(folder, () => removeRun(folder, index, runId)),
    revision: (runId) => (isRunId(runId) ? revisionOf(join(folder, runId)) : Promise.resolve(undefined)),
    list: (query) => withIndex(() => listed(index, query)),
    async withCallLock(fingerprint, work) {
      const hold = () => turns.hold(groupOf(fingerprint), () => Promise.allSettled([work()]), NEVER);
      const [done] = await usable(folder, hold);
      if (done.status === "rejected") throw done.reason;
      return done.value;
    },
    lease: (runId) => usable(folder, () => driverLease(join(folder, runId), clock)),
    isDriven: (runId) => isLeased(join(folder, runId), "driver", () => clock.now()),
    stops: {
      ask: (runId) => usable(folder, () => replaceFile(at(runId, `${STOP_ASKED}${randomUUID()}`), "")),
      asked: (runId) => stopsAsked(folder, runId),
      async forget(runId, asked) {
        await usable(folder, () => Promise.all(asked.map((name) => removeFile(at(runId, name)))));
      },
    },
    sizes: {
      async of(runIds) {
        const files = runIds.flatMap((runId) => COUNTED.map((file) => unlessMissing(stat(at(runId, file)))));
        return (await usable(folder, () => Promise.all(files))).reduce((sum, file) => sum + (file?.size ?? 0), 0);
      },
    },
    tidy: () => withIndex(() => old.sweepAll()),
    retention,
  };
}

async function removeRun(folder: string, index: RunIndex, runId: string): Promise<void> {
  const { caller, fingerprint } = (await readHeader(folder, runId)) ?? {};
  await rm(join(folder, runId), { recursive: true, force: true });
  await index.forget(runId, callerFolder(caller ?? ""), fingerprint);
}

async function stopsAsked(folder: string, runId: string): Promise<readonly string[]> {
  return (await namesIn(join(folder, runId))).filter((name) => name.startsWith(STOP_ASKED));
}

/** The runs that a query asks for, the newest first. */
async function listed(index: RunIndex, query: RunQuery): Promise<readonly string[]> {
  if ("lastOf" in query) return [(await index.last(query.lastOf)) ?? []].flat();
  if ("unfinished" in query) return index.open(query.unfinished);
  const { caller, before } = query;
  const ids = (await index.of(caller)).map(({ runId }) => runId);
  return before === undefined ? ids : ids.filter((runId) => runId < before);
}

/** The prefix of the files that ask the driver of a run to stop. */
const STOP_ASKED = "stop-asked.";

/** Where the driver before may still run, the journal is replaced, so that its late entries change nothing. */
async function driverLease(place: string, clock: Clock): Promise<Lease | undefined> {
  const lease = await tryLease(place, "driver", clock);
  if (!lease?.isTakenOver) return lease;
  return releaseOnError(lease, async () => {
    await partJournal(join(place, FILES.journal));
    return lease;
  });
}

async function readRun(folder: string, runId: string): Promise<StoredRun | undefined> {
  const record = await readRecord(folder, runId);
  const text = await readText(join(folder, runId, FILES.header));
  const { rest } = record ?? {};
  if (rest === undefined ? await isDamaged(folder, runId) : rest.isDamaged) {
    throw damaged(runId, { header: headerIn(parseJson(text ?? "")) });
  }
  if (record === undefined || text === undefined) return undefined;
  const header = parseHeader(runId, text);
  const from = (file: string): AsyncIterable<string> => ({
    [Symbol.asyncIterator]: () => journalLines(join(folder, runId, file)),
  });
  return { header, record, proposed: from(FILES.proposed), entries: from(FILES.journal) };
}

function parseHeader(runId: string, text: string): RunHeader {
  const value = parseJson(text);
  const { data } = versioned.safeParse(value);
  if (data !== undefined && data.version > VERSION) {
    throw new RunStoreError(`run ${runId} was made by a newer version of this server`, "Use that version for it.");
  }
  const header = headerIn(value);
  if (header === undefined) throw damaged(runId);
  return header;
}

/** Replaced files have another inode or time, a record has a version, and a journal that grew has another size. */
async function revisionOf(place: string): Promise<Revision> {
  const records = (await namesIn(place)).filter((name) => name.startsWith("record."));
  const files = [FILES.header, FILES.proposed, FILES.journal];
  const stats = await Promise.all(files.map((file) => unlessMissing(stat(join(place, file), { bigint: true }))));
  const text = stats.map((stats) => (stats ? [stats.ino, stats.size, stats.mtimeNs].join(":") : "")).join(" ");
  const bytes = stats.reduce((sum, one) => sum + Number(one?.size ?? 0), 0);
  return { text: `${text} ${records.length}`, bytes };
}
