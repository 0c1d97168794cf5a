import { catalogue } from "../src/mcp/server-parts.ts";
import type { Tool } from "../src/tools/define-tool.ts";
import { everyTool, everyViewTool } from "../src/tools/registry.ts";

function made(tools: readonly Tool[]) {
  return catalogue(tools).map(({ tool, inputSchema, outputSchema }) => {
    const { name, title, description, toolset, effect, idempotent, needsSandbox } = tool;
    const facts = { name, title, description, toolset, effect, idempotent, ...(needsSandbox && { needsSandbox }) };
    return { ...facts, inputSchema: inputSchema(), outputSchema: outputSchema() };
  });
}

/** All tools in the form in which clients get them. The build inserts them into the bundle. */
export const MADE_TOOLS = made(await everyTool());
export const MADE_VIEW_TOOLS = made(await everyViewTool());
