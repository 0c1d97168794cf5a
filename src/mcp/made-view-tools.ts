import type { MadeTool } from "./made-tools.ts";

/** The tools that only views call (MCP Apps), not models. The build fills this list; otherwise it is empty. */
export const MADE_VIEW_TOOLS: readonly MadeTool[] = [];
