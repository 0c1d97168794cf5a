import { addCount } from "../../platform/by-key.ts";
import { beyondCall, type Clock } from "../../platform/clock.ts";
import { type Backend, ENDED_FOR_MS } from "../backend.ts";
import { targetingMemory } from "../files/backend.ts";
import { type SharedLeases, sharedLock } from "../files/lease.ts";
import type { Retention } from "../files/run-store.ts";
import type { OrphanedRuns } from "../store.ts";
import { type DatabaseOptions, ONCE, openDatabase } from "./database.ts";
import { type LeasesOf, memberOf, type StoredLease, takeLease } from "./member.ts";
import { checkTables, tablesOf } from "./migrations.ts";
import { storedRuns } from "./run-store.ts";
import {
  keptSetting,
  readSetting,
  storedContents,
  storedNames,
  storedSealKey,
  storedSuites,
  storeSetting,
  sweeper,
} from "./side-stores.ts";

const LOOK_AGAIN_MS = 50;

interface PostgresOptions extends DatabaseOptions, Partial<DrivingOptions> {
  readonly clock: Clock;
  readonly keep: Retention;
}

const MAX_PROJECTS = 50;

/** A backend in PostgreSQL, which processes on any number of machines can share. Connects when it is first used. */
export function postgresBackend(options: PostgresOptions): Backend {
  const { clock, keep, drives = true, parallelProjects = MAX_PROJECTS, ...where } = options;
  const database = openDatabase(where, clock);
  const member = memberOf(database, clock);
  const of = { database, member, clock };
  const swept = sweeper(database, keep, clock);
  const lock = sharedLock(leasesIn(of), clock, LOOK_AGAIN_MS);
  return {
    runs: storedRuns(of, lock, { left: orphanedRuns(of, { drives, parallelProjects }), sweeper: swept }),
    lock,
    suites: storedSuites(database),
    names: (project, { lasting, ...options }) => {
      const now = () => clock.now();
      return lasting ? storedNames(database, project, now) : targetingMemory({ ...options, now });
    },
    contents: (project, onProblem) => storedContents(database, project, onProblem),
    async audit(line) {
      await beyondCall(() => database.rows("insert into targeting_mcp.audit (line) values ($1)", [line]));
    },
    sealKey: () => storedSealKey(database),
    endedSessions: {
      async add(id, until) {
        const isInDoubt = (await swept.retention.doubt()) !== undefined;
        if (!isInDoubt) await database.rows(FORGET_ENDED, [clock.now() - ENDED_FOR_MS]);
        await keptSetting(database, `ended session ${id}`, String(until));
      },
      has: async (id) => (await readSetting(database, `ended session ${id}`)) !== undefined,
    },
    callerRights: {
      keep: (caller, text) => storeSetting(database, `rights of ${caller}`, text),
      read: (caller) => readSetting(database, `rights of ${caller}`),
    },
    ready: async () => checkTables(await tablesOf({ rows: (text, values) => database.rows(text, values, ONCE) })),
    async close() {
      swept.close();
      await member.close();
      await database.close();
    },
  };
}

const FORGET_ENDED =
  "delete from targeting_mcp.setting where name like 'ended session %' and value::numeric <= $1::numeric";

function leasesIn(of: LeasesOf): SharedLeases<StoredLease> {
  const nameOf = (project: string): string => (project.startsWith("turn:") ? project : `project:${project}`);
  return {
    take: (project) => takeLease(of, nameOf(project)),
    async ask(project) {
      await of.database.rows("update targeting_mcp.lease set asked = asked + 1 where name = $1", [nameOf(project)]);
    },
    // Taking the lease and each append already returned how many times others asked for it, so no query is needed.
    asked: async (_, lease) => Number(lease.asked),
  };
}

const ALIVE = `
  alive as (
    select objid::bigint as number from pg_locks
    where locktype = 'advisory' and classid = 1953325936 and objsubid = 2 and mode = 'ExclusiveLock' and granted
      and database = (select oid from pg_database where datname = current_database())
  )`;

/**
 * SQL that finds a living process that continues orphaned runs of a project. Processes with a negative number hold no
 * advisory lock; they count as living if they were seen recently.
 */
const TAKING_UP = `
  with ${ALIVE}
  select number from targeting_mcp.worker
  where $1 = any(projects)
    and (number in (select number from alive) or number < 0 and seen_at > clock_timestamp() - interval '10 seconds')
  limit 1`;

/**
 * SQL that finds runs whose process has ended. Callers with few projects in execution come first. A run is found if the
 * holder of its lease does not seem to live; whether it can be taken is decided when its lease is taken.
 */
const FOUND = `
  with ${ALIVE}, unfinished as (
    select r.id, r.project, r.caller, l.name is not null and not l.released
      and l.until between clock_timestamp() and clock_timestamp() + interval '66 seconds'
      and (
        l.worker < 0 or l.worker in (select number from alive)
        or pg_postmaster_start_time() between clock_timestamp() - interval '5 seconds' and clock_timestamp()
      ) as driven
    from targeting_mcp.run r left join targeting_mcp.lease l on l.name = 'run:' || r.id
    where r.status = 'running'
  ), busy as (
    select caller, count(distinct project) as projects from unfinished where driven group by caller
  ), next as (
    select caller, project, rank() over (partition by caller order by min(id)) as place
    from unfinished where not driven and project = any($1) and id <> all($3) group by caller, project
  )
  select u.id, u.project
  from unfinished u join next n using (caller, project) left join busy b using (caller)
  where not u.driven and u.id <> all($3)
  order by coalesce(b.projects, 0) + n.place, u.id limit $2`;

export interface DrivingOptions {
  readonly drives: boolean;
  readonly parallelProjects: number;
}

export function orphanedRuns(
  { database, member }: Pick<LeasesOf, "database" | "member">,
  { drives, parallelProjects }: DrivingOptions,
): OrphanedRuns {
  const driven = new Map<string, number>();
  let shared: ReadonlySet<string> = new Set();
  let wakeUp = (): void => {};
  const hasRoomFor = (project: string): boolean => driven.has(project) || driven.size < parallelProjects;
  return {
    drives(project) {
      if (!drives || (shared.has(project) && !hasRoomFor(project))) return undefined;
      addCount(driven, project, 1);
      return () => {
        const wasFull = driven.size >= parallelProjects;
        // While it had the maximum number of projects, this process skipped runs of other projects. So it looks again.
        if (addCount(driven, project, -1) === 0 && wasFull) wakeUp();
      };
    },
    hasWorker: async (project) => drives || (await database.rows(TAKING_UP, [project])).length > 0,
    hasRoomFor,
    leave: () => member.notifyOfOrphans(),
    async startClaiming(projects, wake) {
      shared = new Set(projects);
      wakeUp = wake;
      await member.drives(projects, wake);
    },
    async found(projects, most, except = []) {
      const rows = await database.rows<{ id: string; project: string }>(FOUND, [projects, most, except]);
      return rows.map(({ id, project }) => ({ runId: id, project }));
    },
    refuses: (runIds) => member.refuses(runIds),
  };
}
