import { randomUUID } from "node:crypto";
import { beyondCall } from "../../platform/clock.ts";
import type { Pieces } from "../../platform/files.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { parseJson } from "../../platform/json.ts";
import type { ProjectLock } from "../backend.ts";
import {
  CREATED,
  callGroupOf,
  DamagedRunError,
  isRunId,
  LostEntriesError,
  lineBytes,
  mayBeUnfinished,
  type OrphanedRuns,
  type RunJournal,
  type RunQuery,
  type RunRecord,
  type RunStore,
  RunStoreError,
  readRunHeader,
  runRecord,
  type StopStore,
  type StoredRun,
  StoreUnavailableError,
  VERSION,
  wholeLines,
} from "../store.ts";
import { type Intent, isFresh, type Lease, readClocks, type Turn } from "../turn.ts";
import { atEndOfCall, callUntil, type Database, IS_NAMED, inCallTime } from "./database.ts";
import { driverOf, type LeasesOf, refusedRun, STOPS, StoredLease, storedLease, TTL, takeLease } from "./member.ts";
import type { Sweeper } from "./side-stores.ts";

const ENTRIES_AT_ONCE = 50;
const LISTED_AT_ONCE = 200;
const MAX_UNFINISHED = 1000;
const AFTER_ALL = "~";
/** For this long after a process was last seen, it counts as alive. */
const SEEN_WITHIN = "30 seconds";

export function storedRuns(
  of: LeasesOf,
  turns: ProjectLock,
  { left, sweeper }: { readonly left: OrphanedRuns; readonly sweeper: Sweeper },
): RunStore {
  const { database } = of;
  /**
   * By run ID: the runs of calls in progress that are not planned or started yet. The promise resolves when the run is
   * stored. If the call fails before the run is planned or started, the run is then removed.
   */
  const unstarted = new Map<string, Promise<unknown>>();
  return {
    async create(given) {
      const { runId, project, caller, environment, fingerprint } = given;
      const header = JSON.stringify({ version: VERSION, ...given });
      const storing = beyondCall(() =>
        database.rows(CREATE, [runId, project, caller, environment, fingerprint, header]),
      );
      unstarted.set(runId, storing);
      atEndOfCall((thrown) => {
        // If the run cannot be removed now, the daily cleanup removes it. If the call succeeded, its answer names the run.
        const stored = thrown === undefined ? undefined : unstarted.get(runId);
        const removed = stored?.then(() => removeUnstarted(database, runId));
        removed?.catch(() => undefined);
        unstarted.delete(runId);
        return thrown;
      });
      mention(runId);
      await inCallTime(storing, of.clock);
    },
    async update(runId, record, lease) {
      const held = lease === undefined ? undefined : storedLease(lease);
      const { version, status } = record;
      const changed = await database.rows(UPDATE, [
        ...[runId, version, randomUUID(), status, JSON.stringify(record), mayBeUnfinished(record)],
        ...[held?.name ?? null, held?.token ?? null],
      ]);
      if (changed.length === 0) await held?.check();
      if (changed.length === 0) return false;
      unstarted.delete(runId);
      of.member.changed(runId);
      if (record.rest !== undefined) sweeper.rested(record.rest.caller);
      return true;
    },
    mention,
    record: (runId) => recordOf(database, runId),
    journal: (runId, lease, wasLeft) => openStoredJournal(of, runId, lease, wasLeft),
    parts: {
      keep: (runId, part, pieces) => keepPart(database, runId, part, pieces),
      read: (runId, part) => partOf(database, runId, part),
    },
    read: (runId) => (isRunId(runId) ? readRun(database, runId) : Promise.resolve(undefined)),
    async discard(runId) {
      await database.rows("delete from targeting_mcp.run where id = $1", [runId]);
    },
    async revision(runId) {
      const [found] = await database.rows<{ changes: string; bytes: string }>(
        "select changes, bytes from targeting_mcp.run where id = $1",
        [runId],
      );
      return found && { text: found.changes, bytes: Number(found.bytes) };
    },
    list: (query) => idsOf(database, ...queryOf(query)),
    async lastChanged(fingerprint) {
      const [last] = await database.rows<{ id: string; ended: boolean; ago: number }>(LAST_CHANGED, [fingerprint]);
      return last && { runId: last.id, endedAt: last.ended ? of.clock.now() - last.ago : undefined };
    },
    withCallLock: (fingerprint, work) => turns.hold(`turn:${callGroupOf(fingerprint)}`, work, callEnds(of.clock)),
    lease: (runId) =>
      takeLease(of, driverOf(runId), (released) => {
        const before = unstarted.get(runId);
        if (before !== undefined) unstarted.set(runId, Promise.all([before, released]));
      }),
    async isDriven(runId) {
      const values = [runId, driverOf(runId), SEEN_WITHIN, refusedRun(runId)];
      const [row] = await database.rows<{ driven: boolean }>(IS_DRIVEN, values);
      return row?.driven === true;
    },
    retain: async (runId) => (await database.rows(RETAIN, [runId])).length > 0,
    stops: { ...stopRequestStore(database), watch: (runId, listener) => of.member.watchStops(runId, listener) },
    sizes: {
      async of(runIds) {
        const [sum] = await database.rows<{ bytes: string }>(STORED_BYTES, [runIds]);
        return Number(sum?.bytes ?? 0);
      },
    },
    retention: { ...sweeper.retention, tidy: () => sweeper.all() },
    left,
    watch: (runId, listener) => of.member.watch(runId, listener),
  };
}

const CREATE = `
  insert into targeting_mcp.run (id, project, caller, environment, fingerprint, header)
  values ($1, $2, $3, $4, $5, $6) on conflict (id) do nothing`;

/** SQL that marks a run as kept: no process has written a version of its record yet, but it now counts as written. */
const RETAIN = `
  update targeting_mcp.run set version_by = coalesce(version_by, gen_random_uuid()) where id = $1 returning id`;

const REMOVE_UNSTARTED = `
  delete from targeting_mcp.run where id = $1 and status = 'planning' and version_by is null
    and not exists (select from targeting_mcp.lease where name = $2 and not released and until > clock_timestamp())`;
/** How long a failed removal of a run is retried, in milliseconds. */
const REMOVING_MS = 60_000;

/**
 * Removes a run whose call failed before it was planned or started. A run that is being planned now is kept, and so is a
 * run that a further call has joined.
 */
async function removeUnstarted(database: Database, runId: string): Promise<void> {
  await database.rows(REMOVE_UNSTARTED, [runId, driverOf(runId)], AbortSignal.timeout(REMOVING_MS));
}

/** If the store is too slow for the present call, names the run in the error, because the run may have started. */
function mention(runId: string): void {
  atEndOfCall((thrown) => {
    if (!(thrown instanceof StoreUnavailableError)) return thrown;
    return new StoreUnavailableError(
      `the store of TARGETING_MCP_STORE did not answer in time; run ${runId} may have started`,
      `When the store answers, get_run {"runId":"${runId}"} shows what was done. If there is no such run, make the call again.`,
      { cause: thrown },
    );
  });
}

const STORED_BYTES = `
  select coalesce(sum(octet_length(r.header)), 0) + coalesce((
    select sum(octet_length(p.bytes)) from targeting_mcp.part t
      join targeting_mcp.piece p on p.run = t.run and p.version = t.version
      where t.run = any($1) and t.name in ('input', 'sheet', 'proposed')
  ), 0) as bytes from targeting_mcp.run r where r.id = any($1)`;

function callEnds(clock: LeasesOf["clock"]): AbortSignal {
  const controller = new AbortController();
  const until = callUntil();
  if (until === undefined) return controller.signal;
  const late = new StoreUnavailableError(
    "calls that came earlier took the whole waiting time; nothing was sent for this call",
    "Make the call again.",
  );
  setTimeout(() => controller.abort(late), Math.max(0, until - clock.monotonic())).unref();
  return controller.signal;
}

/**
 * SQL that tells whether some process executes a run or will take it over. Either a process holds the lease of the run,
 * or a living process takes over orphaned runs of the same project and has not excluded this run.
 */
const IS_DRIVEN = `
  select exists (
    select from targeting_mcp.lease where name = $2 and not released and until > clock_timestamp()
  ) or exists (
    select from targeting_mcp.run r join targeting_mcp.worker w on r.project = any(w.projects)
    where r.id = $1 and r.status = 'running' and $4 <> all(w.projects)
      and w.seen_at > clock_timestamp() - $3::interval
  ) as driven`;

function stopRequestStore(database: Database): StopStore {
  return {
    async ask(runId) {
      // An append at the same time either sees this request or is committed before this function resolves.
      await database.rows(
        `with run as (select id from targeting_mcp.run where id = $1 for no key update),
           made as (insert into targeting_mcp.stop_wish select id, $2 from run on conflict do nothing)
         select pg_notify('${STOPS}', id) from run`,
        [runId, randomUUID()],
      );
    },
    asked: (runId) => idsOf(database, "select id from targeting_mcp.stop_wish where run = $1", [runId]),
    async forget(runId, asked) {
      if (asked.length === 0) return;
      await database.rows("delete from targeting_mcp.stop_wish where run = $1 and id = any($2)", [runId, asked]);
    },
  };
}

/** SQL that replaces a record. If a lease is passed, it must still be held. Can be repeated if the answer was lost. */
const UPDATE = `
  update targeting_mcp.run set version = $2, version_by = $3, status = $4, record = $5, open = $6, changes = changes + 1
  where id = $1 and (version = $2::bigint - 1 or version = $2 and version_by = $3) and ($7::text is null or exists (
    select from targeting_mcp.lease where name = $7 and token = $8 and not released
  )) returning id`;

function queryOf(query: RunQuery): [string, readonly unknown[]] {
  const runs = "select id from targeting_mcp.run where";
  if ("lastOf" in query) return [`${runs} fingerprint = $1 order by id desc limit 1`, [query.lastOf]];
  if ("caller" in query) {
    const { caller, before = AFTER_ALL } = query;
    return [`${runs} caller = $1 and id < $2 order by id desc limit $3`, [caller, before, LISTED_AT_ONCE]];
  }
  const newest = `order by id desc limit ${MAX_UNFINISHED}`;
  const { unfinished } = query;
  if (unfinished === "all") return [`${runs} open ${newest}`, []];
  if ("fingerprint" in unfinished) return [`${runs} open and fingerprint = $1 ${newest}`, [unfinished.fingerprint]];
  if ("callerName" in unfinished) return [`${runs} open and ${IS_NAMED} order by id desc`, [unfinished.callerName]];
  const { caller, project, environment } = unfinished;
  const scope = "open and caller = $1 and project = $2 and environment = $3";
  return [`${runs} ${scope} ${newest}`, [caller, project, environment]];
}

async function idsOf(database: Database, query: string, values: readonly unknown[]): Promise<readonly string[]> {
  return (await database.rows<{ id: string }>(query, values)).map(({ id }) => id);
}

const IS_WHOLE = `(
  select count(*) = r.seq + r.late and coalesce(sum(octet_length(e.body)) filter (where e.late = 0), 0) = r.bytes
  from targeting_mcp.entry e where e.run = r.id
)`;

async function readRun(database: Database, runId: string): Promise<StoredRun | undefined> {
  const [found] = await database.rows<StoredRecord & { header: string; whole: boolean }>(
    `select header, record, version, ${IS_WHOLE} as whole from targeting_mcp.run r where id = $1`,
    [runId],
  );
  if (found === undefined) return undefined;
  const header = readRunHeader(runId, found.header);
  if (!found.whole) throw new DamagedRunError(runId, { header });
  return {
    header,
    record: recordIn(found),
    proposed: again(() => wholeLines(partOf(database, runId, "proposed")())),
    entries: again(() => wholeLines(entryBodies(database, runId))),
  };
}

async function recordOf(database: Database, runId: string): Promise<RunRecord | undefined> {
  const [found] = await database.rows<StoredRecord & { whole: boolean }>(
    `select record, version, status not in ${AT_REST} or ${IS_WHOLE} as whole from targeting_mcp.run r where id = $1`,
    [runId],
  );
  if (found === undefined) return undefined;
  const record = recordIn(found);
  const { rest } = record;
  return rest === undefined || found.whole ? record : { ...record, rest: { ...rest, isDamaged: true } };
}

/** The statuses of stopped runs, as SQL. Only stopped runs have a summary. */
const AT_REST = "('interrupted', 'finished', 'cancelled', 'declined', 'expired')";

/**
 * SQL that finds the run of a call that was created last or got the last journal entry, and how many milliseconds ago
 * by the clock of the database. Clocks of processes, and so the order of run IDs, may be wrong. If the database's clock
 * was set back, this may seem to be ahead.
 */
const LAST_CHANGED = `
  select id, status in ${AT_REST} as ended,
    (abs(extract(epoch from clock_timestamp() - changed_at)) * 1000)::float8 as ago
  from targeting_mcp.run where fingerprint = $1 order by ago limit 1`;

type StoredRecord = { readonly record: string | null; readonly version: string };

/** Parses a record. If it cannot be read, the run counts as started, so that its journal decides about the status. */
function recordIn({ record, version }: StoredRecord): RunRecord {
  if (record === null) return CREATED;
  return runRecord.safeParse(parseJson(record)).data ?? { version: Number(version), status: "running" };
}

/** Yields the entries of a journal in order. Late entries of a previous process stand where they were appended. */
async function* entryBodies(database: Database, runId: string): AsyncGenerator<Uint8Array> {
  let [seq, late] = ["-1", 0];
  for (;;) {
    const rows = await database.rows<{ seq: string; late: number; body: Buffer }>(
      `select seq, late, body from targeting_mcp.entry where run = $1 and (seq, late) > ($2, $3)
       order by seq, late limit ${ENTRIES_AT_ONCE}`,
      [runId, seq, late],
    );
    for (const row of rows) {
      yield row.body;
      [seq, late] = [row.seq, row.late];
    }
    if (rows.length < ENTRIES_AT_ONCE) return;
  }
}

function again(open: () => AsyncIterator<string>): AsyncIterable<string> {
  return { [Symbol.asyncIterator]: open };
}

const PIECE_BYTES = 256 * 1024;
const PIECES_AT_ONCE = 4;

async function keepPart(database: Database, runId: string, name: string, pieces: Pieces): Promise<void> {
  const version = randomUUID();
  let count = 0;
  let waiting: Uint8Array[] = [];
  let bytes = 0;
  const write = async (): Promise<void> => {
    if (bytes === 0) return;
    await database.rows("insert into targeting_mcp.piece values ($1, $2, $3, $4) on conflict do nothing", [
      ...[runId, version, count, Buffer.concat(waiting)],
    ]);
    count += 1;
    waiting = [];
    bytes = 0;
  };
  for await (const piece of pieces) {
    const taken = typeof piece === "string" ? Buffer.from(piece) : piece;
    waiting.push(taken);
    bytes += taken.length;
    if (bytes >= PIECE_BYTES) await write();
  }
  await write();
  await database.rows(
    `with now as (
       insert into targeting_mcp.part values ($1, $2, $3) on conflict (run, name) do update set version = excluded.version
     ), changed as (update targeting_mcp.run set changes = changes + 1 where id = $1)
     delete from targeting_mcp.piece p using targeting_mcp.part before
       where before.run = $1 and before.name = $2 and before.version <> $3 and p.run = $1 and p.version = before.version`,
    [runId, name, version],
  );
}

/** SQL that reads some pieces of a part's version, or of its current version. Every row has the current version. */
const PIECES = `
  select part.version, piece.bytes from targeting_mcp.part
  left join targeting_mcp.piece on piece.run = part.run and piece.version = coalesce($3, part.version) and piece.n >= $4
  where part.run = $1 and part.name = $2 order by piece.n limit $5`;

/** Reads a part. Throws a RunStoreError if the part is replaced or removed meanwhile: its old pieces are then gone. */
function partOf(database: Database, runId: string, name: string): ByteSource {
  return async function* () {
    let version: string | undefined;
    for (let from = 0; ; from += PIECES_AT_ONCE) {
      const about = [runId, name, version ?? null, from, PIECES_AT_ONCE];
      const rows = await database.rows<{ version: string; bytes: Buffer | null }>(PIECES, about);
      const now = rows[0]?.version;
      if (version !== undefined && now !== version) {
        throw new RunStoreError(`run ${runId} changed while it was read`, "Make the call again.");
      }
      version = now;
      for (const { bytes } of rows) if (bytes !== null) yield bytes;
      if (rows.length < PIECES_AT_ONCE) return;
    }
  };
}

const APPEND = "select * from targeting_mcp.append($1, $2, $3, $4, $5, $6, $7, $8)";
interface Appended {
  readonly result: "ok" | "run lost" | "turn lost" | "elsewhere";
  readonly turn_asked: string;
  readonly seq_now: string;
  /** Whether a stop was requested before this append. Null if nothing was appended now. */
  readonly stop_asked: boolean | null;
}

/**
 * SQL that reads the length of a journal, and whether another database server became the primary after the last entry
 * that it contains. The new primary may then lack entries that the old one had confirmed.
 */
const JOURNAL_END = `
  select seq, exists (select from targeting_mcp.timeline where since > changed_at) as behind
  from targeting_mcp.run where id = $1`;

/** Opens a journal. While the database cannot be reached, appends wait, and answers of the API stay in memory. */
async function openStoredJournal(of: LeasesOf, runId: string, given: Lease, wasLeft = false): Promise<RunJournal> {
  const lease = storedLease(given);
  const [found] = await of.database.rows<{ seq: string; behind: boolean }>(JOURNAL_END, [runId]);
  let seq = BigInt(found?.seq ?? "0");
  let waiting: Buffer[] = [];
  let turns: Promise<unknown> = Promise.resolve();
  // Once entries are lost, every later append throws this, so that no caller can go on by ignoring the first error.
  let lost = (lease.isTakenOver || wasLeft) && found?.behind === true ? behind(runId, "may have lost") : undefined;

  /** Appends the waiting entries and renews the leases in one commit. Returns whether a stop was requested before. */
  const append = async (turn: StoredLease | undefined): Promise<boolean | undefined> => {
    lease.lost.throwIfAborted();
    if (lost !== undefined) throw lost;
    const taken = waiting.length;
    if (taken === 0 && turn === undefined) {
      await lease.check();
      return undefined;
    }
    const body = taken === 0 ? null : Buffer.concat(waiting);
    const values = [runId, driverOf(runId), lease.token, seq, body, turn?.name ?? null, turn?.token ?? null, TTL];
    const [row] = await of.database.rows<Appended & { [column: string]: unknown }>(APPEND, values, lease.lost);
    if (row?.result === "run lost") throw lease.lose();
    if (row?.result === "turn lost" && turn !== undefined) throw turn.lose();
    if (row?.result !== "ok") {
      lost = behind(runId, "has lost");
      throw lost;
    }
    lease.noteRenewed();
    turn?.noteRenewed();
    if (turn !== undefined) turn.asked = BigInt(row.turn_asked);
    if (body !== null) seq = BigInt(row.seq_now);
    waiting = waiting.slice(taken);
    of.member.changed(runId);
    return row.stop_asked ?? undefined;
  };
  const inTurn = (turn?: StoredLease): Promise<boolean | undefined> => {
    const done = turns.then(() => append(turn));
    turns = done.catch(() => undefined);
    return done;
  };
  return {
    append: (line) => void waiting.push(Buffer.concat(lineBytes(line))),
    async write() {
      // The write goes on when the call is answered. Otherwise a later write would repeat it with other entries.
      const written = beyondCall(() => (waiting.length === 0 ? turns : inTurn().catch(() => undefined)));
      await inCallTime(written, of.clock);
    },
    flush: async () => void (await inTurn()),
    async intend(turn: Turn): Promise<Intent> {
      await lease.settled();
      const other = turn instanceof StoredLease && turn !== lease ? turn : undefined;
      await other?.settled();
      let stopAsked: boolean | undefined;
      for (;;) {
        const intent = readClocks(of.clock);
        stopAsked = (await inTurn(other)) ?? stopAsked;
        if (other === undefined && turn !== lease) await turn.renew();
        // If the database could not be reached for a while, the clock readings are too old, so new ones are taken.
        if (isFresh(intent, of.clock)) return stopAsked === undefined ? intent : { ...intent, stopAsked };
      }
    },
    async appendLate(line) {
      await of.database.rows(
        `with at as (update targeting_mcp.run set late = late + 1, changes = changes + 1 where id = $1 returning seq, late)
         insert into targeting_mcp.entry (run, seq, late, epoch, body) select $1, seq - 1, late, $2, $3 from at`,
        [runId, lease.epoch, Buffer.concat(lineBytes(line))],
      );
    },
    async close() {
      if (waiting.length > 0) await inTurn();
      await turns;
    },
  };
}

function behind(runId: string, what: "has lost" | "may have lost"): LostEntriesError {
  const remedy = "look at what was applied before you resume the run";
  return new LostEntriesError(
    `the store ${what} confirmed entries of run ${runId}, as in a failover to a standby that was behind: ${remedy}`,
    `Use list_options: ${remedy}.`,
  );
}
