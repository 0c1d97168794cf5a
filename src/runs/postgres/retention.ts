import type { Clock } from "../../platform/clock.ts";
import { parseJson } from "../../platform/json.ts";
import { ulidAt } from "../../spec/names-and-contexts.ts";
import type { Retention } from "../files/run-store.ts";
import { type RetentionWatch, retentionWatch, seenClock } from "../retention-clock.ts";
import type { Database } from "./database.ts";
import { readSetting, storeSetting } from "./side-stores.ts";

const DAY_MS = 86_400_000;
/** The maximum number of rows of a statement, so that no other statement has to wait long. */
const AT_ONCE = 50;
const MAX_STORED_CONFIRMATIONS = 1000;
const CONTENTS_AT_ONCE = 500;
const MAX_CONTENTS = 1_073_741_824;
const SOON_MS = 1000;

const HELD = "exists (select from targeting_mcp.part p where p.run = r.id and p.name = 'removed')";
const removing = (which: string): string =>
  `delete from targeting_mcp.run where id in (
     select r.id from targeting_mcp.run r where ${which} order by r.id limit ${AT_ONCE} for update skip locked
   ) returning id`;

const OLD = removing("not r.open and r.id < $1");
/**
 * SQL that removes a caller's oldest runs above the maximum number. Runs with removed data are removed only by age.
 * Runs that were created while a clock was ahead do not count.
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
    limit ${AT_ONCE}
  ) returning name as id`;
/** SQL that removes old Context IDs, and the oldest ones if the table is too large. */
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

/** Removes old runs and their parts in the background, in small steps. Removes nothing while the clock is in doubt. */
export function sweeper(database: Database, keep: Retention, clock: Clock) {
  const waiting = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let sweptAt = clock.now();
  const inSteps = async (statement: string, values: readonly unknown[] = [], atOnce = AT_ONCE): Promise<void> => {
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
      // If the sweep fails, the end of a later run starts another one.
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
