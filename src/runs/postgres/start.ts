import { systemClock } from "../../platform/clock.ts";
import { RunStoreError } from "../backend/store.ts";
import { type Database, type DatabaseOptions, openDatabase, untilThere } from "./database.ts";
import { checkTables, migrate, type Tables, tablesOf } from "./migrate.ts";
import { checkRights, type ProbedServer, probeServer } from "./probe.ts";
import { checkSealKey } from "./side-stores.ts";

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
    const { weaknesses, unfit } = await answered(() => probeServer(database), options.waitMs);
    if (unfit !== undefined) throw unfit;
    if (options.migrates) await answered(() => migrate(database), options.waitMs);
    checkTables(await tablesOf(database));
    await checkRights(database);
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
function answered<T>(work: () => Promise<T>, waitMs: number): Promise<T> {
  const begin = systemClock.monotonic();
  return untilThere(systemClock, () => systemClock.monotonic() - begin >= waitMs, work, AGAIN_MS);
}

/** The tables of a store, and what they hold. */
interface StoredTables extends Tables {
  readonly runs: number;
  /** By table, what it takes on the disk with its indexes. */
  readonly bytes: Readonly<Record<string, number>>;
}

/** A store as it was found. */
export interface FoundStore extends Partial<Pick<ProbedServer, "server">>, Pick<ProbedServer, "weaknesses"> {
  readonly tables?: StoredTables;
  /** Why it cannot be worked with. */
  readonly problem?: RunStoreError;
}

/** Looks at a store without changing anything, and does not wait for one that is away. */
export function lookAtStore(where: DatabaseOptions): Promise<FoundStore> {
  return opened(where, async (database) => {
    let found: FoundStore = { weaknesses: [] };
    try {
      const { unfit, ...probed } = await answered(() => probeServer(database), 0);
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
  const [told] = await database.rows<{ runs: number; bytes: Record<string, number> }>(
    `select (select count(*)::int from targeting_mcp.run) as runs,
       (select json_object_agg(relname, pg_total_relation_size(oid)) from pg_class
        where relnamespace = 'targeting_mcp'::regnamespace and relkind = 'r') as bytes`,
  );
  return told ?? NOTHING;
}
