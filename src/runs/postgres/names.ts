import { MOST_REMEMBERED, namedAmong, type SeenTargeting, type TargetingMemory } from "../backend/targeting-names.ts";
import type { Database } from "./database/database.ts";

/** The targetings of a project that any process has seen. */
export function storedNames(database: Database, project: string, now: () => number): TargetingMemory {
  const recent = async (): Promise<readonly SeenTargeting[]> => {
    const rows = await database.rows<{ id: string; name: string; seen_at: string }>(
      "select id, name, seen_at from targeting_mcp.name where project = $1 order by seen_at desc, id limit $2",
      [project, MOST_REMEMBERED],
    );
    return rows.map(({ id, name, seen_at }) => ({ _id: id, name, seenAt: Number(seen_at) }));
  };
  return {
    recent,
    async remember(targetings) {
      const names = new Map(targetings.map(({ _id, name }) => [_id, name]));
      await database.rows(
        `insert into targeting_mcp.name select $1, id, name, $4 from unnest($2::text[], $3::text[]) as given (id, name)
         on conflict (project, id) do update set name = excluded.name, seen_at = excluded.seen_at`,
        [project, [...names.keys()], [...names.values()], now()],
      );
    },
    async forget(ids) {
      await database.rows("delete from targeting_mcp.name where project = $1 and id = any($2)", [project, ids]);
    },
    resolve: async (name) => namedAmong(await recent(), name),
  };
}
