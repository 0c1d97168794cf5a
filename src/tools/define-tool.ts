import type * as z from "zod";
import type { Failure } from "../answers/request-messages.ts";
import type { ToolContext } from "./context.ts";

/** The group of tools that a setting can switch off. Tools of `either` are listed with any of them. */
export type Toolset = "targeting" | "events" | "either";

/** The effect of a tool. It determines the annotations, and whether read-only mode lists the tool. */
export type Effect =
  /** Changes nothing anywhere. */
  | "reads"
  /** Changes an API, and only adds. */
  | "adds"
  /** Changes an API, and may overwrite or delete. */
  | "changes"
  /** Changes only data that this server or the sandbox stores. */
  | "local"
  /** Changes the sandbox. Changes an API only if the call requests that, and never in read-only mode. */
  | "tests";

/** The answer of a tool: the same facts as data and as text. */
export interface ToolAnswer {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
  /** What a person needs to decide on the run in a view. It is sent outside the content, where no model reads it. */
  readonly decision?: { readonly runId: string; readonly secret: string };
  /** The run to decide on, if the client is to open the page. The call is answered with that request. */
  readonly opens?: string;
}

/**
 * A question to the person instead of an answer. May be returned only if `context.canAsk` returns true. The server asks
 * the question, and calls the handler again with the same input and with `context.reply`.
 */
export interface ToolQuestion {
  readonly ask: {
    readonly message: string;
    /**
     * Returned in `context.reply`. It is signed, so that no client can make or change it. At most a few hundred bytes.
     */
    readonly token: string;
    /**
     * Creates the answer if nobody has decided. Either the call must end first ("unanswered"), or the question was
     * closed without a decision ("closed"). A closed question must not be asked again in a way that may reach no
     * person. If absent, there is a general answer.
     */
    readonly undecided?: (why: Undecided) => Promise<UndecidedAnswer>;
    /** Asks on the page after the question was closed. Absent if there is no page, or if `undecided` does that. */
    readonly onPage?: (() => Promise<ToolAnswer>) | undefined;
  };
}

/** Why a question has no decision. */
export type Undecided = "unanswered" | "closed";

/** The answer of a call while nobody has decided. */
export interface UndecidedAnswer {
  readonly answer: ToolAnswer;
  /** Acts on a decision that comes after the answer. If absent, the question ends with the call. */
  readonly later?: (accepted: boolean) => Promise<void>;
}

/** The result of a handler. */
export type ToolOutcome = ToolAnswer | ToolQuestion;

/**
 * The facts about a tool that lists show and that determine whether it is listed. They are known without loading the
 * tool.
 */
export interface ToolFacts {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly toolset: Toolset;
  readonly effect: Effect;
  readonly idempotent: boolean;
  readonly needsSandbox?: true;
}

/** A tool as data: its description for the agent, its arguments, and its handler. */
export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject> extends ToolFacts {
  /** Makes the strict schema of the arguments. It is made at the first use, because zod schemas slow down start-up. */
  readonly input: () => Input;
  /** Makes the advertised schema of the structured answer. It must allow `{environment, error}`, the form of errors. */
  readonly output: () => z.ZodObject;
  /**
   * Executes a call. May throw a ToolError, an ApiError or an UnsupportedEventError; the server makes answers of them
   * in one place.
   */
  readonly handler: (input: z.output<Input>, context: ToolContext) => Promise<ToolOutcome>;
}

/**
 * A call that cannot be executed as requested: what is wrong, in our own words, and what to do instead. For errors that
 * no schema can detect, such as an invalid ULID, cursor or name.
 */
export class ToolError extends Error {
  readonly remedy: string | undefined;
  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** Returns a function that calls `make` once and returns its result each time. A rejected promise is stored, too. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** A failure, and a code if programs need to recognise it. */
export interface SummarizedFailure extends Failure {
  readonly errorCode?: "STORE_UNAVAILABLE" | "RUN_DAMAGED";
  /** The run whose outcome is unknown because its stored data is damaged. */
  readonly runId?: string;
}

/** Converts a failure to the answer of a tool. */
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
