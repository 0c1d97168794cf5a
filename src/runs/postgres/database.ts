import pg from "pg";
import { type Clock, presentCall, systemClock } from "../../platform/clock.ts";
import { RunStoreError, StoreUnavailableError } from "../store.ts";

const PATIENCE_MS = 5000;
export const AGAIN_MS = 250;
/** A connection without an answer for this many milliseconds counts as broken. */
const ANSWER_MS = 5000;
/** The minimum wait of a statement's last attempt, in ms. A call must be answered within 10 seconds. */
const LAST_ANSWER_MS = 1000;
const CONNECT_MS = 3000;

/** SQLSTATE codes after which a statement is repeated: no connection or resources, cancelled, a lock, or read-only. */
const AWAY_STATES = /^(08...|53[0-4]..|57014|57P0[1-5]|55P03|40001|40P01|25006)$/;

const STORE_REMEDY = "Try again when the database of TARGETING_MCP_STORE answers. Runs then continue automatically.";

/** An aborted signal. Passed as `until`, it makes a statement run only once, without retries. */
export const ONCE = AbortSignal.abort();

export interface DatabaseOptions {
  readonly url: string;
  /** The direct address of the database, if `url` leads to a pooler. */
  readonly listenUrl?: string | undefined;
  /** The maximum number of lasting connections. One shows that this process is alive and receives notifications. */
  readonly connections: number;
}

export type Database = ReturnType<typeof openDatabase>;

export function openDatabase({ url, listenUrl, connections }: DatabaseOptions, clock: Clock = systemClock) {
  const common = { application_name: "targeting-mcp", connectionTimeoutMillis: CONNECT_MS, keepAlive: true };
  const pool = new pg.Pool({
    ...common,
    connectionString: url,
    max: Math.max(1, connections - 1),
    idleTimeoutMillis: 30_000,
    onConnect: commitsDurably,
    allowExitOnIdle: true,
  });
  // A broken idle connection needs no handling, because the next statement opens another one.
  pool.on("error", () => undefined);
  const closing = new AbortController();
  return {
    /**
     * Executes a statement and returns its rows. Retries while the database cannot be reached, so the statement must be
     * safe to repeat. Throws a StoreUnavailableError once `until` is aborted. Without `until`, throws it after some
     * seconds or when the call must be answered.
     */
    async rows<Row extends pg.QueryResultRow>(text: string, values: readonly unknown[] = [], until?: AbortSignal) {
      const begin = clock.monotonic();
      const isOver = () => closing.signal.aborted || (until?.aborted ?? clock.monotonic() - begin > PATIENCE_MS);
      const made = retryWhileAway(clock, isOver, async () => {
        const left = PATIENCE_MS + LAST_ANSWER_MS - (clock.monotonic() - begin);
        const answerMs = until === undefined ? Math.max(LAST_ANSWER_MS, Math.min(ANSWER_MS, left)) : ANSWER_MS;
        const statement = { text, values: [...values], query_timeout: answerMs };
        return (await pool.query<Row>(statement)).rows;
      });
      return until === undefined ? inCallTime(made, clock) : rejectOnAbort(made, until);
    },
    /** Opens a connection whose statements fail if they are not answered within `answerMs`. */
    async direct(answerMs = ANSWER_MS): Promise<pg.Client> {
      const client = new pg.Client({ ...common, connectionString: listenUrl ?? url, query_timeout: answerMs });
      client.on("error", () => undefined);
      await client.connect();
      return client;
    },
    async close(): Promise<void> {
      if (closing.signal.aborted) return;
      closing.abort();
      await pool.end();
    },
  };
}

/** Ends a connection, without waiting: over a network that drops everything, the end may not come for minutes. */
export function hangUp(client: Pick<pg.Client, "end">): void {
  void client.end().catch(() => undefined);
}

async function commitsDurably(client: pg.ClientBase): Promise<void> {
  const text =
    "select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'";
  // Without the timeout, a dead connection would block this statement forever.
  const statement = { text, query_timeout: ANSWER_MS };
  await client.query(statement);
}

/** Returns when the present call must be answered (monotonic clock). Undefined outside a call, or after its answer. */
export function callUntil(): number | undefined {
  return presentCall()?.until;
}

/** Calls `then` at the end of the present call, with the call's error, if any. `then` returns the error to report. */
export function atEndOfCall(then: (thrown: unknown) => unknown): void {
  const call = presentCall();
  if (call === undefined) return;
  const { end: before = (thrown: unknown) => thrown } = call;
  call.end = (thrown) => then(before(thrown));
}

/** Waits for `work`. Throws a StoreUnavailableError if the call must be answered first; `work` continues. */
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

/** Waits for `work`. Throws a StoreUnavailableError when the signal is aborted, unless it was aborted before. */
function rejectOnAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) return work;
  return new Promise((resolve, reject) => {
    const leave = (): void => reject(unavailable(signal.reason));
    signal.addEventListener("abort", leave, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", leave));
  });
}

/**
 * Repeats `work` while the database cannot be reached. Throws a StoreUnavailableError once `isOver` returns true.
 * Throws other errors as a RunStoreError.
 */
export async function retryWhileAway<T>(clock: Clock, isOver: () => boolean, work: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await work();
    } catch (thrown) {
      if (thrown instanceof RunStoreError) throw thrown;
      if (!isAway(thrown)) throw refused(thrown);
      if (isOver()) throw unavailable(thrown);
      await clock.sleep(AGAIN_MS);
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
  const remedy =
    code === "42501" ? RIGHTS_REMEDY : code !== undefined && code in STATE_WORDS ? ENTRY_REMEDY : STORE_REMEDY;
  return new RunStoreError(`the store of TARGETING_MCP_STORE refused a statement (${why})`, remedy, { cause });
}

export const RIGHTS_REMEDY =
  "Allow the role of TARGETING_MCP_STORE to create the schema targeting_mcp, or make it the owner of that schema and its tables.";
const ENTRY_REMEDY = "Check the user, the password and the name of the database in TARGETING_MCP_STORE.";

const STATE_WORDS: Readonly<Record<string, string>> = {
  "28000": "it does not let this user in",
  "28P01": "it does not accept the password",
  "3D000": "there is no such database",
  "53300": "it has no room for another connection",
};

function whyOf(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  const code = "code" in cause ? String(cause.code) : "";
  const why = STATE_WORDS[code] ?? cause.message;
  // If all addresses of a host fail, Node's error has a code but no message.
  return why === "" ? code : why;
}

/** SQL condition: the `callerName` of the column `caller` is `$1`. */
export const IS_NAMED = "(caller = $1 or caller like 'keys:%' and regexp_replace(caller, '^keys:\\w+ ', '') = $1)";
