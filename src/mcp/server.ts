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
import { registerPrompts } from "./prompts.ts";
import { registerResources } from "./resources.ts";
import type { ServerParts } from "./server-parts.ts";
import type { ListedTool } from "./tool-list.ts";

/** The lists depend on settings and caller, and stay the same while the process runs. */
const STEADY = { ttlMs: 300_000, cacheScope: "private" } as const;
const CACHE_HINTS = {
  "server/discover": STEADY,
  "tools/list": STEADY,
  "prompts/list": STEADY,
  "resources/templates/list": STEADY,
} as const;

/** Tools about runs. Their answers never become tasks. */
const ABOUT_RUNS: ReadonlySet<string> = new Set(["get_run", "cancel_run", "decide_run"]);

/**
 * Creates an MCP server for one connection, or for one request that needs only the tool `called`. Clients of protocol
 * version 2026-07-28 get tasks, and no log messages, which that version deprecates.
 */
export function createMcpServer(parts: ServerParts, era: "legacy" | "modern", called?: string): McpServer {
  const { views } = parts;
  const tools = [...parts.tools, ...(views?.tools ?? [])];
  // Imported with the first call, because lists of tools do not need it, and only once, because each import takes time.
  const answering = once(() => import("./answer-call.ts"));
  const tasks = once(() => import("./tasks.ts"));
  const one = tools.find(({ tool }) => tool.name === called);
  const server = new McpServer(
    {
      name: "targeting-mcp",
      title: "Targetings and events",
      version: parts.version,
      // A client lists tools before it calls one, and has received the icons with the list.
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
  registerResources(server, context, parts.redactor);
  registerPrompts(server, new Set(parts.tools.map(({ tool }) => tool.name)), context, parts.redactor);
  parts.skills?.attach(server);
  views?.attach(server);
  return server;
}

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

/** Answers calls of hidden tools with the setting that hides them. The tools stay unlisted. */
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

/**
 * Returns a schema that the SDK lists but does not check: this server checks arguments itself, with better messages.
 */
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

/** Returns the ID of the HTTP request. Over stdio, each call gets a new ID. */
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

/** Only one, because in protocol version 2026-07-28 every answer repeats it. */
const ICONS: Icon[] = [{ src: `data:image/png;base64,${PNG}`, mimeType: "image/png", sizes: ["48x48"] }];
