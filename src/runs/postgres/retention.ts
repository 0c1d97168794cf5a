import { ulidAt } from "../../spec/ulid.ts";
import type { Retention } from "../file/retention.ts";
import type { Database } from "./database.ts";

const DAY_MS = 86_400_000;
/** So few at a time that nobody has to wait for it. */
const AT_ONCE = 100;
const MOST_YES = 1000;
const PAUSE = "1 day";

/** Runs at rest that are too old, or more than a caller keeps; those that hold what was taken away go by age alone. */
const FINISHED = `
  delete from targeting_mcp.run where id in (
    select id from (
      select id, started, open, row_number() over (partition by caller, removed, open order by id desc) as place, removed
      from (
        select r.id, r.caller, r.started, r.open,
          exists (select from targeting_mcp.part p where p.run = r.id and p.name = 'removed') as removed
        from targeting_mcp.run r where not r.open
      ) known
    ) ranked where id < $1 or (not removed and place > $2)
    limit $3
  ) returning id`;
/** Plans that nobody has confirmed. */
const PLANNED = `
  delete from targeting_mcp.run where id in (
    select id from targeting_mcp.run r where r.open and not r.started and r.id < $1
      and not exists (select from targeting_mcp.lease l where l.name = 'run:' || r.id and not l.released
        and l.until > clock_timestamp())
    limit $2
  ) returning id`;

/** Removes runs that need not be kept any longer, and what belongs to them, in small steps. */
export async function removeOld(database: Database, keep: Retention, now: number): Promise<void> {
  await inSteps(database, FINISHED, [ulidAt(now - keep.days * DAY_MS), keep.runs, AT_ONCE]);
  await inSteps(database, PLANNED, [ulidAt(now - DAY_MS), AT_ONCE]);
  await database.rows(
    "delete from targeting_mcp.yes where id in (select id from targeting_mcp.yes order by taken_at desc offset $1)",
    [MOST_YES],
  );
  await database.rows(
    `delete from targeting_mcp.lease l where l.released and not l.unsettled and l.until < clock_timestamp() - $1::interval
     and l.name like 'run:%' and not exists (select from targeting_mcp.run r where 'run:' || r.id = l.name)`,
    [PAUSE],
  );
  await database.rows("delete from targeting_mcp.worker where seen_at < clock_timestamp() - $1::interval", [PAUSE]);
}

async function inSteps(database: Database, statement: string, values: readonly unknown[]): Promise<void> {
  for (;;) {
    const gone = await database.rows<{ id: string }>(statement, values);
    if (gone.length < AT_ONCE) return;
  }
}
