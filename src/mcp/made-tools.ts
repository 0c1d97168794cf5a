import type { ToolFacts } from "../tools/define-tool.ts";
import type { JsonSchema } from "./json-schema.ts";

export interface MadeTool extends ToolFacts {
  readonly inputSchema: JsonSchema;
  readonly outputSchema: JsonSchema;
}

/** The tools in the listed order. Filled by the build, because creating tools is slow; empty without a build. */
export const MADE_TOOLS: readonly MadeTool[] = [];
