import { catalogue } from "../src/server/listing.ts";
import { TOOLS } from "../src/tools/registry.ts";

/** Every tool as it is listed, for the build. */
export const MADE_TOOLS = catalogue(TOOLS).map(({ tool, inputSchema, outputSchema }) => {
  const { name, title, description, toolset, effect, idempotent, needsSandbox } = tool;
  const facts = { name, title, description, toolset, effect, idempotent, ...(needsSandbox && { needsSandbox }) };
  return { ...facts, inputSchema: inputSchema(), outputSchema: outputSchema() };
});
