import { type Clock, systemClock } from "../../../platform/clock.ts";
import { RunStoreError } from "../../backend/store.ts";
import { type Database, type DatabaseOptions, isAway, openDatabase, refused, unavailable } from "./database.ts";
import { checkTables, migrate, type Tables, tablesOf } from "./migrate.ts";
import { checkSealKey } from "./seal-key.ts";

/** Versions of the server before this one lack what the tables need. */
const OLDEST = 140_000;
const AGAIN_MS = 500;

interface StartOptions {
  readonly migrates: boolean;
  /** How long to wait for a database that does not answer. */
  readonly waitMs: number;
  /** The key of the settings, in base64. */
  readonly sealKey?: string | undefined;
}

/**
 * Looks whether the database can be worked with. Gives what is weak about it, in words. Throws a RunStoreError where it
 * stays away, is too old or a standby, or its tables do not fit.
 */
export async function prepareStore(where: DatabaseOptions, options: StartOptions): Promise<readonly string[]> {
  return opened(where, async (database) => {
    const weaknesses = await answered(() => probe(database), options.waitMs);
    if (options.migrates) await answered(() => migrate(database), options.waitMs);
    checkTables(await tablesOf(database));
    if (options.sealKey !== undefined) await checkSealKey(database, Buffer.from(options.sealKey, "base64"));
    return weaknesses;
  });
}

/** Brings the tables up to date; gives how they stood before. */
export function migrateStore(where: DatabaseOptions): Promise<Tables> {
  return opened(where, (database) => answered(() => migrate(database), 0));
}

async function opened<T>(where: DatabaseOptions, work: (database: Database) => Promise<T>): Promise<T> {
  const database = openDatabase(where);
  try {
    return await work(database);
  } finally {
    await database.close();
  }
}

/** Does some work once the database answers. */
async function answered<T>(work: () => Promise<T>, waitMs: number, clock: Clock = systemClock): Promise<T> {
  const begin = clock.monotonic();
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      if (thrown instanceof RunStoreError) throw thrown;
      if (!isAway(thrown)) throw refused(thrown);
      if (clock.monotonic() - begin >= waitMs) throw unavailable(thrown);
      await clock.sleep(AGAIN_MS);
    }
  }
}

interface Probed {
  readonly number: number;
  readonly version: string;
  readonly standby: boolean;
  readonly fsync: string;
  readonly full_page_writes: string;
  readonly synchronous_commit: string;
  readonly asynchronous: number;
}

const PROBE = `
  select current_setting('server_version_num')::int as number, current_setting('server_version') as version,
    pg_is_in_recovery() as standby, current_setting('fsync') as fsync,
    current_setting('full_page_writes') as full_page_writes, current_setting('synchronous_commit') as synchronous_commit,
    (select count(*)::int from pg_stat_replication where sync_state = 'async') as asynchronous`;

async function probe(database: Database): Promise<readonly string[]> {
  const client = await database.direct();
  try {
    const [told] = (await client.query<Probed & { [column: string]: unknown }>(PROBE)).rows;
    if (told === undefined) throw new RunStoreError("the database tells nothing about itself", "Is it PostgreSQL?");
    const { number, version, standby } = told;
    const unfit =
      number < OLDEST ? `it is PostgreSQL ${version}` : standby ? "it is a standby, which takes no writes" : "";
    if (unfit !== "") {
      throw new RunStoreError(
        `the database of TARGETING_MCP_STORE cannot be used: ${unfit}`,
        "Name the primary of a PostgreSQL 14 or newer.",
      );
    }
    return [...weaknessesOf(told), ...((await locksExclude(database)) ? [] : [POOLED])];
  } finally {
    await client.end();
  }
}

function weaknessesOf(told: Probed): readonly string[] {
  const found: readonly (readonly [boolean, string])[] = [
    [told.fsync === "off", "fsync is off in PostgreSQL: a loss of power loses runs and their journals"],
    [told.full_page_writes === "off", "full_page_writes is off in PostgreSQL: a loss of power may damage the tables"],
    [
      told.synchronous_commit === "off",
      "synchronous_commit is off for this role or database: it is switched on for this server's sessions",
    ],
    [
      told.asynchronous > 0,
      "a standby of PostgreSQL is asynchronous: a failover to it loses what was journaled last (synchronous_standby_names)",
    ],
  ];
  return found.flatMap(([is, words]) => (is ? [words] : []));
}

const POOLED =
  "advisory locks do not exclude: a pooler in transaction mode lies between (TARGETING_MCP_STORE_LISTEN names a direct address)";

/** Whether the lock of one session keeps another one out, which it does not where a pooler shares sessions. */
async function locksExclude(database: Database): Promise<boolean> {
  const [one, other] = [await database.direct(), await database.direct()];
  try {
    // Any two processes may probe at once, so that the number is one of this probe.
    const number = Math.floor(Math.random() * 2 ** 31);
    await one.query("select pg_advisory_lock(1953325937, $1)", [number]);
    const [told] = (
      await other.query<{ free: boolean }>("select pg_try_advisory_lock(1953325937, $1) as free", [number])
    ).rows;
    return told?.free === false;
  } finally {
    await Promise.all([one.end(), other.end()]);
  }
}
