import type * as z from "zod";
import type { Failure } from "../answers/request-messages.ts";
import type { ToolContext } from "./context.ts";

/** The group of tools that a setting can switch off. A tool of `either` is listed if one of the two others is on. */
export type Toolset = "targeting" | "events" | "either";

/** What a tool changes. It decides the annotations of the tool, and whether it is listed in read-only mode. */
export type Effect =
  | "reads"
  /** Changes an API, but only adds data. */
  | "adds"
  /** Changes an API, and may overwrite or delete data. */
  | "changes"
  /** Changes only data of this server or of the sandbox. */
  | "local"
  /** Changes the sandbox. Changes an API only if the call requests that, and not in read-only mode. */
  | "tests";

/** The answer of a tool, as data and as text with the same facts. */
export interface ToolAnswer {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
  /** What a view needs so that a person can decide on the run. It is sent in `_meta`, which models do not read. */
  readonly decision?: { readonly runId: string; readonly secret: string };
  /** The run that waits for a decision, if the answer shall ask the client to open the page. */
  readonly opens?: string;
}

/**
 * A question to the person, returned instead of an answer. Allowed only if `context.canAsk()` is true. The server asks
 * it, and calls the tool again with the same arguments and `context.reply`.
 */
export interface ToolQuestion {
  readonly ask: {
    readonly message: string;
    /**
     * Returned in `context.reply`. The server signs it, so that no client can create or change it. At most a few
     * hundred bytes.
     */
    readonly token: string;
    /**
     * Returns the answer if nobody decided, because the call must be answered ("unanswered") or the question was closed
     * without a decision ("closed"). Perhaps no person saw a closed question, so it must not be asked again in the same
     * way. Absent: a general answer is given.
     */
    readonly undecided?: (why: Undecided) => Promise<UndecidedAnswer>;
    /** Asks on the page after the question was closed. Absent if there is no page, or if `undecided` does this. */
    readonly onPage?: (() => Promise<ToolAnswer>) | undefined;
  };
}

/** Why there is no decision: the call had to be answered first, or the question was closed. */
export type Undecided = "unanswered" | "closed";

/** The answer to a call if nobody has decided. */
export interface UndecidedAnswer {
  readonly answer: ToolAnswer;
  /** Carries out a decision that is made after the answer. Absent: the question ends with the call. */
  readonly later?: (accepted: boolean) => Promise<void>;
}

export type ToolOutcome = ToolAnswer | ToolQuestion;

/** What is known about a tool without loading it: what lists show, and what decides whether it is listed. */
export interface ToolFacts {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly toolset: Toolset;
  readonly effect: Effect;
  readonly idempotent: boolean;
  readonly needsSandbox?: true;
}

export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject> extends ToolFacts {
  /**
   * Returns the strict schema of the arguments. It is created at the first call, because creating zod schemas makes the
   * start slower.
   */
  readonly input: () => Input;
  /** Returns the advertised schema of the structured answer. It must also allow errors: `{environment, error}`. */
  readonly output: () => z.ZodObject;
  /**
   * Executes a call. May throw a ToolError, an ApiError or an UnsupportedEventError, which the server turns into
   * answers.
   */
  readonly handler: (input: z.output<Input>, context: ToolContext) => Promise<ToolOutcome>;
}

/**
 * A call that cannot be executed as requested, for reasons that no schema can detect, such as an invalid ULID, cursor
 * or name. `message` is the problem, `remedy` the next step.
 */
export class ToolError extends Error {
  readonly remedy: string | undefined;
  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** Returns a function that calls `make` once and returns that result each time, even if it is a rejected promise. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** A failure. It has a code if programs must recognise it. */
export interface SummarizedFailure extends Failure {
  readonly errorCode?: "STORE_UNAVAILABLE" | "RUN_DAMAGED";
  /** The run whose result is unknown because its stored data is damaged. */
  readonly runId?: string;
}

/** Returns the answer for a call that failed. */
export function failureAnswer(
  { message, remedy, errorCode, runId }: SummarizedFailure,
  environment: string,
): ToolAnswer {
  const error = { ...(errorCode !== undefined && { errorCode }), message, ...(remedy !== undefined && { remedy }) };
  return {
    structured: { environment, ...(runId !== undefined && { runId, status: "unknown" }), error },
    text: remedy === undefined ? message : `${message}\n${remedy}`,
    isError: true,
  };
}
