import { systemClock } from "../../platform/clock.ts";
import { RunStoreError, StoreUnavailableError } from "../store.ts";
import {
  type Database,
  type DatabaseOptions,
  hangUp,
  openDatabase,
  RIGHTS_REMEDY,
  retryWhileAway,
} from "./database.ts";
import { checkTables, migrate, type Tables, tablesOf } from "./migrations.ts";
import { checkSealKey } from "./side-stores.ts";

interface StartOptions {
  readonly migrates: boolean;
  readonly sealKey?: string | undefined;
}

/**
 * Checks the store when the server starts, and updates its tables if `migrates` is set. Returns the weaknesses of the
 * store as sentences. Throws a RunStoreError if the store cannot be used.
 */
export async function prepareStore(where: DatabaseOptions, options: StartOptions): Promise<readonly string[]> {
  return opened(where, async (database) => {
    const { weaknesses, unfit } = await once(() => probeServer(database));
    if (unfit !== undefined) throw unfit;
    if (options.migrates) await once(() => migrate(database));
    checkTables(await tablesOf(database));
    await checkRights(database);
    if (options.sealKey !== undefined) await checkSealKey(database, Buffer.from(options.sealKey, "base64"));
    return weaknesses;
  });
}

export function migrateStore(where: DatabaseOptions): Promise<Tables> {
  return opened(where, (database) => once(() => migrate(database)));
}

async function opened<T>(where: DatabaseOptions, work: (database: Database) => Promise<T>): Promise<T> {
  const database = openDatabase(where);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** Runs `work` once, without retries. Throws its error as a RunStoreError. */
function once<T>(work: () => Promise<T>): Promise<T> {
  return retryWhileAway(systemClock, () => true, work);
}

interface StoredTables extends Tables {
  readonly runs: number;
  readonly bytes: Readonly<Record<string, number>>;
}

export interface FoundStore extends Partial<Pick<ProbedServer, "server">>, Pick<ProbedServer, "weaknesses"> {
  readonly tables?: StoredTables;
  readonly problem?: RunStoreError;
}

/** Inspects a store without changing it. Does not try again if the database cannot be reached. */
export function lookAtStore(where: DatabaseOptions): Promise<FoundStore> {
  return opened(where, async (database) => {
    let found: FoundStore = { weaknesses: [] };
    try {
      const { unfit, ...probed } = await once(() => probeServer(database));
      found = probed;
      if (unfit !== undefined) return { ...found, problem: unfit };
      const tables = await tablesOf(database);
      found = { ...found, tables: { ...tables, ...(tables.found > 0 ? await sizesOf(database) : NOTHING) } };
      checkTables(tables);
      await checkRights(database);
      return found;
    } catch (thrown) {
      if (!(thrown instanceof RunStoreError)) throw thrown;
      return { ...found, problem: thrown };
    }
  });
}

const NOTHING = { runs: 0, bytes: {} } as const;

async function sizesOf(database: Database): Promise<Pick<StoredTables, "runs" | "bytes">> {
  const [sizes] = await database.rows<{ runs: number; bytes: Record<string, number> }>(
    `select (select count(*)::int from targeting_mcp.run) as runs,
       (select json_object_agg(relname, pg_total_relation_size(oid)) from pg_class
        where relnamespace = 'targeting_mcp'::regnamespace and relkind = 'r') as bytes`,
  );
  return sizes ?? NOTHING;
}

const OLDEST = 140_000;

interface Probed {
  readonly number: number;
  readonly version: string;
  readonly standby: boolean;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly asynchronous: boolean;
}

/**
 * SQL that reads the version and settings of the database. Only some database roles can see `sync_state`. So a standby
 * also counts as asynchronous if `synchronous_standby_names`, which every role can see, is empty.
 */
const PROBE = `
  select current_setting('server_version_num')::int as number, current_setting('server_version') as version,
    pg_is_in_recovery() as standby, current_setting('fsync') as fsync,
    current_setting('full_page_writes') as full_page_writes, current_setting('synchronous_commit') as synchronous_commit,
    exists (
      select from pg_stat_replication where state is distinct from 'backup'
        and (sync_state = 'async' or current_setting('synchronous_standby_names') = '')
    ) as asynchronous`;

interface ProbedServer {
  readonly server: string;
  readonly weaknesses: readonly string[];
  readonly unfit?: RunStoreError;
}

async function probeServer(database: Pick<Database, "direct">): Promise<ProbedServer> {
  const client = await database.direct();
  try {
    const [probed] = (await client.query<Probed & { [column: string]: unknown }>(PROBE)).rows;
    if (probed === undefined) {
      throw new RunStoreError(
        "the database did not report its version",
        "Set TARGETING_MCP_STORE to the address of a PostgreSQL server.",
      );
    }
    const server = `PostgreSQL ${probed.version}`;
    const unfit =
      probed.number < OLDEST ? `it is ${server}` : probed.standby ? "it is a standby, which takes no writes" : "";
    const weaknesses = [...weaknessesOf(probed), ...((await locksExclude(database)) ? [] : [POOLED])];
    if (unfit === "") return { server, weaknesses };
    const words = `the database of TARGETING_MCP_STORE cannot be used: ${unfit}`;
    const remedy = "Set TARGETING_MCP_STORE to the primary server of PostgreSQL 14 or newer.";
    // In a failover, a standby soon becomes the primary.
    const Problem = probed.number < OLDEST ? RunStoreError : StoreUnavailableError;
    return { server, weaknesses, unfit: new Problem(words, remedy) };
  } finally {
    hangUp(client);
  }
}

function weaknessesOf(probed: Probed): readonly string[] {
  const weak: readonly (readonly [boolean, string])[] = [
    [probed.fsync === "off", "fsync is off in PostgreSQL: a power failure can lose runs and their journals"],
    [probed.full_page_writes === "off", "full_page_writes is off in PostgreSQL: a power failure can damage the tables"],
    [
      probed.synchronous_commit === "off",
      "synchronous_commit is off for this role or database: this server switches it on for its own sessions",
    ],
    [
      probed.asynchronous,
      "a standby of PostgreSQL is asynchronous: a failover to it can lose the last journal entries (set synchronous_standby_names)",
    ],
  ];
  return weak.flatMap(([is, words]) => (is ? [words] : []));
}

const POOLED =
  "advisory locks have no effect, because a pooler in transaction mode is used: a dead process is noticed only when its leases expire (set TARGETING_MCP_STORE_LISTEN to a direct address)";

/** Returns whether an advisory lock excludes other connections. False behind a pooler that shares connections. */
async function locksExclude(database: Pick<Database, "direct">): Promise<boolean> {
  const one = await database.direct();
  const other = await database.direct();
  try {
    // The number is random, so that processes that check at the same time do not exclude each other.
    const number = Math.floor(Math.random() * 2 ** 31);
    await one.query("select pg_advisory_lock(1953325937, $1)", [number]);
    const query = "select pg_try_advisory_lock(1953325937, $1) as free";
    return (await other.query<{ free: boolean }>(query, [number])).rows[0]?.free === false;
  } finally {
    for (const client of [one, other]) hangUp(client);
  }
}

const LACKING = `
  select string_agg(distinct c.relname, ', ') as tables
  from pg_class c, unnest(array['select', 'insert', 'update', 'delete']) as needed
  where c.relnamespace = to_regnamespace('targeting_mcp') and case c.relkind
    when 'r' then (needed = 'select' or c.relname <> 'migration') and not has_table_privilege(c.oid, needed)
    when 'S' then c.relname = 'worker_number' and not has_sequence_privilege(c.oid, 'usage')
    else false end`;

async function checkRights(database: Pick<Database, "rows">): Promise<void> {
  const [lacking] = await database.rows<{ tables: string | null }>(LACKING);
  if (typeof lacking?.tables !== "string") return;
  throw new RunStoreError(`the role of TARGETING_MCP_STORE lacks rights on ${lacking.tables}`, RIGHTS_REMEDY);
}
