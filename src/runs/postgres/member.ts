import { hostname } from "node:os";
import { beyondCall, type Clock } from "../../platform/clock.ts";
import { AGAIN_MS, type Database, inCallTime, ONCE, untilThere } from "./database.ts";

/** The first half of the advisory locks of this server; `is_gone` in the migrations knows it, too. */
const LOCKS = 1953325936;
const READY_MS = 5000;
const SEEN_EVERY_MS = 5000;
/** A session over which no answer comes within this time counts as cut, also where nothing else tells of it. */
const ANSWER_MS = 4000;
/** How long a process that ends tries to say so, in milliseconds. */
const LAST_WORDS_MS = 1500;
/** The notices that processes send each other; a process that misses one looks by itself a little later. */
const LEFT = "targeting_mcp_left";
const CHANGED = "targeting_mcp_changed";
export const STOPS = "targeting_mcp_stops";
/** How often a process tells which runs have changed, in milliseconds, and of how many in one notice. */
const TELL_EVERY_MS = 250;
const RUNS_AT_ONCE = 200;

export interface Member {
  /** Its number, once its sign of life is there. Throws a StoreUnavailableError where the database cannot be reached. */
  number(): Promise<number>;
  /** From now on it takes up the runs of these projects by itself; `wake` is called when there may be some. */
  drives(projects: readonly string[], wake: () => void): Promise<void>;
  /** From now on all processes know that this one may not execute these runs, although it takes up those of their projects. */
  refuses(runIds: readonly string[]): Promise<void>;
  /** Tells all processes that a run was left to be taken up. */
  tellOfLeft(): Promise<void>;
  /** Tells all processes, a little later, that a run has changed. */
  changed(runId: string): void;
  /** Calls the listener when another process tells that a run has changed, until the given function is called. */
  watch(runId: string, listener: () => void): () => void;
  /** Calls the listener when a process asks the driver of a run to stop it, until the given function is called. */
  watchStops(runId: string, listener: () => void): () => void;
  close(): Promise<void>;
}

/** How a run that a process may not execute stands among the projects of which it takes up runs. */
export function refusedRun(runId: string): string {
  return `!${runId}`;
}

type Session = Awaited<ReturnType<Database["direct"]>>;

type Listeners = Map<string, Set<() => void>>;

interface Shown {
  /** Given by the database, and kept for as long as the process lives. */
  number?: number | undefined;
  /** The process of the server that holds the sign of life. */
  backend?: number | undefined;
  projects: readonly string[];
  refused: readonly string[];
  wake: () => void;
  readonly changes: Listeners;
  readonly stops: Listeners;
}

/**
 * Shows a sign of life for as long as the process lives and reaches the database: an advisory lock on a connection of
 * its own, which ends with the process. It begins at the first use.
 */
export function memberOf(database: Database, clock: Clock): Member {
  const shown: Shown = { projects: [], refused: [], wake: () => {}, changes: new Map(), stops: new Map() };
  let session: Promise<Session> | undefined;
  const closing = new AbortController();
  let seen: NodeJS.Timeout | undefined;

  const begin = async (): Promise<Session> => {
    const client = await openSession(database, shown);
    client.once("end", () => {
      session = undefined;
      if (!closing.signal.aborted) void again().catch(() => undefined);
    });
    seen ??= setInterval(() => void showLife().catch(() => undefined), SEEN_EVERY_MS).unref();
    return client;
  };
  const connected = (): Promise<Session> => {
    session ??= begin().catch((thrown: unknown) => {
      session = undefined;
      throw thrown;
    });
    return session;
  };
  /** Connects again until it succeeds: without the sign of life others take over what this process holds. */
  const again = async (): Promise<void> => {
    while (!closing.signal.aborted) {
      try {
        await connected();
        return;
      } catch {
        await clock.sleep(AGAIN_MS, closing.signal);
      }
    }
  };
  /** Over the session itself, so that one whose way was cut without a word is replaced. */
  const showLife = async (): Promise<void> => {
    const client = await connected();
    await inTime(client, () => client.query(SEEN, [shown.number, toldProjects(shown)]));
  };
  const tell = teller(database);
  return {
    async number() {
      const since = clock.monotonic();
      const isOver = () => clock.monotonic() - since > READY_MS || closing.signal.aborted;
      const numbered = untilThere(clock, isOver, async () => {
        await beyondCall(connected);
        if (shown.number === undefined) throw new TypeError("the database gave no number");
        return shown.number;
      });
      return inCallTime(numbered, clock);
    },
    async drives(projects, wake) {
      Object.assign(shown, { projects, wake });
      await this.number();
      await showLife();
    },
    async refuses(runIds) {
      shown.refused = runIds;
      await showLife();
    },
    async tellOfLeft() {
      await database.rows(`select pg_notify('${LEFT}', '')`);
    },
    changed: tell.changed,
    watch: (runId, listener) => {
      // Without a session nothing is heard, and the runs are looked at all the same.
      void beyondCall(connected).catch(() => undefined);
      return listening(shown.changes, runId, listener);
    },
    watchStops: (runId, listener) => listening(shown.stops, runId, listener),
    async close() {
      closing.abort();
      clearInterval(seen);
      const gone = session?.then((client) => ended(client, shown.number)).catch(() => undefined);
      await shortly(clock, Promise.all([tell.now(), gone]));
    },
  };
}

function listening(listeners: Listeners, runId: string, listener: () => void): () => void {
  const mine = listeners.get(runId) ?? new Set();
  listeners.set(runId, mine.add(listener));
  return () => {
    mine.delete(listener);
    if (mine.size === 0) listeners.delete(runId);
  };
}

/** Tells of changed runs at most every quarter of a second, beside what else this process does. */
function teller(database: Database) {
  let waiting = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const now = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const ids = [...waiting];
    waiting = new Set();
    // A notice that is lost costs nothing but time.
    for (let from = 0; from < ids.length; from += RUNS_AT_ONCE) {
      const some = ids.slice(from, from + RUNS_AT_ONCE).join(" ");
      await database.rows("select pg_notify($1, $2)", [CHANGED, some], ONCE).catch(() => undefined);
    }
  };
  const changed = (runId: string): void => {
    waiting.add(runId);
    timer ??= setTimeout(() => void now(), TELL_EVERY_MS).unref();
  };
  return { changed, now };
}

const SEEN = "update targeting_mcp.worker set seen_at = clock_timestamp(), projects = $2 where number = $1";
const HOLDER = `
  select pid from pg_locks
  where locktype = 'advisory' and classid = ${LOCKS} and objid = $1::int and objsubid = 2 and mode = 'ExclusiveLock' and granted
    and database = (select oid from pg_database where datname = current_database())`;

function toldProjects({ projects, refused }: Shown): readonly string[] {
  return [...projects, ...refused.map(refusedRun)];
}

/** Does some work with a connection, which is closed where that takes too long: then the work fails. */
async function inTime<T>(client: Session, work: () => Promise<T>): Promise<T> {
  const timer = setTimeout(() => void client.end().catch(() => undefined), ANSWER_MS);
  try {
    return await work();
  } finally {
    clearTimeout(timer);
  }
}

async function openSession(database: Database, shown: Shown): Promise<Session> {
  const client = await database.direct();
  try {
    await inTime(client, () => showMember(database, client, shown));
  } catch (thrown) {
    await client.end().catch(() => undefined);
    throw thrown;
  }
  client.on("notification", ({ channel, payload = "" }) => {
    if (channel === LEFT) return shown.wake();
    const listeners = channel === STOPS ? shown.stops : shown.changes;
    for (const runId of payload.split(" ")) for (const listener of listeners.get(runId) ?? []) listener();
  });
  return client;
}

/** Takes a number, or shows again that of before, and begins to listen. */
async function showMember(database: Database, client: Session, shown: Shown): Promise<void> {
  const numbered = "select nextval('targeting_mcp.worker_number')::int as n";
  const number = shown.number ?? (await client.query<{ n: number }>(numbered)).rows[0]?.n ?? 0;
  if (number > 0) {
    await freeNumber(client, number, shown);
    const locked = "select pg_backend_pid() as pid, pg_advisory_lock($1, $2)";
    shown.backend = (await client.query<{ pid: number }>(locked, [LOCKS, number])).rows[0]?.pid;
  }
  shown.number ??= (await isKeptOut(database, number)) ? number : -number;
  await client.query(`listen ${LEFT}; listen ${CHANGED}; listen ${STOPS}`);
  await client.query(
    `insert into targeting_mcp.worker values ($1, $2, clock_timestamp(), $3)
     on conflict (number) do update set seen_at = excluded.seen_at, projects = excluded.projects`,
    [shown.number, `${hostname()}:${process.pid}`, toldProjects(shown)],
  );
}

/**
 * Ends the former session of this process where the server has not noticed that its way was cut. A number that another
 * process shows, as after a failover that lost the last ones, is given up: the next try takes another one.
 */
async function freeNumber(client: Session, number: number, shown: Shown): Promise<void> {
  const holder = (await client.query<{ pid: number }>(HOLDER, [number])).rows[0]?.pid;
  if (holder === undefined) return;
  if (holder !== shown.backend) {
    shown.number = undefined;
    throw new Error("another process shows a sign of life by this number");
  }
  await client.query("select pg_terminate_backend($1)", [holder]);
}

async function ended(client: Session, number: number | undefined): Promise<void> {
  const gone = "delete from targeting_mcp.worker where number = $1";
  await inTime(client, () => client.query(gone, [number])).catch(() => undefined);
  await client.end().catch(() => undefined);
}

/** Waits for what a process says last, which costs nothing but time to others where it is lost. */
async function shortly(clock: Clock, said: Promise<unknown>): Promise<void> {
  const isSaid = new AbortController();
  await Promise.race([said, clock.sleep(LAST_WORDS_MS, isSaid.signal).catch(() => undefined)]);
  isSaid.abort();
}

/** Whether the lock of this session keeps others out: with a pooler between, sessions are shared. */
async function isKeptOut(database: Database, number: number): Promise<boolean> {
  const other = await database.direct();
  try {
    const query = "select pg_try_advisory_lock_shared($1, $2) as free";
    const tried = await inTime(other, () => other.query<{ free: boolean }>(query, [LOCKS, number]));
    return tried.rows[0]?.free !== true;
  } finally {
    await other.end();
  }
}
