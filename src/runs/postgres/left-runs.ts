import type { LeftRuns } from "../backend/store.ts";
import { driverOf, type LeasesOf } from "./lease.ts";
import type { Member } from "./member.ts";

/**
 * Runs that nobody drives, whose projects this process knows: those of callers of whom the fewest are driven come
 * first, then the oldest. A lease is as good as free where its holder shows no sign of life; taking it decides.
 */
const FOUND = `
  with alive as (
    select objid::bigint as number from pg_locks
    where locktype = 'advisory' and classid = 1953325936 and objsubid = 2 and mode = 'ExclusiveLock' and granted
      and database = (select oid from pg_database where datname = current_database())
  ), left_over as (
    select r.id, r.project, r.caller, l.name is not null and not l.released and l.until > clock_timestamp()
      and (l.worker in (select number from alive) or pg_postmaster_start_time() > clock_timestamp() - interval '5 seconds')
      as driven
    from targeting_mcp.run r left join targeting_mcp.lease l on l.name = 'run:' || r.id
    where r.started and r.summary is null and not r.declined and r.project = any($1)
  ), busy as (
    select caller, count(*) as runs from left_over where driven group by caller
  )
  select o.id, o.project
  from left_over o left join busy b on b.caller = o.caller
  where not o.driven
  order by coalesce(b.runs, 0), o.id limit $2`;

type StoredLeftRuns = Pick<LeasesOf, "database"> & { readonly member: Member };

/** Runs that the processes of a database leave to each other. */
export function leftRuns({ database, member }: StoredLeftRuns, drivesOwn: boolean): LeftRuns {
  return {
    drivesOwn,
    leave: () => member.tellOfLeft(),
    takesUp: (projects, wake) => member.drives(projects, wake),
    async found(projects, most) {
      const rows = await database.rows<{ id: string; project: string }>(FOUND, [projects, most]);
      return rows.map(({ id, project }) => ({ runId: id, project }));
    },
    async decline(runId) {
      await database.rows(
        `update targeting_mcp.run set declined = true, changes = changes + 1 where id = $1 and summary is null
         and not exists (
           select from targeting_mcp.lease where name = $2 and not released and until > clock_timestamp()
         )`,
        [runId, driverOf(runId)],
      );
    },
  };
}
