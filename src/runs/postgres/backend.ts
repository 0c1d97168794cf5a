import { beyondCall } from "../../platform/call-time.ts";
import type { Clock } from "../../platform/clock.ts";
import type { Backend } from "../backend/backend.ts";
import { type SharedLeases, sharedLock } from "../file/project-lock.ts";
import type { Retention } from "../file/retention.ts";
import { targetingMemory } from "../file/targeting-names.ts";
import { type DatabaseOptions, ONCE, openDatabase } from "./database.ts";
import { type LeasesOf, type StoredLease, takeLease } from "./lease.ts";
import { memberOf } from "./member.ts";
import { checkTables, tablesOf } from "./migrate.ts";
import { type DrivingOptions, orphanedRuns } from "./orphaned-runs.ts";
import { sweeper } from "./retention.ts";
import { storedRuns } from "./run-store.ts";
import { keptSealKey, storedContents, storedNames, storedSuites } from "./side-stores.ts";

/** How often a process that waits for the turn to write looks again, in milliseconds. */
const LOOK_AGAIN_MS = 50;

interface PostgresOptions extends DatabaseOptions, Partial<DrivingOptions> {
  readonly clock: Clock;
  readonly keep: Retention;
}

const MOST_PROJECTS = 50;

/** Keeps everything in PostgreSQL, for processes on any number of machines. Nothing is connected before it is needed. */
export function postgresBackend(options: PostgresOptions): Backend {
  const { clock, keep, drives = true, parallelProjects = MOST_PROJECTS, ...where } = options;
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
    sealKey: () => keptSealKey(database),
    endedSessions: {
      async add(id, until) {
        await database.rows(FORGET_ENDED, [clock.now()]);
        await database.rows(END_SESSION, [id, until]);
      },
      has: async (id) => (await database.rows(IS_ENDED, [id, clock.now()])).length > 0,
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
const END_SESSION =
  "insert into targeting_mcp.setting values ('ended session ' || $1, $2::text) on conflict do nothing";
const IS_ENDED =
  "select 1 from targeting_mcp.setting where name = 'ended session ' || $1 and value::numeric > $2::numeric";

function leasesIn(of: LeasesOf): SharedLeases<StoredLease> {
  const nameOf = (project: string): string => (project.startsWith("turn:") ? project : `project:${project}`);
  return {
    take: (project) => takeLease(of, nameOf(project)),
    async ask(project) {
      await of.database.rows("update targeting_mcp.lease set asked = asked + 1 where name = $1", [nameOf(project)]);
    },
    // The taking and each append tell of it, so that it costs no statement of its own.
    asked: async (_, lease) => Number(lease.asked),
  };
}
