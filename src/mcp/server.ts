import { randomUUID } from "node:crypto";
import {
  type Icon,
  McpServer,
  PROTOCOL_VERSION_META_KEY,
  type ServerContext,
  type StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import type { Log } from "../observe/log.ts";
import type { CallAnswer, Observer } from "../observe/observer.ts";
import { failureAnswer, once } from "../tools/define-tool.ts";
import { followsTasks, TASKS } from "./elicitation.ts";
import { hiddenFailure, instructions } from "./instructions.ts";
import type { JsonSchema } from "./json-schema.ts";
import { PROMPTS, registerPrompts } from "./prompts.ts";
import { RESOURCES, registerResources } from "./resources.ts";
import type { ServerParts } from "./server-parts.ts";
import type { ListedTool } from "./tool-list.ts";

/** The list depends on the settings and the caller, and does not change while the process lives. */
const STEADY = { ttlMs: 300_000, cacheScope: "private" } as const;
const CACHE_HINTS = {
  "server/discover": STEADY,
  "tools/list": STEADY,
  "prompts/list": STEADY,
  "resources/templates/list": STEADY,
} as const;

/** The tools about a run of another call. Their answer is never a task. */
const ABOUT_RUNS: ReadonlySet<string> = new Set(["get_run", "cancel_run", "decide_run"]);

/**
 * Creates an MCP server for one connection; for a single request, only with the tool that it calls. Clients of the
 * 2026-07-28 era get tasks, and no logs, which are deprecated.
 */
export function createMcpServer(parts: ServerParts, era: "legacy" | "modern", called?: string): McpServer {
  const { views } = parts;
  const tools = [...parts.tools, ...(views?.tools ?? [])];
  // Loaded by the first call, because no list of tools needs it. Only once: an import costs each call microseconds.
  const answering = once(() => import("./answer-call.ts"));
  const tasks = once(() => import("./tasks.ts"));
  const one = tools.find(({ tool }) => tool.name === called);
  const server = new McpServer(
    {
      name: "targeting-mcp",
      title: "Targetings and events",
      version: parts.version,
      // A client that calls a tool has listed the tools before, with the icons.
      ...(one === undefined && { icons: ICONS }),
    },
    {
      capabilities: {
        tools: { listChanged: false },
        resources: { listChanged: false, ...(era === "modern" && { subscribe: true }) },
        prompts: { listChanged: false },
        completions: {},
        ...(era === "modern" ? { extensions: { [TASKS]: {} } } : { logging: {} }),
      },
      instructions: instructions(parts),
      requestState: { verify: parts.seal.verify },
      cacheHints: CACHE_HINTS,
    },
  );
  for (const listed of one === undefined ? tools : [one]) {
    const { name, title, description } = listed.tool;
    const _meta = views?.metaOf(name);
    server.registerTool(
      name,
      {
        title,
        description,
        annotations: listed.annotations,
        inputSchema: unchecked(listed.inputSchema),
        outputSchema: unchecked(listed.outputSchema),
        ...(_meta && { _meta }),
      },
      (given, call) => {
        const asked = { given, call, requestId: requestIdOf(parts.log) };
        return parts.calls.during(() =>
          parts.log.during({ requestId: asked.requestId, tool: name }, async () => {
            const { answerCall } = await answering();
            const asTask = !ABOUT_RUNS.has(name) && followsTasks(call);
            const answer = await observed(parts.observer, name, call, () =>
              answerCall(listed, { ...asked, asTask }, server, parts),
            );
            return asTask ? (await tasks()).asTask(answer, name, { call, parts }) : answer;
          }),
        );
      },
    );
  }
  if (one !== undefined) return server;
  answerHidden(server, parts, tools);
  if (era === "modern") {
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"] as const) {
      server.server.setRequestHandler(method, { params: unchecked(() => ({})) }, (params, call) =>
        parts.calls.during(async () => (await tasks()).answerTask(method, params, { call, parts })),
      );
    }
  }
  const context = async () => ({ ...(await parts.services()), caller: parts.caller });
  registerResources(server, RESOURCES, context, parts.redactor);
  registerPrompts(server, PROMPTS, new Set(parts.tools.map(({ tool }) => tool.name)), context, parts.redactor);
  parts.skills?.attach(server);
  views?.attach(server);
  return server;
}

/** Answers a call inside the observer. */
function observed(
  observer: Observer | undefined,
  tool: string,
  { mcpReq: { _meta: meta, id: jsonrpcId, envelope }, sessionId }: ServerContext,
  answer: () => Promise<CallAnswer>,
): Promise<CallAnswer> {
  if (observer === undefined) return answer();
  const { [PROTOCOL_VERSION_META_KEY]: version }: Readonly<Record<string, unknown>> = { ...envelope };
  const protocolVersion = typeof version === "string" ? version : undefined;
  return observer.call({ tool, meta, jsonrpcId, protocolVersion, sessionId }, answer);
}

/** Answers a call of a hidden tool with the setting that hides it. The list stays as it is. */
function answerHidden(
  server: McpServer,
  { hidden, environment, views }: ServerParts,
  tools: readonly ListedTool[],
): void {
  if (hidden === undefined || hidden.size === 0) return;
  for (const [name, why] of hidden) {
    const { structured, text } = failureAnswer(hiddenFailure(name, why), environment);
    const inputSchema = unchecked(() => ({ type: "object" }));
    server.registerTool(name, { inputSchema }, () => ({
      content: [{ type: "text", text }],
      structuredContent: { ...structured },
      isError: true,
    }));
  }
  server.server.setRequestHandler("tools/list", () => ({
    tools: tools.map(({ tool: { name, title, description }, annotations, ...schemas }) => {
      const [inputSchema, outputSchema] = [objectSchema(schemas.inputSchema()), objectSchema(schemas.outputSchema())];
      const _meta = views?.metaOf(name);
      return { name, title, description, inputSchema, annotations, ...(_meta && { _meta }), outputSchema };
    }),
  }));
}

function objectSchema(schema: JsonSchema) {
  return { ...schema, type: "object" as const };
}

/** A ready-made JSON Schema that accepts everything: this server checks arguments and describes errors itself. */
function unchecked(json: () => JsonSchema): StandardSchemaWithJSON<unknown, unknown> {
  const schema = () => ({ ...json() });
  return {
    "~standard": {
      version: 1,
      vendor: "targeting-mcp",
      validate: (value) => ({ value }),
      jsonSchema: { input: schema, output: schema },
    },
  };
}

/** Returns the ID of the HTTP request. Over stdio each call gets a new ID. */
function requestIdOf(log: Log): string {
  const { requestId } = log.facts();
  return typeof requestId === "string" ? requestId : randomUUID();
}

/** A target of 48 by 48 pixels, in two bits per pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAADAAAAAwAgMAAAAqbBEUAAAADFBMVEUAAAAlY+v///8lY+sVZ0jhAAAABHRSTlMA////sy1AiAAAAMdJREFUeNqV" +
  "krsRAyEMRHUBJdCPS7jgVgEl0A8lELBVehaMBzkzyd0b/VYfMzO7gJftBwD7PwuebXCyfUwJJIl7eRVBX37TQE6/y0mAbMqeChvg7ArKdSh1Hc8M" +
  "6YIyg5yYj83sKmNB7S9LAoXVfluqHYXsKEPQUMkBH7dltqXN+VjWh5K9YAkVuKAXQTMfKi4ZdUIVjA2r7H9wJjhSn0WDnB+hRwuhudj2OZAwqjDE" +
  "ON4w+LCSsKywxrjgsPpwFPFcwiF9T+wNXQrVwdGwaCcAAAAASUVORK5CYII=";

/**
 * The server's icon as a data URI, so that hosts need not fetch it; only one, because each 2026-07-28 answer repeats
 * it.
 */
const ICONS: Icon[] = [{ src: `data:image/png;base64,${PNG}`, mimeType: "image/png", sizes: ["48x48"] }];
