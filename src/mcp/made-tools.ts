import type { ToolFacts } from "../tools/define-tool.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A tool as it is listed, with its JSON Schemas. */
export interface MadeTool extends ToolFacts {
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

/**
 * All tools in their listed order. The build fills this list, because creating the tools takes a fifth of the start-up
 * time. If it is empty, there is no build, and the tools are created at the start.
 */
export const MADE_TOOLS: readonly MadeTool[] = [];
