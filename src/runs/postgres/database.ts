import pg from "pg";
import { type Clock, callUntil, systemClock } from "../../platform/clock.ts";
import { RunStoreError, StoreUnavailableError } from "../store.ts";

/** How long a statement is tried again while the database cannot be reached, in milliseconds. */
const PATIENCE_MS = 5000;
/** The pause before the next try, in milliseconds. */
export const AGAIN_MS = 250;
/** A connection over which no answer comes within this time counts as cut. */
const ANSWER_MS = 5000;
/** The last try of a statement gets at least this time for its answer: a call is answered within 10 seconds. */
const LAST_ANSWER_MS = 1000;
const CONNECT_MS = 3000;

/**
 * States in which the server ends or refuses connections, lacks room, or gives a statement up, although nothing is wrong
 * with it.
 */
const AWAY_STATES = /^(08...|53[0-4]..|57014|57P0[1-5]|55P03|40001|40P01|25006)$/;

const STORE_REMEDY = "It goes on by itself once the database of TARGETING_MCP_STORE answers; try again then.";

/** Has a statement made once, also where the database is away. */
export const ONCE = AbortSignal.abort();

/** Where the database is, and how much of it a process may use. */
export interface DatabaseOptions {
  readonly url: string;
  /** A direct address of the same database, where the first one leads through a pooler. */
  readonly listenUrl?: string | undefined;
  /** Most connections of this process; one of them is for the sign of life. */
  readonly connections: number;
}

/** Runs statements, each by itself: what belongs together is one statement or one function of the database. */
export interface Database {
  /**
   * The rows of a statement. It is tried again while the database is away, so it has to be one that may be made twice.
   * Throws a StoreUnavailableError where the database stays away, or `until` is aborted; without `until` after some
   * seconds, and at the end of the wait of the call that it is made for.
   */
  rows<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[], until?: AbortSignal): Promise<Row[]>;
  /** A connection that is used for one purpose only; the caller closes it. */
  direct(): Promise<pg.Client>;
  close(): Promise<void>;
}

/** Opens a database; nothing is connected before the first statement. */
export function openDatabase({ url, listenUrl, connections }: DatabaseOptions, clock: Clock = systemClock): Database {
  const common = { application_name: "targeting-mcp", connectionTimeoutMillis: CONNECT_MS, keepAlive: true };
  const pool = new pg.Pool({
    ...common,
    ...{
      connectionString: url,
      max: Math.max(1, connections - 1),
      idleTimeoutMillis: 30_000,
    },
    onConnect: commitsDurably,
    allowExitOnIdle: true,
  });
  // A connection that breaks while nobody uses it is replaced by the next statement.
  pool.on("error", () => undefined);
  const closing = new AbortController();
  return {
    async rows<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = [], until?: AbortSignal) {
      const begin = clock.monotonic();
      const isOver = () => closing.signal.aborted || (until?.aborted ?? clock.monotonic() - begin > PATIENCE_MS);
      const made = untilThere(clock, isOver, async () => {
        const left = PATIENCE_MS + LAST_ANSWER_MS - (clock.monotonic() - begin);
        const answerMs = until === undefined ? Math.max(LAST_ANSWER_MS, Math.min(ANSWER_MS, left)) : ANSWER_MS;
        const statement = { text, values: [...values], query_timeout: answerMs };
        return (await pool.query<Row>(statement)).rows;
      });
      return until === undefined ? inCallTime(made, clock) : unlessAborted(made, until);
    },
    async direct() {
      const client = new pg.Client({ ...common, connectionString: listenUrl ?? url });
      client.on("error", () => undefined);
      await client.connect();
      return client;
    },
    async close() {
      if (closing.signal.aborted) return;
      closing.abort();
      await pool.end();
    },
  };
}

/** A commit is on the disk when it was acknowledged, whatever the role or the database says. */
async function commitsDurably(client: pg.ClientBase): Promise<void> {
  const text =
    "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'";
  // Without a bound, a connection over which nothing comes would be waited for without end.
  const statement = { text, query_timeout: ANSWER_MS };
  await client.query(statement);
}

/**
 * What some work gives, unless the call that waits for it has to be answered before: then throws a
 * StoreUnavailableError, while the work goes on by itself.
 */
export async function inCallTime<T>(work: Promise<T>, clock: Clock): Promise<T> {
  const until = callUntil();
  if (until === undefined) return work;
  const done = new AbortController();
  const late = clock
    .sleep(Math.max(0, until - clock.monotonic()), done.signal)
    .then(() => Promise.reject(unavailable(new Error("it did not answer while the call waited"))));
  try {
    return await Promise.race([work, late]);
  } finally {
    done.abort();
    for (const one of [work, late]) one.catch(() => undefined);
  }
}

/** What some work gives, unless the signal is aborted meanwhile; where it is already, the work decides. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return work;
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(unavailable(signal.reason));
    signal.addEventListener("abort", leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

/**
 * Does some work again and again while the database is away. Throws a StoreUnavailableError where it is so when `isOver`,
 * and a RunStoreError where it refuses the work.
 */
export async function untilThere<T>(
  clock: Clock,
  isOver: () => boolean,
  work: () => Promise<T>,
  againMs = AGAIN_MS,
): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      if (thrown instanceof RunStoreError) throw thrown;
      if (!isAway(thrown)) throw refused(thrown);
      if (isOver()) throw unavailable(thrown);
      await clock.sleep(againMs);
    }
  }
}

function isAway(thrown: unknown): boolean {
  return !(thrown instanceof pg.DatabaseError) || AWAY_STATES.test(thrown.code ?? "");
}

function unavailable(cause: unknown): StoreUnavailableError {
  return new StoreUnavailableError(
    `the store of TARGETING_MCP_STORE cannot be reached (${whyOf(cause)}); nothing was sent for this call`,
    STORE_REMEDY,
    { cause },
  );
}

function refused(cause: unknown): RunStoreError {
  const why = whyOf(cause);
  const code = cause instanceof pg.DatabaseError ? cause.code : undefined;
  if (code === "42P01" || code === "3F000") {
    return new StoreUnavailableError(
      `the store of TARGETING_MCP_STORE has no tables of this version (${why}); nothing was sent for this call`,
      "Run targeting-mcp migrate.",
      { cause },
    );
  }
  const remedy = code === "42501" ? RIGHTS_REMEDY : code !== undefined && code in NAMING ? ENTRY_REMEDY : STORE_REMEDY;
  return new RunStoreError(`the store of TARGETING_MCP_STORE refused a statement (${why})`, remedy, { cause });
}

/** What the role must be able to do. */
export const RIGHTS_REMEDY = "Let its role create the schema targeting_mcp, or own it and what is in it.";
const ENTRY_REMEDY = "Check the user, the password and the name of the database in TARGETING_MCP_STORE.";

/** States whose messages name the user; such messages may also be in any language. */
const NAMING: Readonly<Record<string, string>> = {
  "28000": "it does not let this user in",
  "28P01": "it does not accept the password",
  "3D000": "there is no such database",
  "53300": "it has no room for another connection",
};

function whyOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const code = "code" in cause ? String(cause.code) : "";
  const why = NAMING[code] ?? cause.message;
  // Where a name has several addresses, the error of Node has no message.
  return why === "" ? code : why;
}
