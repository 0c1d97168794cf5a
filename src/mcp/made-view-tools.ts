import type { MadeTool } from "./made-tools.ts";

/** The tools that only views call, as MADE_TOOLS has the others. Unbuilt code finds it empty and loads the tools. */
export const MADE_VIEW_TOOLS: readonly MadeTool[] = [];
