import type { ToolFacts } from "../tools/define-tool.ts";
import type { JsonSchema } from "./json-schema.ts";

/** A tool as it is listed. */
export interface MadeTool extends ToolFacts {
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

/**
 * All tools as they are listed, in their order. The build fills this list, since loading the code of the tools and
 * making their schemas takes a fifth of the start. Unbuilt code finds it empty and loads the tools.
 */
export const MADE_TOOLS: readonly MadeTool[] = [];
