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

/** Why a tool may be missing from the list, and the setting that hides it. */
interface HidingRule {
  readonly hides: (tool: Pick<ToolDefinition, "effect" | "toolset" | "needsSandbox">, offer: Offer) => boolean;
  readonly why: HiddenWhy;
}

/** Each rule alone is enough; read-only wins over everything. */
const HIDDEN_BY: readonly HidingRule[] = [
  { why: "readOnly", hides: ({ effect }, { readOnly }) => readOnly && (effect === "adds" || effect === "changes") },
  { why: "toolset", hides: ({ toolset }, { toolsets }) => toolset !== "either" && !toolsets.includes(toolset) },
  {
    why: "notConfigured",
    hides: ({ toolset }, { configured }) => toolset !== "either" && !configured.includes(toolset),
  },
  {
    why: "notConfigured",
    hides: ({ toolset }, { toolsets, configured }) =>
      toolset === "either" && !toolsets.some((chosen) => configured.includes(chosen)),
  },
  { why: "noSandbox", hides: ({ needsSandbox }, { hasSandbox }) => needsSandbox === true && !hasSandbox },
];

/** Of each tool that is not listed the reason, by its name. */
export function hiddenTools(tools: readonly Tool[], offer: Offer): ReadonlyMap<string, Hidden> {
  return new Map(
    tools.flatMap((tool) => {
      const rule = HIDDEN_BY.find(({ hides }) => hides(tool, offer));
      return rule === undefined ? [] : [[tool.name, { why: rule.why, toolset: tool.toolset }] as const];
    }),
  );
}

/** Why a tool is hidden, and where it belongs. */
export interface Hidden {
  readonly why: HiddenWhy;
  readonly toolset: Toolset;
}

type HiddenWhy = "readOnly" | "toolset" | "notConfigured" | "noSandbox";

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
  return tools.filter(({ tool }) => !HIDDEN_BY.some(({ hides }) => hides(tool, offer)));
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
