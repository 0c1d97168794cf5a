import type { JsonObject } from "../platform/json.ts";
import type { ToolFacts } from "../tools/define-tool.ts";

export interface MadeTool extends ToolFacts {
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject;
}

/**
 * The tools in the order in which they are listed. Creating them is slow, so the build fills this list. Empty without a
 * build.
 */
export const MADE_TOOLS: readonly MadeTool[] = [];
