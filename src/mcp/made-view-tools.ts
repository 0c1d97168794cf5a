import type { MadeTool } from "./made-tools.ts";

/**
 * The tools that only views call, in the form of MADE_TOOLS. If it is empty, there is no build, and the tools are
 * created at the start.
 */
export const MADE_VIEW_TOOLS: readonly MadeTool[] = [];
