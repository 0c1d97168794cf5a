import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { beyondCall, type Clock } from "../../platform/clock.ts";
import { HeldLease, type Lease } from "../turn.ts";
import { AGAIN_MS, type Database, hangUp, inCallTime, ONCE, retryWhileAway } from "./database.ts";

/** The first key of the locks of processes. Other SQL contains it as well, such as `is_gone` in the migrations. */
const LOCKS = 1953325936;
const READY_MS = 5000;
const SEEN_EVERY_MS = 5000;
/** A connection without an answer for this many milliseconds counts as broken. */
const ANSWER_MS = 4000;
const CLOSING_TIMEOUT_MS = 1500;
/** The channels of notifications. Notifications are only hints: a process also checks at intervals. */
const LEFT = "targeting_mcp_left";
const CHANGED = "targeting_mcp_changed";
export const STOPS = "targeting_mcp_stops";
const TELL_EVERY_MS = 250;
const RUNS_AT_ONCE = 200;

export type Member = ReturnType<typeof memberOf>;

/** Returns the text that announces a run that this process may not execute. It is stored among the projects. */
export function refusedRun(runId: string): string {
  return `!${runId}`;
}

type Session = Awaited<ReturnType<Database["direct"]>>;

type Listeners = Map<string, Set<() => void>>;

interface Shown {
  /** The number from the database. The process keeps it until it ends, unless another process uses it. */
  number?: number | undefined;
  backend?: number | undefined;
  projects: readonly string[];
  refused: readonly string[];
  wake: () => void;
  readonly changes: Listeners;
  readonly stops: Listeners;
}

/** Shows other processes that this process is alive, by an advisory lock that ends with the process's connection. */
export function memberOf(database: Database, clock: Clock) {
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
  /** Takes the lock again after its connection broke. Without the lock, other processes take over our leases. */
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
  /** Uses the connection of the lock, so that a broken connection is noticed and replaced. */
  const showLife = async (): Promise<void> => {
    const client = await connected();
    await inTime(client, () => client.query(SEEN, [shown.number, announcedProjects(shown)]));
  };
  const tell = teller(database);
  return {
    /** Returns this process's number once its lock shows that it is alive. Throws a StoreUnavailableError. */
    async number(): Promise<number> {
      const since = clock.monotonic();
      const isOver = () => clock.monotonic() - since > READY_MS || closing.signal.aborted;
      const numbered = retryWhileAway(clock, isOver, async () => {
        await beyondCall(connected);
        if (shown.number === undefined) throw new TypeError("the database gave this process no number");
        return shown.number;
      });
      return inCallTime(numbered, clock);
    },
    /**
     * Announces the projects whose orphaned runs this process continues. Calls `wake` when there may be such runs. Throws
     * a StoreUnavailableError.
     */
    async drives(projects: readonly string[], wake: () => void): Promise<void> {
      Object.assign(shown, { projects, wake });
      await this.number();
      await retryWhileAway(clock, () => true, showLife);
    },
    /**
     * Announces runs that this process may not execute. Otherwise, they would count as executed by this process. Throws a
     * StoreUnavailableError.
     */
    async refuses(runIds: readonly string[]): Promise<void> {
      shown.refused = runIds;
      await retryWhileAway(clock, () => true, showLife);
    },
    async notifyOfOrphans(): Promise<void> {
      await database.rows(`select pg_notify('${LEFT}', '')`);
    },
    changed: tell.changed,
    /** Calls the listener when the run may have changed, until the returned function is called. */
    watch(runId: string, listener: () => void): () => void {
      // An error is ignored: without notifications, the run is checked at intervals anyway.
      void beyondCall(connected).catch(() => undefined);
      return listening(shown.changes, runId, listener);
    },
    watchStops: (runId: string, listener: () => void) => listening(shown.stops, runId, listener),
    async close(): Promise<void> {
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

function teller(database: Database) {
  let waiting = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const now = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const ids = [...waiting];
    waiting = new Set();
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

async function inTime<T>(client: Session, work: () => Promise<T>): Promise<T> {
  const timer = setTimeout(() => hangUp(client), ANSWER_MS);
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
    hangUp(client);
    throw thrown;
  }
  client.on("notification", ({ channel, payload = "" }) => {
    if (channel === LEFT) return shown.wake();
    const listeners = channel === STOPS ? shown.stops : shown.changes;
    for (const runId of payload.split(" ")) for (const listener of listeners.get(runId) ?? []) listener();
  });
  return client;
}

/** Locks this process's number, or a new one. Then announces the process and listens to notifications. */
async function showMember(database: Database, client: Session, shown: Shown): Promise<void> {
  const numbered = "select nextval('targeting_mcp.worker_number')::int as n";
  const number = shown.number ?? (await client.query<{ n: number }>(numbered)).rows[0]?.n ?? 0;
  if (number > 0) {
    await freeNumber(client, number, shown);
    const locked = "select pg_backend_pid() as pid, pg_advisory_lock($1, $2)";
    shown.backend = (await client.query<{ pid: number }>(locked, [LOCKS, number])).rows[0]?.pid;
  }
  shown.number ??= (await isKeptOut(database, number)) ? number : -number;
  // Stores which database server is the primary now, so that a later primary is recognized as new.
  await client.query(`listen ${LEFT}; listen ${CHANGED}; listen ${STOPS}; select targeting_mcp.is_new()`);
  await client.query(
    `insert into targeting_mcp.worker values ($1, $2, clock_timestamp(), $3)
     on conflict (number) do update set seen_at = excluded.seen_at, projects = excluded.projects`,
    [shown.number, `${hostname()}:${process.pid}`, announcedProjects(shown)],
  );
}

/** Frees the lock of a number if a broken connection of this process holds it. Throws if another process does. */
async function freeNumber(client: Session, number: number, shown: Shown): Promise<void> {
  const holder = (await client.query<{ pid: number }>(HOLDER, [number])).rows[0]?.pid;
  if (holder === undefined) return;
  if (holder !== shown.backend) {
    shown.number = undefined;
    throw new Error("another process uses the number of this process");
  }
  await client.query("select pg_terminate_backend($1)", [holder]);
}

async function ended(client: Session, number: number | undefined): Promise<void> {
  const gone = "delete from targeting_mcp.worker where number = $1";
  await inTime(client, () => client.query(gone, [number])).catch(() => undefined);
  await client.end().catch(() => undefined);
}

/** Waits shortly for the last statements. If they are lost, other processes notice the end of this one later. */
async function shortly(clock: Clock, said: Promise<unknown>): Promise<void> {
  const isSaid = new AbortController();
  await Promise.race([said, clock.sleep(CLOSING_TIMEOUT_MS, isSaid.signal).catch(() => undefined)]);
  isSaid.abort();
}

/** Returns whether the lock excludes other connections. False behind a pooler, where clients share connections. */
async function isKeptOut(database: Database, number: number): Promise<boolean> {
  const other = await database.direct();
  try {
    const query = "select pg_try_advisory_lock_shared($1, $2) as free";
    const tried = await inTime(other, () => other.query<{ free: boolean }>(query, [LOCKS, number]));
    return tried.rows[0]?.free !== true;
  } finally {
    hangUp(other);
  }
}

export const TTL = "6 seconds";

export interface LeasesOf {
  readonly database: Database;
  readonly member: Member;
  readonly clock: Clock;
}

export function driverOf(runId: string): string {
  return `run:${runId}`;
}

/**
 * Takes a lease. Undefined while another process holds it. If the call must be answered first, throws a
 * StoreUnavailableError, and `onLate` gets a promise that settles when the unused lease is released.
 */
export async function takeLease(
  of: LeasesOf,
  name: string,
  onLate?: (released: Promise<unknown>) => void,
): Promise<StoredLease | undefined> {
  const token = randomUUID();
  const number = await of.member.number();
  const query = "select * from targeting_mcp.take($1, $2, $3, $4)";
  const take = async (): Promise<StoredLease | undefined> => {
    const [taken] = await of.database.rows<Taken>(query, [name, number, token, TTL]);
    return taken && new StoredLease(of, { name, token }, taken);
  };
  const taking = beyondCall(take);
  try {
    return await inCallTime(taking, of.clock);
  } catch (thrown) {
    // If the call was answered first, nothing uses the lease. So it is released, and other calls can take it at once.
    const released = beyondCall(() => taking.then((late) => late?.release())).catch(() => undefined);
    onLate?.(released);
    throw thrown;
  }
}

type Taken = {
  readonly new_epoch: string;
  readonly taken_over: boolean;
  readonly was_unsettled: boolean;
  readonly asked_before: string;
};

/** A lease in the database. Each entry that is appended to the journal renews it. */
export class StoredLease extends HeldLease {
  readonly token: string;
  readonly #database: Database;
  asked: bigint;

  constructor({ database, clock }: LeasesOf, { name, token }: Pick<StoredLease, "name" | "token">, taken: Taken) {
    const { new_epoch, taken_over, was_unsettled, asked_before } = taken;
    super({ name, epoch: BigInt(new_epoch), isTakenOver: taken_over, isUnsettled: was_unsettled }, clock);
    this.token = token;
    this.#database = database;
    this.asked = BigInt(asked_before);
  }

  protected async renewed(): Promise<boolean> {
    const query = "select * from targeting_mcp.renew($1, $2, $3)";
    const [renewed] = await this.#database.rows<{ asked: string }>(query, [this.name, this.token, TTL]);
    if (renewed !== undefined) this.asked = BigInt(renewed.asked);
    return renewed !== undefined;
  }

  async stillHeld(): Promise<boolean> {
    const query = "select from targeting_mcp.lease where name = $1 and token = $2";
    return (await this.#database.rows(query, [this.name, this.token])).length > 0;
  }

  protected async giveBack(isUnsettled: boolean): Promise<void> {
    const query = "update targeting_mcp.lease set released = true, unsettled = $3 where name = $1 and token = $2";
    await this.#database.rows(query, [this.name, this.token, isUnsettled]);
  }
}

export function storedLease(lease: Lease): StoredLease {
  if (!(lease instanceof StoredLease)) throw new TypeError("the lease belongs to another store");
  return lease;
}
