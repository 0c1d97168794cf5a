import type * as z from "zod";
import type { Failure } from "../answers/request-messages.ts";
import type { ToolContext } from "./context.ts";

/** The group of tools that a setting can switch off; `either` is listed with any of them. */
export type Toolset = "targeting" | "events" | "either";

/** What a tool does to the world, which decides about read-only mode and about the annotations. */
export type Effect =
  /** Changes nothing anywhere. */
  | "reads"
  /** Changes an API, adds only. */
  | "adds"
  /** Changes an API, may overwrite or take away. */
  | "changes"
  /** Changes only what this server or the sandbox keeps. */
  | "local"
  /** Changes the sandbox; an API only where the call says so, and then not in read-only mode. */
  | "tests";

/** What a tool gives back: the same facts as data and as text. */
export interface ToolAnswer {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
  /** With which a person decides on the run in a view. It travels beside the answer, where no model reads it. */
  readonly decision?: { readonly runId: string; readonly secret: string };
  /** The run that a person decides on where the client is to open the page; the call is answered with that request. */
  readonly opens?: string;
}

/**
 * Instead of an answer: a question to the person, to be returned only where `context.canAsk` says that one can be asked.
 * The server asks it, and calls the handler again with the same input and with `context.reply`.
 */
export interface ToolQuestion {
  readonly ask: {
    readonly message: string;
    /** Comes back in `context.reply`, sealed on its way: no client can make or change it. At most some hundred bytes. */
    readonly token: string;
    /**
     * The answer where nobody has decided: the call has to end before ("unanswered"), or the question was closed without
     * a decision ("closed"), and must not be asked in a way that no person has to see. Absent: there is nothing more to
     * it than that.
     */
    readonly undecided?: (why: Undecided) => Promise<UndecidedAnswer>;
    /** Where the question was closed: asks on the page in place of it. Absent: there is none, or `undecided` does. */
    readonly onPage?: (() => Promise<ToolAnswer>) | undefined;
  };
}

/** Why a question is without a decision. */
export type Undecided = "unanswered" | "closed";

/** What a call is answered while nobody has decided. */
export interface UndecidedAnswer {
  readonly answer: ToolAnswer;
  /** Acts on a decision that comes after the answer. Absent: the question ends with the call. */
  readonly later?: (accepted: boolean) => Promise<void>;
}

/** What a handler ends in. */
export type ToolOutcome = ToolAnswer | ToolQuestion;

/** What lists say of a tool, and what decides whether it is listed: all of it can be known without the tool's code. */
export interface ToolFacts {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly toolset: Toolset;
  readonly effect: Effect;
  readonly idempotent: boolean;
  readonly needsSandbox?: true;
}

/** A tool, as data: what the agent reads about it, what it takes, and what it does. */
export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject> extends ToolFacts {
  /** Makes the strict schema of the arguments; made at the first use, since zod schemas cost time at start-up. */
  readonly input: () => Input;
  /** Makes the advertised schema of the structured answer. It must allow `{environment, error}`, what errors become. */
  readonly output: () => z.ZodObject;
  /** Throws a ToolError, or lets an ApiError or an UnsupportedEventError through: one place of the server answers them. */
  readonly handler: (input: z.output<Input>, context: ToolContext) => Promise<ToolOutcome>;
}

/**
 * A call that cannot be carried out as asked, in our own words: what is wrong, and what to do instead. For what no
 * schema can check, such as a ULID, a cursor or a name.
 */
export class ToolError extends Error {
  readonly remedy: string | undefined;
  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** Gives what `make` made at the first use, each time. A rejected promise is kept, too. */
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
