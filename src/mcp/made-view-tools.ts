import type { MadeTool } from "./made-tools.ts";

/** The tools that only views call, in the form of MADE_TOOLS. Without a build it is empty, and the tools are loaded. */
export const MADE_VIEW_TOOLS: readonly MadeTool[] = [];
