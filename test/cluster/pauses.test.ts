import pg from "pg";
import { expect, test } from "vitest";
import { openDatabase } from "../../src/runs/postgres/database.ts";
import { migrate } from "../../src/runs/postgres/migrations.ts";
import type { SharedPlace } from "../kill/holders.ts";
import { PAUSES, pauseAll } from "../kill/pauses.ts";
import { isLong, withPostgres } from "./cluster.ts";

/** Each kind of pause once, or TARGETING_MCP_TEST_PAUSES pauses, or 50 with TARGETING_MCP_TEST_LONG=on. */
const COUNT = Number(process.env.TARGETING_MCP_TEST_PAUSES ?? (isLong ? 50 : PAUSES.length));
/** How many pauses are tested at the same time. They mostly wait, so there can be many. */
const AT_ONCE = Number(process.env.TARGETING_MCP_TEST_AT_ONCE ?? PAUSES.length);

const cluster = withPostgres();

const HOLDER = `
  select l.epoch::int as number, split_part(w.name, ':', 2)::int as pid
  from targeting_mcp.lease l join targeting_mcp.worker w on w.number = l.worker where l.name like $1`;

/** Creates a new database in which two processes of one project store their runs. */
async function placeInStore(): Promise<SharedPlace> {
  const url = await cluster.postgres.database();
  const database = openDatabase({ url, connections: 2 });
  await migrate(database);
  await database.close();
  const pool = new pg.Pool({ connectionString: url, max: 2 });
  return {
    settings: { TARGETING_MCP_STORE: url },
    runs: async () => {
      const { rows } = await pool.query<{ id: string }>("select id from targeting_mcp.run order by id");
      return rows.map(({ id }) => id);
    },
    holder: async (name) => {
      const pattern = name === "project" ? "project:%" : name.replace(" ", ":");
      return (await pool.query<{ number: number; pid: number }>(HOLDER, [pattern])).rows[0];
    },
    close: () => pool.end(),
  };
}

test("over a store, a process that stands still for longer than its lease lasts sends nothing beside its follower", async () => {
  const { ends, takenOver } = await pauseAll({ kinds: PAUSES, count: COUNT, atOnce: AT_ONCE, openPlace: placeInStore });
  expect(ends).toEqual([]);
  expect(takenOver).toBeGreaterThan(COUNT / 2);
}, 3_600_000);
