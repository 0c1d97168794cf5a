import type { McpServer, ToolAnnotations } from "@modelcontextprotocol/server";
import * as z from "zod";
import type { Redactor } from "../answers/fence.ts";
import type { RootGuard } from "../files/folders.ts";
import type { Audit } from "../observe/audit.ts";
import type { Log } from "../observe/log.ts";
import type { Observer } from "../observe/observer.ts";
import { isJsonObject, type JsonObject } from "../platform/json.ts";
import {
  once,
  type Prepared,
  type Tool,
  type ToolAnswer,
  type ToolContext,
  type ToolFacts,
  type ToolServices,
  type Toolset,
} from "../tools/define-tool.ts";
import type { QuestionSeal } from "./elicitation.ts";
import { MADE_TOOLS, type MadeTool } from "./made-tools.ts";
import type { Skills } from "./prompts.ts";

export interface ToolAvailability {
  readonly readOnly: boolean;
  readonly toolsets: readonly Exclude<Toolset, "either">[];
  readonly configured: readonly Exclude<Toolset, "either">[];
  readonly hasSandbox: boolean;
}

export interface Hidden {
  readonly why: "readOnly" | "toolset" | "notConfigured" | "noSandbox";
  readonly toolset: Toolset;
}

function writes({ effect }: ToolFacts): boolean {
  return effect === "adds" || effect === "changes";
}

const HIDDEN_BY: readonly (readonly [
  why: Hidden["why"],
  hides: (tool: ToolFacts, offer: ToolAvailability) => boolean,
])[] = [
  ["readOnly", (tool, { readOnly }) => readOnly && writes(tool)],
  ["toolset", ({ toolset }, { toolsets }) => toolset !== "either" && !toolsets.includes(toolset)],
  [
    "notConfigured",
    ({ toolset }, { toolsets, configured }) =>
      toolset === "either" ? !toolsets.some((chosen) => configured.includes(chosen)) : !configured.includes(toolset),
  ],
  ["noSandbox", ({ needsSandbox }, { hasSandbox }) => needsSandbox === true && !hasSandbox],
];

export function hiddenTools(tools: readonly ListedTool[], offer: ToolAvailability): ReadonlyMap<string, Hidden> {
  return new Map(
    tools.flatMap(({ tool }) => {
      const [why] = HIDDEN_BY.find(([, hides]) => hides(tool, offer)) ?? [];
      return why === undefined ? [] : [[tool.name, { why, toolset: tool.toolset }] as const];
    }),
  );
}

export interface ListedTool {
  readonly tool: ToolFacts;
  readonly annotations: ToolAnnotations;
  readonly inputSchema: () => JsonObject;
  readonly outputSchema: () => JsonObject;
  readonly prepare: (given: unknown) => Promise<Prepared>;
}

/** Returns all tools but those of views, in a fixed order. Without a build, creates them now, which is slow. */
export async function allTools(): Promise<readonly ListedTool[]> {
  if (MADE_TOOLS.length > 0) return MADE_TOOLS.map(asMade);
  return catalogue(await (await import("../tools/registry.ts")).everyTool());
}

export function asMade({ inputSchema, outputSchema, ...tool }: MadeTool): ListedTool {
  const loaded = once(async () => (await import("../tools/registry.ts")).toolNamed(tool.name));
  return {
    tool,
    annotations: annotationsOf(tool),
    inputSchema: () => inputSchema,
    outputSchema: () => outputSchema,
    prepare: async (given) => (await loaded()).prepare(given),
  };
}

/** Returns the tools that are not hidden. Their descriptions lose sentences (but the first) about hidden tools. */
export function listedTools(tools: readonly ListedTool[], offer: ToolAvailability): readonly ListedTool[] {
  const hidden = hiddenTools(tools, offer);
  if (hidden.size === 0) return tools;
  const aboutHidden = new RegExp(`[.;] [^.;]*\\b(?:${[...hidden.keys()].join("|")})\\b[^.;]*`, "g");
  return tools.flatMap(({ tool, ...rest }) =>
    hidden.has(tool.name)
      ? []
      : [{ ...rest, tool: { ...tool, description: tool.description.replace(aboutHidden, "") } }],
  );
}

export function catalogue(tools: readonly Tool[]): readonly ListedTool[] {
  return tools.map((tool) => ({
    tool,
    annotations: annotationsOf(tool),
    inputSchema: once(() => advertised(tool.input(), "input")),
    outputSchema: once(() => advertised(tool.output(), "output")),
    prepare: async (given) => tool.prepare(given),
  }));
}

function annotationsOf({ effect, idempotent, toolset }: ToolFacts): ToolAnnotations {
  return {
    readOnlyHint: effect === "reads",
    destructiveHint: effect === "changes",
    idempotentHint: idempotent,
    openWorldHint: effect !== "local" && toolset !== "either",
  };
}

export function toolsThatWrite(tools: readonly ListedTool[]): ReadonlySet<string> {
  return new Set(tools.flatMap(({ tool }) => (writes(tool) ? [tool.name] : [])));
}

/** Returns the tools that accept lists of any length or objects with any fields, so that their calls may be large. */
export function toolsWithLists(tools: readonly ListedTool[]): ReadonlySet<string> {
  const isLarge = ({ type, maxItems, properties }: JsonObject): boolean =>
    (type === "array" && maxItems === undefined) || (type === "object" && properties === undefined);
  const hasList = ({ inputSchema }: ListedTool): boolean => {
    const schema = inputSchema();
    const fields = isJsonObject(schema.properties) ? Object.values(schema.properties).filter(isJsonObject) : [];
    return fields.flatMap((field) => schemaAlternatives(field, schema)).some(isLarge);
  };
  return new Set(tools.filter(hasList).map(({ tool }) => tool.name));
}

/** Returns a JSON Schema for clients. It is short, and in a form that strict clients accept. */
export function advertised(schema: z.ZodObject, io: "input" | "output"): JsonObject {
  const { $schema: _dialect, ...json } = z.toJSONSchema(schema, { io });
  return simplifiedObject(json);
}

export function schemaAlternatives(schema: JsonObject, root: JsonObject): readonly JsonObject[] {
  if (typeof schema.$ref === "string") {
    const target = schema.$ref.split("/").slice(1).reduce(stepInto, root);
    return isJsonObject(target) ? schemaAlternatives(target, root) : [];
  }
  const alternatives = schema.anyOf ?? schema.oneOf;
  if (!Array.isArray(alternatives)) return [schema];
  return alternatives.filter(isJsonObject).flatMap((alternative) => schemaAlternatives(alternative, root));
}

function stepInto(node: unknown, name: string): unknown {
  return isJsonObject(node) && Object.hasOwn(node, name) ? node[name] : undefined;
}

function simplified(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(simplified);
  return isJsonObject(node) ? simplifiedObject(node) : node;
}

function simplifiedObject(node: JsonObject): JsonObject {
  const kept = Object.entries(node).filter(([keyword, value]) => !saysNothing(keyword, value));
  const parts: Record<string, unknown> = {};
  for (const [keyword, value] of kept) {
    const isNamed = (keyword === "properties" || keyword === "$defs") && isJsonObject(value);
    parts[keyword] = isNamed
      ? Object.fromEntries(Object.entries(value).map(([name, schema]) => [name, simplified(schema)]))
      : simplified(value);
  }
  // Some clients refuse an object schema that has neither `properties` nor `additionalProperties`.
  if (parts.type === "object" && parts.properties === undefined && parts.additionalProperties === undefined) {
    parts.additionalProperties = true;
  }
  if (!Array.isArray(parts.type)) return parts;
  // Some clients accept only one type in `type`, so several types are written as alternatives.
  const { type, ...rest } = parts;
  return { ...rest, anyOf: parts.type.map((one: unknown) => ({ type: one })) };
}

/** Returns whether a keyword restricts nothing: the bounds of `z.int()`, or an empty object. */
function saysNothing(keyword: string, value: unknown): boolean {
  if (keyword === "minimum") return value === Number.MIN_SAFE_INTEGER;
  if (keyword === "maximum") return value === Number.MAX_SAFE_INTEGER;
  const isEmpty = isJsonObject(value) && Object.keys(value).length === 0;
  return isEmpty && (keyword === "additionalProperties" || keyword === "properties");
}

/** What the server offers to clients that show views of runs (MCP Apps, 2026-01-26). */
export interface Views {
  readonly tools: readonly ListedTool[];
  readonly metaOf: (tool: string) => Meta | undefined;
  readonly attach: (server: McpServer) => void;
  /** Returns the data for the view. It is sent in `_meta`, which models do not see. */
  readonly beside: (answer: ToolAnswer, context: ToolContext) => Promise<Meta>;
}

type Meta = Readonly<Record<string, unknown>>;

export interface ServerParts {
  readonly version: string;
  readonly tools: readonly ListedTool[];
  readonly hidden?: ReadonlyMap<string, Hidden>;
  readonly environment: "live" | "sandbox";
  /** Loads the services with the first call, because loading them takes a fifth of the start-up time. */
  readonly services: () => Promise<ToolServices>;
  readonly seal: QuestionSeal;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly calls: CallsUnderWay;
  /** Called for each run that a call starts or waits for, with a promise that resolves when the run ends. */
  readonly goesOn?: ToolContext["goesOn"];
  readonly caller: string;
  readonly audit: Audit;
  /** Returns the folders and files that a client's roots must not include. Absent if roots are ignored. */
  readonly rootGuard?: (() => Promise<RootGuard>) | undefined;
  readonly writingTools: ReadonlySet<string>;
  readonly skills?: Skills;
  readonly loadViews?: () => Promise<Views>;
  readonly views?: Views | undefined;
  readonly observer?: Observer | undefined;
}

export type CallsUnderWay = ReturnType<typeof callsUnderWay>;

export function callsUnderWay() {
  const calls = new Set<Promise<unknown>>();
  return {
    async during<Result>(call: () => Promise<Result>): Promise<Result> {
      const running = call();
      calls.add(running);
      try {
        return await running;
      } finally {
        calls.delete(running);
      }
    },
    /** Resolves when all calls that have begun by now have ended, or after `withinMs` milliseconds. */
    async idle(withinMs: number): Promise<void> {
      let timer: NodeJS.Timeout | undefined;
      const over = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, withinMs);
      });
      await Promise.race([Promise.allSettled(calls), over]);
      clearTimeout(timer);
    },
  };
}

const arrivals = new WeakMap<Request, number>();

/** Records when an HTTP request was completely received. The maximum wait of the request's calls starts then. */
export function noteArrival(request: Request, at: number): void {
  arrivals.set(request, at);
}

export function arrivalOf(request: Request | undefined): number | undefined {
  return request && arrivals.get(request);
}
