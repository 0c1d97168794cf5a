import type { JsonSchema } from "./arguments/json-schema.ts";

/**
 * The advertised JSON Schemas of the tools, by name. The build puts them here, since making them costs time at every
 * start; where the code runs unbuilt there are none, and they are made when they are asked for.
 */
export const MADE_SCHEMAS: ReadonlyMap<string, { readonly input: JsonSchema; readonly output: JsonSchema }> = new Map();
