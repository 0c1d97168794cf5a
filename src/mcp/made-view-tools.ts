import type { MadeTool } from "./made-tools.ts";

/** The tools that only views call. Filled by the build; empty without a build. */
export const MADE_VIEW_TOOLS: readonly MadeTool[] = [];
