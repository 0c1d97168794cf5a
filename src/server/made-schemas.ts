import type { JsonSchema } from "./arguments/json-schema.ts";

/**
 * The advertised JSON Schemas of the tools, by name. The build fills this map, since making the schemas costs time at
 * every start. Unbuilt code finds it empty and makes each schema at its first use.
 */
export const MADE_SCHEMAS: ReadonlyMap<string, { readonly input: JsonSchema; readonly output: JsonSchema }> = new Map();
