import { AsyncLocalStorage } from "node:async_hooks";

/** The log levels. A log writes lines of its own level and of all later levels in this list. */
const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

/** More fields of a log line. Of an Error, its name, message, stack and cause are written. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Log
  extends Readonly<Record<Exclude<LogLevel, "silent">, (message: string, fields?: LogFields) => void>> {
  with(fields: LogFields): Log;
  /** Adds these fields to each line that is logged during `work`, if the log has `LogOptions.work`. */
  during<Result>(fields: LogFields, work: () => Result): Result;
  /** Returns the fields that `during` has added for the present work. Empty without `LogOptions.work`. */
  facts(): LogFields;
}

interface LogOptions {
  readonly level: LogLevel;
  readonly write: (line: string) => void;
  readonly redact: (line: string) => string;
  readonly now: () => number;
  readonly work: FollowedWork | undefined;
}

export type FollowedWork = AsyncLocalStorage<LogFields>;

/** Creates storage for log fields of the present work. Once per process: before Node 24, each slows every promise. */
export function followWork(): FollowedWork {
  return new AsyncLocalStorage();
}

/** Creates a log. `redact` removes secrets from each line before `write` gets it. */
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
