import type { JsonObject } from "../platform/json.ts";
import type { ToolFacts } from "../tools/define-tool.ts";

export interface MadeTool extends ToolFacts {
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject;
}

/** The tools in the order of their list, made by the build because that is slow. Empty without a build. */
export const MADE_TOOLS: readonly MadeTool[] = [];
