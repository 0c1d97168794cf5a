import { AsyncLocalStorage } from "node:async_hooks";

/** How much is logged; each level includes those behind it. */
const LOG_LEVELS = ["debug", "info", "warn", "error", "silent"] as const;
type LogLevel = (typeof LOG_LEVELS)[number];

/** Facts beside a message. An Error becomes its name, message and stack. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A log of JSON lines. */
export interface Log
  extends Readonly<Record<Exclude<LogLevel, "silent">, (message: string, fields?: LogFields) => void>> {
  /** The same log with facts that stand in each of its lines. */
  with(fields: LogFields): Log;
  /** Does some work; where the log follows it, facts stand in every line of it, whichever room writes it and however late. */
  during<Result>(fields: LogFields, work: () => Result): Result;
  /** The facts of the work that goes on; none where the log does not follow it. */
  facts(): LogFields;
}

/** How a log is set up. */
interface LogOptions {
  readonly level: LogLevel;
  readonly write: (line: string) => void;
  readonly redact: (line: string) => string;
  readonly now: () => number;
  /** What work goes on, for logs that follow it; undefined: this one does not. */
  readonly work: FollowedWork | undefined;
}

/** The facts of the work that goes on, wherever it has got to. */
export type FollowedWork = AsyncLocalStorage<LogFields>;

/**
 * Begins to follow work. Made once for a process, and shared by its logs: before Node 24 each such storage makes every
 * promise of the process slower for as long as the process lives.
 */
export function followWork(): FollowedWork {
  return new AsyncLocalStorage();
}

/** Makes a log. `write` takes whole lines; `redact` goes over each line before it is written. */
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
