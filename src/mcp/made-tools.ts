import type { JsonObject } from "../platform/json.ts";
import type { ToolFacts } from "../tools/define-tool.ts";

export interface MadeTool extends ToolFacts {
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject;
}

/** The tools in listing order. The build fills this list, because creating tools is slow; otherwise it is empty. */
export const MADE_TOOLS: readonly MadeTool[] = [];
