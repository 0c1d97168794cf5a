import type { MadeTool } from "./made-tools.ts";

/**
 * The tools that only views of clients call (MCP Apps), not models. The build fills this list. Empty without a build.
 */
export const MADE_VIEW_TOOLS: readonly MadeTool[] = [];
