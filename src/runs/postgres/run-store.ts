import { randomUUID } from "node:crypto";
import { callUntil } from "../../platform/call-time.ts";
import { parseJson } from "../../platform/json.ts";
import type { ProjectLock } from "../backend/backend.ts";
import { groupOf, headerIn, isRunId, VERSION } from "../backend/kept.ts";
import {
  type OrphanedRuns,
  type RunQuery,
  type RunStore,
  type StopStore,
  type StoredRun,
  StoreUnavailableError,
} from "../backend/store.ts";
import { damaged } from "../entries.ts";
import { CREATED, mayBeUnfinished, type RunRecord, runRecord } from "../lifecycle.ts";
import type { Database } from "./database.ts";
import { openStoredJournal } from "./journal.ts";
import { driverOf, type LeasesOf, storedLease, takeLease } from "./lease.ts";
import { refusedRun, STOPS } from "./member.ts";
import { keepPart, partOf } from "./parts.ts";
import type { Sweeper } from "./retention.ts";

const ENTRIES_AT_ONCE = 50;
/** How many runs are listed at once. */
const LISTED_AT_ONCE = 200;
/** The most that are looked at for unfinished ones. */
const MOST_UNFINISHED = 1000;
/** Greater than every ID of a run. */
const AFTER_ALL = "~";
/** A run that is left counts as driven for as long as a process that takes it up was seen within this time. */
const SEEN_WITHIN = "30 seconds";

/** Keeps runs in a database that several processes share, on whatever machines. */
export function storedRuns(
  of: LeasesOf,
  turns: ProjectLock,
  { left, sweeper }: { readonly left: OrphanedRuns; readonly sweeper: Sweeper },
): RunStore {
  const { database } = of;
  return {
    async create(given) {
      const { runId, project, caller, environment, fingerprint } = given;
      await database.rows(
        `insert into targeting_mcp.run (id, project, caller, environment, fingerprint, header)
         values ($1, $2, $3, $4, $5, $6) on conflict (id) do nothing`,
        [runId, project, caller, environment, fingerprint, JSON.stringify({ version: VERSION, ...given })],
      );
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
      of.member.changed(runId);
      if (record.rest !== undefined) sweeper.rested(record.rest.caller);
      return true;
    },
    record: (runId) => recordOf(database, runId),
    journal: (runId, lease) => openStoredJournal(of, runId, lease),
    keep: (runId, part, pieces) => keepPart(database, runId, part, pieces),
    part: (runId, part) => partOf(database, runId, part),
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
    withCallLock: (fingerprint, work) => turns.hold(`turn:${groupOf(fingerprint)}`, work, callEnds(of.clock)),
    lease: (runId) => takeLease(of, driverOf(runId)),
    async isDriven(runId) {
      const values = [runId, driverOf(runId), SEEN_WITHIN, refusedRun(runId)];
      const [told] = await database.rows<{ driven: boolean }>(IS_DRIVEN, values);
      return told?.driven === true;
    },
    stops: { ...stopWishes(database), watch: (runId, listener) => of.member.watchStops(runId, listener) },
    sizes: {
      async of(runIds) {
        const [sum] = await database.rows<{ bytes: string }>(STORED_BYTES, [runIds]);
        return Number(sum?.bytes ?? 0);
      },
    },
    tidy: () => sweeper.all(),
    retention: sweeper.retention,
    left,
    watch: (runId, listener) => of.member.watch(runId, listener),
  };
}

/** The calls of runs, with their content and what they would do. */
const STORED_BYTES = `
  select coalesce(sum(octet_length(r.header)), 0) + coalesce((
    select sum(octet_length(p.bytes)) from targeting_mcp.part t
      join targeting_mcp.piece p on p.run = t.run and p.version = t.version
      where t.run = any($1) and t.name in ('input', 'proposed')
  ), 0) as bytes from targeting_mcp.run r where r.id = any($1)`;

/** Aborted when the call has to be answered that waits for its turn. */
function callEnds(clock: LeasesOf["clock"]): AbortSignal {
  const controller = new AbortController();
  const until = callUntil();
  if (until === undefined) return controller.signal;
  const late = new StoreUnavailableError(
    "other calls like this one held their turn for as long as it may take; nothing was sent for this call",
    "Make the call again.",
  );
  setTimeout(() => controller.abort(late), Math.max(0, until - clock.monotonic())).unref();
  return controller.signal;
}

/** A run is driven where its lease is held, and where a process is there that claims it by itself and may execute it. */
const IS_DRIVEN = `
  select exists (
    select from targeting_mcp.lease where name = $2 and not released and until > clock_timestamp()
  ) or exists (
    select from targeting_mcp.run r join targeting_mcp.worker w on r.project = any(w.projects)
    where r.id = $1 and r.status = 'running' and $4 <> all(w.projects)
      and w.seen_at > clock_timestamp() - $3::interval
  ) as driven`;

/** Requests to stop a run, from whatever process. */
function stopWishes(database: Database): StopStore {
  return {
    async ask(runId) {
      // An append to the run either sees the request, or was committed before this has resolved.
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

/** By a lease only where that is held. One that is made again after its answer was lost is recognised. */
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
  const newest = `order by id desc limit ${MOST_UNFINISHED}`;
  const { unfinished } = query;
  if (unfinished === "all") return [`${runs} open ${newest}`, []];
  if ("fingerprint" in unfinished) return [`${runs} open and fingerprint = $1 ${newest}`, [unfinished.fingerprint]];
  const { caller, project, environment } = unfinished;
  const scope = "open and caller = $1 and project = $2 and environment = $3";
  return [`${runs} ${scope} ${newest}`, [caller, project, environment]];
}

async function idsOf(database: Database, query: string, values: readonly unknown[]): Promise<readonly string[]> {
  return (await database.rows<{ id: string }>(query, values)).map(({ id }) => id);
}

/** Whether the journal of the run `r` holds all that was appended to it. */
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
  const header = headerIn(parseJson(found.header));
  if (header === undefined || !found.whole) throw damaged(runId);
  return {
    header,
    record: recordIn(found),
    proposed: again(() => linesOf(partOf(database, runId, "proposed")())),
    entries: again(() => linesOf(entryBodies(database, runId))),
  };
}

/** The record of a run, which says where the journal of the run does not fit it. */
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

/** Statuses of which the summary is looked at. */
const AT_REST = "('interrupted', 'finished', 'cancelled', 'declined', 'expired')";

type StoredRecord = { readonly record: string | null; readonly version: string };

/** A record that cannot be read is that of a run which was started: its journal says how it stands. */
function recordIn({ record, version }: StoredRecord): RunRecord {
  if (record === null) return CREATED;
  return runRecord.safeParse(parseJson(record)).data ?? { version: Number(version), status: "running" };
}

/** What was appended, in order; what a former driver added late stands where it was added. */
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

async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let rest: Uint8Array[] = [];
  for await (const piece of pieces) {
    let from = 0;
    for (let end = piece.indexOf(LINE_END); end !== -1; end = piece.indexOf(LINE_END, from)) {
      yield Buffer.concat([...rest, piece.subarray(from, end)]).toString("utf8");
      rest = [];
      from = end + 1;
    }
    if (from < piece.length) rest.push(piece.subarray(from));
  }
}

const LINE_END = 0x0a;

function again(open: () => AsyncIterator<string>): AsyncIterable<string> {
  return { [Symbol.asyncIterator]: open };
}
