import type { ToolDefinition, Toolset } from "../tools/definition.ts";
import type { Tool } from "../tools/registry.ts";
import { advertised, isSchema, type JsonSchema } from "./arguments/json-schema.ts";
import { formsOf } from "./arguments/understand.ts";
import { MADE_SCHEMAS } from "./made-schemas.ts";

/** What decides which tools are listed. */
export interface Offer {
  readonly readOnly: boolean;
  /** The toolsets that are switched on. */
  readonly toolsets: readonly Exclude<Toolset, "either">[];
  /** The APIs that are configured, by the toolset that works with them. */
  readonly configured: readonly Exclude<Toolset, "either">[];
  /** Whether a sandbox can be inspected. */
  readonly hasSandbox: boolean;
}

/** Why a tool may be missing from the list. Each rule alone is enough; read-only wins over everything. */
const HIDDEN_BY: readonly ((
  tool: Pick<ToolDefinition, "effect" | "toolset" | "needsSandbox">,
  offer: Offer,
) => boolean)[] = [
  ({ effect }, { readOnly }) => readOnly && (effect === "adds" || effect === "changes"),
  ({ toolset }, { toolsets }) => toolset !== "either" && !toolsets.includes(toolset),
  ({ toolset }, { configured }) => toolset !== "either" && !configured.includes(toolset),
  ({ toolset }, { toolsets, configured }) =>
    toolset === "either" && !toolsets.some((chosen) => configured.includes(chosen)),
  ({ needsSandbox }, { hasSandbox }) => needsSandbox === true && !hasSandbox,
];

/** A tool as clients see it. Its schemas are made at their first use and kept. */
export interface ListedTool {
  readonly tool: Tool;
  readonly annotations: {
    readonly readOnlyHint: boolean;
    readonly destructiveHint: boolean;
    readonly idempotentHint: boolean;
    readonly openWorldHint: boolean;
  };
  readonly inputSchema: () => JsonSchema;
  readonly outputSchema: () => JsonSchema;
}

/** The tools that are listed and callable, in their fixed order. */
export function listedTools(tools: readonly Tool[], offer: Offer): readonly ListedTool[] {
  return offered(catalogue(tools), offer);
}

/** Of a catalogue, the tools that are listed and callable, in their fixed order. */
export function offered(tools: readonly ListedTool[], offer: Offer): readonly ListedTool[] {
  return tools.filter(({ tool }) => !HIDDEN_BY.some((hides) => hides(tool, offer)));
}

/** All tools as clients may see them: made once, for every server of a process. */
export function catalogue(tools: readonly Tool[]): readonly ListedTool[] {
  return tools.map((tool) => ({
    tool,
    annotations: {
      readOnlyHint: tool.effect === "reads",
      destructiveHint: tool.effect === "changes",
      idempotentHint: tool.idempotent,
      openWorldHint: tool.effect !== "local" && tool.toolset !== "either",
    },
    inputSchema: once(() => MADE_SCHEMAS.get(tool.name)?.input ?? advertised(tool.input(), "input")),
    outputSchema: once(() => MADE_SCHEMAS.get(tool.name)?.output ?? advertised(tool.output(), "output")),
  }));
}

/** The names of the tools that change an API. */
export function toolsThatWrite(tools: readonly Tool[]): ReadonlySet<string> {
  return new Set(tools.filter(({ effect }) => effect === "adds" || effect === "changes").map(({ name }) => name));
}

/**
 * The names of the tools whose arguments are large where a caller has much to do: lists without a bound, and objects of
 * any form, such as a suite.
 */
export function toolsWithLists(tools: readonly ListedTool[]): ReadonlySet<string> {
  const isLarge = ({ type, maxItems, properties }: JsonSchema): boolean =>
    (type === "array" && maxItems === undefined) || (type === "object" && properties === undefined);
  const hasList = ({ inputSchema }: ListedTool): boolean => {
    const schema = inputSchema();
    const fields = isSchema(schema.properties) ? Object.values(schema.properties).filter(isSchema) : [];
    return fields.flatMap((field) => formsOf(field, schema)).some(isLarge);
  };
  return new Set(tools.filter(hasList).map(({ tool }) => tool.name));
}

function once<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => {
    made ??= { value: make() };
    return made.value;
  };
}
