import { hostname } from "node:os";
import { beyondCall, type Clock } from "../../platform/clock.ts";
import { AGAIN_MS, type Database, inCallTime, ONCE, retryWhileAway } from "./database.ts";

/** The first half of the keys of this server's advisory locks. `is_gone` in the migrations uses it, too. */
const LOCKS = 1953325936;
const READY_MS = 5000;
const SEEN_EVERY_MS = 5000;
/** A session without an answer for this time counts as broken, in milliseconds. */
const ANSWER_MS = 4000;
/** How long an ending process tries to announce its end, in milliseconds. */
const CLOSING_TIMEOUT_MS = 1500;
/** The notifications between processes. A process that misses one checks by itself a little later. */
const LEFT = "targeting_mcp_left";
const CHANGED = "targeting_mcp_changed";
export const STOPS = "targeting_mcp_stops";
/**
 * The interval of notifications about changed runs, in milliseconds, and the maximum number of runs in one
 * notification.
 */
const TELL_EVERY_MS = 250;
const RUNS_AT_ONCE = 200;

export interface Member {
  /**
   * Returns its number, once its sign of life is active. Throws a StoreUnavailableError if the database cannot be
   * reached.
   */
  number(): Promise<number>;
  /** Starts to claim the runs of these projects. `wake` is called if there may be some. */
  drives(projects: readonly string[], wake: () => void): Promise<void>;
  /**
   * Announces to all processes that this one may not execute these runs, although it claims the runs of their projects.
   */
  refuses(runIds: readonly string[]): Promise<void>;
  /** Notifies all processes of a run that can be claimed. */
  tellOfLeft(): Promise<void>;
  /** Notifies all processes, a little later, that a run has changed. */
  changed(runId: string): void;
  /** Calls the listener when another process reports that a run has changed, until the returned function is called. */
  watch(runId: string, listener: () => void): () => void;
  /** Calls the listener when a process requests that a run stops, until the returned function is called. */
  watchStops(runId: string, listener: () => void): () => void;
  close(): Promise<void>;
}

/** Returns the entry for a run that a process may not execute, in the list of projects whose runs it claims. */
export function refusedRun(runId: string): string {
  return `!${runId}`;
}

type Session = Awaited<ReturnType<Database["direct"]>>;

type Listeners = Map<string, Set<() => void>>;

interface Shown {
  /** Assigned by the database, and unchanged for the life of the process. */
  number?: number | undefined;
  /** The server process that holds the sign of life. */
  backend?: number | undefined;
  projects: readonly string[];
  refused: readonly string[];
  wake: () => void;
  readonly changes: Listeners;
  readonly stops: Listeners;
}

/**
 * Shows a sign of life while the process lives and reaches the database: an advisory lock on a separate connection,
 * which ends with the process. It starts with the first use.
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
  /** Connects again until it succeeds. Without the sign of life, others take over the leases of this process. */
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
  /** Uses the session itself, so that a silently broken session is replaced. */
  const showLife = async (): Promise<void> => {
    const client = await connected();
    await inTime(client, () => client.query(SEEN, [shown.number, announcedProjects(shown)]));
  };
  const tell = teller(database);
  return {
    async number() {
      const since = clock.monotonic();
      const isOver = () => clock.monotonic() - since > READY_MS || closing.signal.aborted;
      const numbered = retryWhileAway(clock, isOver, async () => {
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
      // Without a session no notification arrives. Runs are then checked at intervals.
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

/** Sends notifications of changed runs at most every quarter of a second, in the background. */
function teller(database: Database) {
  let waiting = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const now = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const ids = [...waiting];
    waiting = new Set();
    // A lost notification only causes a delay.
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

function announcedProjects({ projects, refused }: Shown): readonly string[] {
  return [...projects, ...refused.map(refusedRun)];
}

/** Does work with a connection. If it takes too long, closes the connection, and the work fails. */
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

/** Takes a number or shows the previous one again, and starts to listen. */
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
    [shown.number, `${hostname()}:${process.pid}`, announcedProjects(shown)],
  );
}

/**
 * Ends the previous session of this process if the server has not noticed that it is broken. Gives up a number that
 * another process shows, for example after a failover that lost the last numbers. The next try takes another one.
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

/** Waits a short time for the last statements of a process. If they are lost, others only lose time. */
async function shortly(clock: Clock, said: Promise<unknown>): Promise<void> {
  const isSaid = new AbortController();
  await Promise.race([said, clock.sleep(CLOSING_TIMEOUT_MS, isSaid.signal).catch(() => undefined)]);
  isSaid.abort();
}

/** Returns whether the lock of this session excludes others. With a pooler, sessions are shared, and it does not. */
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
