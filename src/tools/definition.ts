import type * as z from "zod";
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
  | "local";

/** What a tool gives back: the same facts as data and as text. */
export interface ToolAnswer {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
}

/** A tool, as data: what the agent reads about it, what it takes, and what it does. */
export interface ToolDefinition<Input extends z.ZodObject = z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly toolset: Toolset;
  readonly effect: Effect;
  readonly idempotent: boolean;
  /** Makes the strict schema of the arguments; made at the first call, since zod schemas cost time at start-up. */
  readonly input: () => Input;
  /** Which advertised output schema the answer follows. */
  readonly output: () => z.ZodObject;
  readonly handler: (input: z.output<Input>, context: ToolContext) => Promise<ToolAnswer>;
}
