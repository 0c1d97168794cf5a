import { catalogue } from "../src/server/listing.ts";
import { TOOLS } from "../src/tools/registry.ts";

/** Every tool's name with its advertised schemas, for the build. */
export const TOOL_SCHEMAS = catalogue(TOOLS).map(({ tool, inputSchema, outputSchema }) => [
  tool.name,
  { input: inputSchema(), output: outputSchema() },
]);
