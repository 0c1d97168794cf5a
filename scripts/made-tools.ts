import { catalogue } from "../src/mcp/tool-list.ts";
import { TOOLS, type Tool, VIEW_TOOLS } from "../src/tools/registry.ts";

function made(tools: readonly Tool[]) {
  return catalogue(tools).map(({ tool, inputSchema, outputSchema }) => {
    const { name, title, description, toolset, effect, idempotent, needsSandbox } = tool;
    const facts = { name, title, description, toolset, effect, idempotent, ...(needsSandbox && { needsSandbox }) };
    return { ...facts, inputSchema: inputSchema(), outputSchema: outputSchema() };
  });
}

/** Every tool as it is listed, for the build. */
export const MADE_TOOLS = made(TOOLS);
export const MADE_VIEW_TOOLS = made(VIEW_TOOLS);
