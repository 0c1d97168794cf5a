import {
  type CallToolResult,
  type InputRequiredResult,
  McpServer,
  type ServerContext,
  type StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import type { Redactor } from "../render/redact.ts";
import type { ToolContext, ToolServices } from "../tools/context.ts";
import type { ToolAnswer } from "../tools/definition.ts";
import { argumentWords } from "./argument-words.ts";
import { asking, canAsk, type QuestionSeal, replyTo } from "./ask.ts";
import { type Audit, auditCall } from "./audit.ts";
import type { CallsUnderWay } from "./calls-under-way.ts";
import { failureAnswer, failureOf } from "./failures.ts";
import { instructions } from "./instructions.ts";
import type { JsonSchema } from "./json-schema.ts";
import type { ListedTool } from "./listing.ts";
import type { Log } from "./log.ts";
import { RESOURCES, registerResources } from "./resources.ts";
import { understood } from "./understand.ts";

/** What servers of one process share. */
export interface ServerParts {
  readonly version: string;
  readonly tools: readonly ListedTool[];
  readonly services: ToolServices;
  readonly seal: QuestionSeal;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly calls: CallsUnderWay;
  readonly audit: Audit;
  /** Names of tools that change an API, whether they are listed or not. */
  readonly writingTools: ReadonlySet<string>;
  /** Of the HTTP request that a server is made for. */
  readonly requestId?: string;
}

/** Makes an MCP server for one connection; it takes no resources of its own. */
export function createMcpServer(parts: ServerParts): McpServer {
  const server = new McpServer(
    { name: "targeting-mcp", title: "Targetings and events", version: parts.version },
    {
      capabilities: { tools: { listChanged: false }, resources: { listChanged: false } },
      instructions: instructions(parts.services.environment),
      requestState: { verify: parts.seal.verify },
    },
  );
  for (const listed of parts.tools) {
    const { name, title, description } = listed.tool;
    server.registerTool(
      name,
      {
        title,
        description,
        annotations: listed.annotations,
        inputSchema: unchecked(listed.inputSchema),
        outputSchema: unchecked(listed.outputSchema),
      },
      (given, call) => parts.calls.during(() => answerCall(listed, given, call, server, parts)),
    );
  }
  registerResources(server, RESOURCES, parts.services, parts.redactor);
  return server;
}

/** A ready-made JSON Schema that accepts everything: arguments are checked, and errors worded, by ourselves. */
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

async function answerCall(
  listed: ListedTool,
  given: unknown,
  call: ServerContext,
  server: McpServer,
  { services, seal, redactor, log, audit, requestId }: ServerParts,
): Promise<CallToolResult | InputRequiredResult> {
  const { tool } = listed;
  const caller = call.http?.authInfo?.clientId ?? "local";
  const resultOf = ({ structured, text, isError }: ToolAnswer): CallToolResult => ({
    content: [{ type: "text", text: redactor.text(text) }],
    structuredContent: redactor.record(structured),
    isError,
  });
  const written = (answer: ToolAnswer | undefined): void => {
    auditCall(audit, { tool, caller, requestId, services }, answer?.structured).catch((error: unknown) =>
      log.error("what became of a run could not be written down", { tool: tool.name, error }),
    );
  };
  try {
    const prepared = prepare(listed, given);
    if (!prepared.fits) {
      const message = `${tool.name}: ${argumentWords(prepared.issues, prepared.read, listed.inputSchema())}`;
      return resultOf(failureAnswer({ message }, services.environment));
    }
    const asked = { tool: tool.name, input: prepared.input };
    const reply = replyTo(call, asked);
    const outcome = await prepared.run({
      ...services,
      signal: call.mcpReq.signal,
      caller,
      canAsk: canAsk(call, server),
      ...progressOf(call, log),
      ...(reply && { reply }),
    });
    if ("ask" in outcome) {
      const ask = { ...outcome.ask, message: redactor.text(outcome.ask.message) };
      return await asking({ ask }, seal, call, asked);
    }
    written(outcome);
    return resultOf(outcome);
  } catch (thrown) {
    written(undefined);
    // Whoever called has given up: nobody reads the answer, and what was thrown is only that news.
    if (call.mcpReq.signal.aborted)
      return resultOf(failureAnswer({ message: "the call was cancelled" }, services.environment));
    return resultOf(failureAnswer(failureOf(thrown, tool.name, log), services.environment));
  }
}

/** How far a call is, for clients that gave a token for it. A notification that cannot be sent costs nothing. */
function progressOf(call: ServerContext, log: Log): Pick<ToolContext, "progress"> {
  const progressToken = call.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return {};
  return {
    progress: (progress, total, message) => {
      const params = { progressToken, progress, total, ...(message !== undefined && { message }) };
      call.mcpReq
        .notify({ method: "notifications/progress", params })
        .catch((error: unknown) => log.debug("progress could not be sent", { error }));
    },
  };
}

/** Arguments that do not fit as they are may fit as they were meant; where not, `read` is what was looked at. */
function prepare({ tool, inputSchema }: ListedTool, given: unknown) {
  const asGiven = tool.prepare(given);
  if (asGiven.fits) return asGiven;
  const read = understood(given, inputSchema());
  return { ...tool.prepare(read), read };
}
