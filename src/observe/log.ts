import { AsyncLocalStorage } from "node:async_hooks";

/** The levels, from the most to the fewest lines. Each includes the levels after it. */
const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

/** Fields beside a message. An Error becomes its name, message and stack. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A log of JSON lines. */
export interface Log
  extends Readonly<Record<Exclude<LogLevel, "silent">, (message: string, fields?: LogFields) => void>> {
  /** Returns the same log, with fields added to each of its lines. */
  with(fields: LogFields): Log;
  /** Runs some work. A log that follows work adds the fields to every line that this work writes, in any module. */
  during<Result>(fields: LogFields, work: () => Result): Result;
  /** Returns the fields of the current work. They are empty if the log does not follow work. */
  facts(): LogFields;
}

/** How a log is set up. */
interface LogOptions {
  readonly level: LogLevel;
  readonly write: (line: string) => void;
  readonly redact: (line: string) => string;
  readonly now: () => number;
  /** The storage by which the log follows work; undefined: it does not. */
  readonly work: FollowedWork | undefined;
}

/** Passes the fields of some work on to its asynchronous calls. */
export type FollowedWork = AsyncLocalStorage<LogFields>;

/**
 * Creates the storage with which logs follow work: one for a process, because before Node 24 each slows down every
 * promise.
 */
export function followWork(): FollowedWork {
  return new AsyncLocalStorage();
}

/** Makes a log. `redact` removes secrets from each line before `write` takes it. */
export function createLog(options: LogOptions, always: LogFields = {}): Log {
  const { work } = options;
  const least = LOG_LEVELS.indexOf(options.level);
  const at =
    (level: LogLevel) =>
    (message: string, fields: LogFields = {}) => {
      if (LOG_LEVELS.indexOf(level) < least) return;
      const line = {
        time: new Date(options.now()).toISOString(),
        level,
        message,
        ...work?.getStore(),
        ...always,
        ...fields,
      };
      options.write(`${options.redact(JSON.stringify(line, (_name, value: unknown) => loggable(value)))}\n`);
    };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (fields) => createLog(options, { ...always, ...fields }),
    during: (fields, goOn) => (work === undefined ? goOn() : work.run({ ...work.getStore(), ...fields }, goOn)),
    facts: () => work?.getStore() ?? {},
  };
}

function loggable(value: unknown): unknown {
  if (value instanceof Error)
    return { name: value.name, message: value.message, stack: value.stack, cause: value.cause };
  return typeof value === "bigint" ? String(value) : value;
}
