import { hash, randomBytes, randomUUID } from "node:crypto";
import * as z from "zod";
import { type Clock, DAY_MS } from "../../platform/clock.ts";
import { parseJson } from "../../platform/json.ts";
import { ulidAt } from "../../spec/names-and-contexts.ts";
import {
  type ContentsStore,
  findSeenTargeting,
  MAX_REMEMBERED_TARGETINGS,
  type SeenOption,
  type SeenTargeting,
  type SuiteTexts,
  type TargetingMemory,
} from "../backend.ts";
import type { Retention } from "../files/run-store.ts";
import { type RetentionWatch, retentionWatch, seenClock } from "../retention-clock.ts";
import { RunStoreError } from "../store.ts";
import { type Database, IS_NAMED, ONCE } from "./database.ts";

/** The maximum length of an option's stored Context IDs, as JSON. Longer lists are read faster from the service. */
const MAX_CHARACTERS = 4 * 1_048_576;
const AT_ONCE = 100;

const contextIds = z.array(z.string());

interface Row {
  readonly option: string;
  readonly record: string;
  readonly ids: string;
}

export function storedContents(
  database: Database,
  project: string,
  onProblem: (problem: unknown) => void,
): ContentsStore {
  const find = gathered(async (options: readonly SeenOption[]) => {
    const rows = await database
      .rows<Row & { readonly [column: string]: string }>(
        "select option, record, ids from targeting_mcp.content where project = $1 and option = any($2)",
        [project, options.map(({ optionId }) => optionId)],
        // Not retried, because the Context IDs can be read from the service sooner than the database answers again.
        ONCE,
      )
      .catch(onProblem);
    return new Map((rows ?? []).map((row) => [row.option, row]));
  });
  const keep = gathered(async (rows: readonly Row[]) => {
    // PostgreSQL refuses a statement that inserts the same option twice.
    const last = [...new Map(rows.map((row) => [row.option, row])).values()];
    await database
      .rows(
        `insert into targeting_mcp.content (project, option, record, ids)
         select $1, option, record, ids from unnest($2::text[], $3::text[], $4::text[]) as given (option, record, ids)
         order by option
         on conflict (project, option)
         do update set record = excluded.record, ids = excluded.ids, kept_at = clock_timestamp()`,
        [project, last.map(({ option }) => option), last.map(({ record }) => record), last.map(({ ids }) => ids)],
        ONCE,
      )
      .catch(onProblem);
  });
  return {
    refresh: async () => {},
    async get(option) {
      const row = (await find(option)).get(option.optionId);
      if (row?.record !== recordOf(option)) return undefined;
      const read = contextIds.safeParse(parseJson(row.ids));
      return read.success && read.data.length === option.contextCount ? read.data : undefined;
    },
    async put(option, contexts) {
      const ids = JSON.stringify(contexts);
      if (ids.length > MAX_CHARACTERS) return;
      await keep({ option: option.optionId, record: recordOf(option), ids });
    },
  };
}

function recordOf({ targetingId, updatedAt, contextCount }: SeenOption): string {
  return JSON.stringify([targetingId, updatedAt, contextCount]);
}

/** Collects up to `AT_ONCE` values until `work` begins, and passes them to one call of `work`. */
function gathered<One, Done>(work: (all: readonly One[]) => Promise<Done>): (one: One) => Promise<Done> {
  let waiting: { readonly all: One[]; readonly done: Promise<Done> } | undefined;
  return (one) => {
    if (waiting === undefined || waiting.all.length === AT_ONCE) {
      const all: One[] = [];
      const begun = { all, done: new Promise<void>(setImmediate).then(() => begin(all)) };
      waiting = begun;
    }
    waiting.all.push(one);
    return waiting.done;
  };

  function begin(all: readonly One[]): Promise<Done> {
    if (waiting?.all === all) waiting = undefined;
    return work(all);
  }
}

export function storedNames(database: Database, project: string, now: () => number): TargetingMemory {
  const recent = async (): Promise<readonly SeenTargeting[]> => {
    const rows = await database.rows<{ id: string; name: string; seen_at: string }>(
      "select id, name, seen_at from targeting_mcp.name where project = $1 order by seen_at desc, id limit $2",
      [project, MAX_REMEMBERED_TARGETINGS],
    );
    return rows.map(({ id, name, seen_at }) => ({
      _id: fromColumn(id),
      name: fromColumn(name),
      seenAt: Number(seen_at),
    }));
  };
  return {
    recent,
    async remember(targetings) {
      const names = new Map(targetings.map(({ _id, name }) => [toColumn(_id), toColumn(name)]));
      await database.rows(
        `insert into targeting_mcp.name select $1, id, name, $4 from unnest($2::text[], $3::text[]) as given (id, name)
         on conflict (project, id) do update set name = excluded.name, seen_at = excluded.seen_at`,
        [project, [...names.keys()], [...names.values()], now()],
      );
    },
    async forget(ids) {
      await database.rows("delete from targeting_mcp.name where project = $1 and id = any($2)", [
        project,
        ids.map(toColumn),
      ]);
    },
    resolve: async (name) => findSeenTargeting(await recent(), name),
  };
}

/**
 * Returns the form in which a column stores a text of the service. PostgreSQL stores neither NUL nor unpaired
 * surrogates (halves of a character in UTF-16), so a text with these is stored as JSON. So is a text that begins like
 * JSON.
 */
function toColumn(text: string): string {
  return /^"|\0/.test(text) || !text.isWellFormed() ? JSON.stringify(text) : text;
}

function fromColumn(stored: string): string {
  const text = stored.startsWith('"') ? parseJson(stored) : stored;
  return typeof text === "string" ? text : stored;
}

const MAX_SUITES = 100;

export function storedSuites(database: Database): SuiteTexts {
  return {
    async put(caller, id, text) {
      await database.rows(
        `insert into targeting_mcp.suite (caller, id, body) values ($1, $2, $3)
         on conflict (caller, id) do update set body = excluded.body, kept_at = clock_timestamp()`,
        [caller, id, text],
      );
      await database.rows(
        `delete from targeting_mcp.suite where caller = $1 and id in
         (select id from targeting_mcp.suite where caller = $1 order by kept_at desc offset $2)`,
        [caller, MAX_SUITES],
      );
    },
    get: (caller, id) =>
      textOf(database, "select body from targeting_mcp.suite where caller = $1 and id = $2", [caller, id]),
    async list(caller) {
      const rows = await database.rows<{ body: string }>(
        "select body from targeting_mcp.suite where caller = $1 order by kept_at desc",
        [caller],
      );
      return rows.map(({ body }) => body);
    },
    async storedBytes(callerName) {
      const [sum] = await database.rows<{ bytes: string }>(
        `select coalesce(sum(octet_length(body)), 0) as bytes from targeting_mcp.suite where ${IS_NAMED}`,
        [callerName],
      );
      return Number(sum?.bytes ?? 0);
    },
    async claim(confirmation) {
      const made = await database.rows<{ id: string }>(
        `insert into targeting_mcp.yes (id, taken_by) values ($1, $2)
         on conflict (id) do update set taken_by = excluded.taken_by where yes.taken_by = $2 returning id`,
        [confirmation, randomUUID()],
      );
      return made.length > 0;
    },
    async settle(confirmation, text) {
      await database.rows("update targeting_mcp.yes set body = $2 where id = $1", [confirmation, text]);
    },
    settled: (confirmation) => textOf(database, "select body from targeting_mcp.yes where id = $1", [confirmation]),
  };
}

async function textOf(database: Database, query: string, values: readonly unknown[]): Promise<string | undefined> {
  return (await database.rows<{ body: string }>(query, values))[0]?.body;
}

const KEY_BYTES = 32;

/** Returns the stored key, created on first use. Throws a RunStoreError if other processes sign with another key. */
export async function storedSealKey(database: Database): Promise<Uint8Array> {
  const key = Buffer.from(await keptSetting(database, "seal key", randomBytes(KEY_BYTES).toString("base64")), "base64");
  await checkSealKey(database, key);
  return key;
}

/** Stores the hash of the first key. Throws a RunStoreError for another key, whose tokens others could not verify. */
export async function checkSealKey(database: Database, key: Uint8Array): Promise<void> {
  const own = hash("sha256", key);
  if ((await keptSetting(database, "hash of the seal key", own)) === own) return;
  throw new RunStoreError(
    "the store of TARGETING_MCP_STORE was first used with another key for signing, which other processes may still use",
    "Set TARGETING_MCP_SEAL_KEY as it was set then, for all processes. To replace the key instead, which makes earlier " +
      "confirmations and log-ins invalid: stop all processes, run this in the database, and set the new key: " +
      "delete from targeting_mcp.setting where name in ('seal key', 'hash of the seal key')",
  );
}

/** Returns the stored value of a setting. If there is none, `value` is stored and returned. */
export async function keptSetting(database: Database, name: string, value: string): Promise<string> {
  await database.rows("insert into targeting_mcp.setting values ($1, $2) on conflict do nothing", [name, value]);
  return (await readSetting(database, name)) ?? value;
}

export function readSetting(database: Database, name: string): Promise<string | undefined> {
  return textOf(database, "select value as body from targeting_mcp.setting where name = $1", [name]);
}

export async function storeSetting(database: Database, name: string, value: string): Promise<void> {
  await database.rows(
    "insert into targeting_mcp.setting values ($1, $2) on conflict (name) do update set value = excluded.value",
    [name, value],
  );
}

/** The maximum number of runs that one statement removes, so that other statements do not have to wait long. */
const RUNS_AT_ONCE = 50;
const MAX_STORED_CONFIRMATIONS = 1000;
const CONTENTS_AT_ONCE = 500;
const MAX_CONTENTS = 1_073_741_824;
const SOON_MS = 1000;

const HELD = "exists (select from targeting_mcp.part p where p.run = r.id and p.name = 'removed')";
const removing = (which: string): string =>
  `delete from targeting_mcp.run where id in (
     select r.id from targeting_mcp.run r where ${which} order by r.id limit ${RUNS_AT_ONCE} for update skip locked
   ) returning id`;

const OLD = removing("not r.open and r.id < $1");
/**
 * SQL that removes a caller's oldest runs if there are more than the maximum. Runs that store what they removed from
 * the service stay until they are too old. Runs that were created while a clock was ahead do not count.
 */
const BEYOND = removing(
  `not r.open and r.caller = $1 and not ${HELD} and r.id < (
     select r.id from targeting_mcp.run r where r.caller = $1 and not r.open and not ${HELD} and r.id <= $3
     order by r.id desc offset $2 limit 1
   )`,
);
const BYTES = `octet_length(r.header) + r.bytes + coalesce((
  select sum(octet_length(p.bytes)) from targeting_mcp.piece p where p.run = r.id
), 0)`;
const BEYOND_BYTES = removing(
  `r.id in (
     select w.id from (
       select r.id, sum(${BYTES}) over (order by r.id desc) as so_far
       from targeting_mcp.run r where r.caller = $1 and not r.open and not ${HELD} and r.id <= $3
     ) w where w.so_far > $2
   )`,
);
const PLANNED = removing(
  `r.open and r.status in ('planning', 'planned', 'waiting') and r.id < $1 and not exists (
     select from targeting_mcp.lease l where l.name = 'run:' || r.id and not l.released and l.until > clock_timestamp()
   )`,
);
const LEASES = `
  delete from targeting_mcp.lease where name in (
    select l.name from targeting_mcp.lease l
    where l.released and not l.unsettled and l.until < clock_timestamp() - interval '1 day' and l.name ~ '^run:'
      and not exists (select from targeting_mcp.run r where r.id = split_part(l.name, ':', 2))
    limit ${RUNS_AT_ONCE}
  ) returning name as id`;
/** SQL that removes Context IDs that are too old, and the oldest ones if the table is too large. */
const CONTENTS = `
  delete from targeting_mcp.content where (project, option) in (
    select project, option from (
      select project, option, kept_at,
        sum(length(ids)) over (order by kept_at desc, project, option rows unbounded preceding) as so_far
      from targeting_mcp.content
    ) c where c.kept_at < to_timestamp($1 / 1000.0) or c.so_far > $2 limit ${CONTENTS_AT_ONCE}
  ) returning option as id`;
const CALLERS = `
  with recursive known as (
    (select caller from targeting_mcp.run order by caller limit 1)
    union all
    select (select r.caller from targeting_mcp.run r where r.caller > k.caller order by r.caller limit 1)
    from known k where k.caller is not null
  ) select caller from known where caller is not null`;

export type Sweeper = ReturnType<typeof sweeper>;

const CLOCK = "clock of retention";
const DATABASE_TIME = "select (extract(epoch from clock_timestamp()) * 1000)::float8 as time";

function clockOf(database: Database, keep: Retention, clock: Clock): RetentionWatch {
  return retentionWatch({
    clock,
    keepMs: keep.days * DAY_MS,
    read: async () => seenClock.safeParse(parseJson((await readSetting(database, CLOCK)) ?? "")).data,
    store: (seen) => storeSetting(database, CLOCK, JSON.stringify(seen)),
    newest: async () => undefined,
    async other() {
      const [found] = await database.rows<{ time: number }>(DATABASE_TIME);
      return found?.time ?? clock.now();
    },
  });
}

/** Removes old runs and other old rows in small steps, also in the background. Keeps runs if the clock is in doubt. */
export function sweeper(database: Database, keep: Retention, clock: Clock) {
  const waiting = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let sweptAt = clock.now();
  const inSteps = async (statement: string, values: readonly unknown[] = [], atOnce = RUNS_AT_ONCE): Promise<void> => {
    while (!isClosed && (await database.rows(statement, values)).length === atOnce);
  };
  const retention = clockOf(database, keep, clock);
  const of = async (caller: string): Promise<void> => {
    const newest = ulidAt(clock.now() + DAY_MS);
    await inSteps(BEYOND, [caller, keep.runs - 1, newest]);
    if (keep.bytes !== undefined) await inSteps(BEYOND_BYTES, [caller, keep.bytes, newest]);
  };
  const oldRuns = async (): Promise<void> => {
    if ((await retention.doubt()) !== undefined) return;
    await inSteps(OLD, [ulidAt(sweptAt - keep.days * DAY_MS)]);
    await inSteps(PLANNED, [ulidAt(sweptAt - DAY_MS)]);
    for (const { caller } of await database.rows<{ caller: string }>(CALLERS)) await of(caller);
  };
  const all = async (): Promise<void> => {
    sweptAt = clock.now();
    await oldRuns();
    await database.rows(
      "delete from targeting_mcp.yes where id in (select id from targeting_mcp.yes order by taken_at desc offset $1)",
      [MAX_STORED_CONFIRMATIONS],
    );
    await inSteps(LEASES);
    await inSteps(CONTENTS, [sweptAt - keep.days * DAY_MS, MAX_CONTENTS], CONTENTS_AT_ONCE);
    await database.rows("delete from targeting_mcp.worker where seen_at < clock_timestamp() - interval '1 day'");
  };
  const sweep = async (): Promise<void> => {
    timer = undefined;
    const callers = [...waiting];
    waiting.clear();
    if ((await retention.doubt()) === undefined) for (const caller of callers) await of(caller);
    if (clock.now() - sweptAt >= DAY_MS) await all();
  };
  return {
    rested(caller: string): void {
      waiting.add(caller);
      // A failed sweep is repeated when another run ends.
      if (!isClosed) timer ??= setTimeout(() => void sweep().catch(() => undefined), SOON_MS).unref();
    },
    all,
    retention,
    close(): void {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}
