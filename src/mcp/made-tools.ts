import type { ToolFacts } from "../tools/define-tool.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A tool as it is listed. */
export interface MadeTool extends ToolFacts {
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

/**
 * All tools in their listed order. The build fills this list, because creating the tools takes a fifth of the start-up
 * time. Without a build it is empty, and the tools are loaded.
 */
export const MADE_TOOLS: readonly MadeTool[] = [];
