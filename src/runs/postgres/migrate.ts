import { RunStoreError } from "../backend/store.ts";
import type { Database } from "./database.ts";
import { MIGRATIONS, SCHEMA } from "./migrations.ts";

/** The advisory lock under which the tables are changed. */
const MIGRATING = "1953325936, 0";

const THERE = `select to_regnamespace('${SCHEMA}') is not null as schema, to_regclass('${SCHEMA}.migration') is not null as tables`;

const LAST = `select coalesce(max(number), 0) as found from ${SCHEMA}.migration`;

/** How the tables of a database stand against this version. */
export interface Tables {
  /** The number of the last migration; 0 where there are no tables. */
  readonly found: number;
  readonly wanted: number;
}

/**
 * Brings the tables up to date in one transaction, so that also through a pooler nothing stays locked; several processes
 * may do so at once. Gives how they stood before.
 */
export async function migrate(database: Pick<Database, "direct">): Promise<Tables> {
  const client = await database.direct();
  try {
    await client.query("begin");
    await client.query(`select pg_advisory_xact_lock(${MIGRATING})`);
    // To make what is there needs rights, too: a role that owns the schema may make no other one.
    const { rows: there } = await client.query<{ schema: boolean; tables: boolean }>(THERE);
    if (there[0]?.schema !== true) await client.query(`create schema ${SCHEMA}`);
    if (there[0]?.tables !== true) {
      await client.query(
        `create table ${SCHEMA}.migration (number int primary key, at timestamptz not null default now())`,
      );
    }
    const { rows } = await client.query<{ found: number }>(LAST);
    const found = rows[0]?.found ?? 0;
    for (const [place, sql] of MIGRATIONS.entries()) {
      if (place < found) continue;
      await client.query(`${sql}; insert into ${SCHEMA}.migration values (${place + 1})`);
    }
    await client.query("commit");
    return { found, wanted: MIGRATIONS.length };
  } finally {
    await client.end();
  }
}

/** How the tables stand, without changing anything. */
export async function tablesOf(database: Pick<Database, "rows">): Promise<Tables> {
  const wanted = MIGRATIONS.length;
  const [there] = await database.rows<{ is: boolean }>(`select to_regclass('${SCHEMA}.migration') is not null as is`);
  if (there?.is !== true) return { found: 0, wanted };
  const [last] = await database.rows<{ found: number }>(LAST);
  return { found: last?.found ?? 0, wanted };
}

/** Throws a RunStoreError where this version cannot work with the tables; those of the next version fit, too. */
export function checkTables({ found, wanted }: Tables): void {
  if (found < wanted) {
    const which = found === 0 ? "has no tables yet" : `has tables of an older version (${found}, ${wanted} is needed)`;
    throw new RunStoreError(`the database of TARGETING_MCP_STORE ${which}`, "Run targeting-mcp migrate.");
  }
  if (found > wanted + 1) {
    throw new RunStoreError(
      `the tables of TARGETING_MCP_STORE are of a much newer version (${found}, this one knows ${wanted})`,
      "Use that version of targeting-mcp.",
    );
  }
}
