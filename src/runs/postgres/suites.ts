import { randomUUID } from "node:crypto";
import type { SuiteTexts } from "../backend/suite-texts.ts";
import type { Database } from "./database/database.ts";

/** How many suites of one caller are kept. */
const MOST_SUITES = 100;

/** Keeps suites, and what came of each confirmation, in the database. */
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
        [caller, MOST_SUITES],
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
    async storedBytes(caller) {
      const [sum] = await database.rows<{ bytes: string }>(
        "select coalesce(sum(octet_length(body)), 0) as bytes from targeting_mcp.suite where caller = $1",
        [caller],
      );
      return Number(sum?.bytes ?? 0);
    },
    async claim(yes) {
      const made = await database.rows<{ id: string }>(
        `insert into targeting_mcp.yes (id, taken_by) values ($1, $2)
         on conflict (id) do update set taken_by = excluded.taken_by where yes.taken_by = $2 returning id`,
        [yes, randomUUID()],
      );
      return made.length > 0;
    },
    async settle(yes, text) {
      await database.rows("update targeting_mcp.yes set body = $2 where id = $1", [yes, text]);
    },
    settled: (yes) => textOf(database, "select body from targeting_mcp.yes where id = $1", [yes]),
  };
}

async function textOf(database: Database, query: string, values: readonly unknown[]): Promise<string | undefined> {
  return (await database.rows<{ body: string }>(query, values))[0]?.body;
}
