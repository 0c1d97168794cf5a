import type * as z from "zod";
import type { Failure } from "../answers/request-messages.ts";
import type { ToolContext } from "./context.ts";

/** A tool of `either` is listed if one of the two others is on. */
export type Toolset = "targeting" | "events" | "either";

/** Decides the annotations of a tool, and whether it is listed in read-only mode. */
export type Effect =
  | "reads"
  /** Only adds data. */
  | "adds"
  /** May overwrite or delete data. */
  | "changes"
  /** Changes only data of this server or of the sandbox. */
  | "local"
  /** Changes an API only if the call requests that, and not in read-only mode. */
  | "tests";

export interface ToolAnswer {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
  /** What the view in a host needs to send a person's decision. It is in `_meta`, which models do not read. */
  readonly decision?: { readonly runId: string; readonly secret: string };
  /** The waiting run for which the client is asked to open the page. */
  readonly opens?: string;
}

/**
 * A tool may return this instead of an answer if `context.canAsk()` is true. After the reply, the tool is called again
 * with `context.reply`.
 */
export interface ToolQuestion {
  readonly ask: {
    readonly message: string;
    /** Returned in `context.reply`. The server signs it. At most a few hundred bytes. */
    readonly token: string;
    /** Returns the answer if nobody decided. Perhaps no person saw a "closed" question, so it is not asked again. */
    readonly undecided?: (why: Undecided) => Promise<UndecidedAnswer>;
    /** Asks on the page after the question was closed. Absent if `undecided` does this. */
    readonly onPage?: (() => Promise<ToolAnswer>) | undefined;
  };
}

/** Why nobody decided: the call had to be answered first, or the question was closed. */
export type Undecided = "unanswered" | "closed";

export interface UndecidedAnswer {
  readonly answer: ToolAnswer;
  /** Carries out a decision that is made after the answer. Absent: the question ends with the call. */
  readonly later?: (accepted: boolean) => Promise<void>;
}

export type ToolOutcome = ToolAnswer | ToolQuestion;

/** What is known about a tool without loading it. */
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
  /** Returns the strict schema of the arguments. Created at the first call, which makes the start faster. */
  readonly input: () => Input;
  /** Returns the advertised schema of the structured answer. It must also allow errors: `{environment, error}`. */
  readonly output: () => z.ZodObject;
  /** May throw a ToolError, an ApiError or an UnsupportedEventError, which the server turns into answers. */
  readonly handler: (input: z.output<Input>, context: ToolContext) => Promise<ToolOutcome>;
}

/** A call that cannot be executed as requested, for reasons that no schema can detect. `remedy` is the next step. */
export class ToolError extends Error {
  readonly remedy: string | undefined;
  constructor(message: string, remedy?: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** Returns a function that calls `make` once. A rejected promise is kept too. */
export function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}

/** A failure of a call. It has a code if programs must recognise it. */
export interface SummarizedFailure extends Failure {
  readonly errorCode?: "STORE_UNAVAILABLE" | "RUN_DAMAGED";
  readonly runId?: string;
}

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
