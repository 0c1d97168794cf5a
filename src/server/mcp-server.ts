import { randomUUID } from "node:crypto";
import {
  type CallToolResult,
  McpServer,
  PROTOCOL_VERSION_META_KEY,
  type ServerContext,
  type StandardSchemaWithJSON,
} from "@modelcontextprotocol/server";
import type { Redactor } from "../render/redact.ts";
import { checkNotHalf } from "../tools/apis.ts";
import type { Reply, ToolContext, ToolServices } from "../tools/context.ts";
import { type ToolAnswer, ToolError, type ToolOutcome, type ToolQuestion } from "../tools/definition.ts";
import { argumentWords, unknownArguments, unknownWords } from "./arguments/argument-words.ts";
import { DEEPEST, isTooDeep } from "./arguments/depth.ts";
import type { JsonSchema } from "./arguments/json-schema.ts";
import { upToMisfits } from "./arguments/misfits.ts";
import { understood } from "./arguments/understand.ts";
import { asking, canAsk, isModern, type QuestionSeal, replyTo } from "./asking/ask.ts";
import { askDuringCall, undecided } from "./asking/ask-during-call.ts";
import { type Audit, auditCall, isAudited } from "./audit.ts";
import type { CallsUnderWay } from "./calls-under-way.ts";
import { toldToClient } from "./client-log.ts";
import { failureAnswer, failureOf } from "./failures.ts";
import { ICONS } from "./icons.ts";
import { hiddenFailure, instructions } from "./instructions.ts";
import type { Hidden, ListedTool } from "./listing.ts";
import type { Log } from "./log.ts";
import type { CallAnswer, Observer } from "./observing/observer.ts";
import { PROMPTS, registerPrompts } from "./prompts/prompts.ts";
import type { Skills } from "./prompts/skills.ts";
import { RESOURCES, registerResources } from "./resources/resources.ts";

/** What servers of one process share. */
export interface ServerParts {
  readonly version: string;
  readonly tools: readonly ListedTool[];
  /** The tools that a setting hides, by name; none where absent. */
  readonly hidden?: ReadonlyMap<string, Hidden>;
  readonly services: ToolServices;
  readonly seal: QuestionSeal;
  readonly redactor: Redactor;
  readonly log: Log;
  readonly calls: CallsUnderWay;
  /** Who calls: runs and confirmations are theirs alone. */
  readonly caller: string;
  readonly audit: Audit;
  /** Names of tools that change an API, whether they are listed or not. */
  readonly writingTools: ReadonlySet<string>;
  readonly skills?: Skills;
  /** Looks at each call. */
  readonly observer?: Observer | undefined;
}

/** What is listed depends on the settings and on who calls, and stays for as long as the process lives. */
const STEADY = { ttlMs: 300_000, cacheScope: "private" } as const;
const CACHE_HINTS = {
  "server/discover": STEADY,
  "tools/list": STEADY,
  "prompts/list": STEADY,
  "resources/templates/list": STEADY,
} as const;

/**
 * Makes an MCP server for one connection; it takes no resources of its own. A server for one request needs nothing but
 * the tool that it calls, where it calls one.
 */
export function createMcpServer(parts: ServerParts, called?: string): McpServer {
  const one = parts.tools.find(({ tool }) => tool.name === called);
  const server = new McpServer(
    {
      name: "targeting-mcp",
      title: "Targetings and events",
      version: parts.version,
      // A client that calls a tool has listed them before, with the icons.
      ...(one === undefined && { icons: ICONS }),
    },
    {
      capabilities: {
        tools: { listChanged: false },
        resources: { listChanged: false },
        prompts: { listChanged: false },
        completions: {},
        logging: {},
      },
      instructions: instructions({ ...parts, environment: parts.services.environment }),
      requestState: { verify: parts.seal.verify },
      cacheHints: CACHE_HINTS,
    },
  );
  for (const listed of one === undefined ? parts.tools : [one]) {
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
      (given, call) => {
        const asked = { given, call, requestId: requestIdOf(parts.log) };
        return parts.calls.during(() =>
          parts.log.during({ requestId: asked.requestId, tool: name }, () =>
            observed(parts.observer, name, call, () => answerCall(listed, asked, server, parts)),
          ),
        );
      },
    );
  }
  if (one !== undefined) return server;
  answerHidden(server, parts);
  const context = { ...parts.services, caller: parts.caller };
  registerResources(server, RESOURCES, context, parts.redactor);
  registerPrompts(server, PROMPTS, new Set(parts.tools.map(({ tool }) => tool.name)), context, parts.redactor);
  parts.skills?.attach(server);
  return server;
}

/** Answers a call while the observer looks at it. */
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

/** A call of a hidden tool is answered with the setting that hides it; the list stays as it is. */
function answerHidden(server: McpServer, { tools, hidden, services }: ServerParts): void {
  if (hidden === undefined || hidden.size === 0) return;
  for (const [name, why] of hidden) {
    const { structured, text } = failureAnswer(hiddenFailure(name, why), services.environment);
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
      return { name, title, description, inputSchema, annotations, outputSchema };
    }),
  }));
}

function objectSchema(schema: JsonSchema) {
  return { ...schema, type: "object" as const };
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

const TOO_DEEP = new ToolError(
  `the arguments are more than ${DEEPEST} levels deep, and no tool takes that; nothing was done`,
  "Give them as the tool's schema shows.",
);

/** Arguments are kept in the files of runs, which must never hold keys. */
const KEY_IN_ARGUMENTS = new ToolError(
  "the arguments hold a key or token of this server; nothing was done",
  "Leave it out: this server adds its keys by itself.",
);

/** A tool call as the SDK passes it on. */
interface Called {
  readonly given: unknown;
  readonly call: ServerContext;
  readonly requestId: string;
}

async function answerCall(
  listed: ListedTool,
  { given, call, requestId }: Called,
  server: McpServer,
  { services, seal, redactor, log, audit, caller }: ServerParts,
): Promise<CallAnswer> {
  const { tool } = listed;
  const resultOf = ({ structured, text, isError }: ToolAnswer): CallToolResult => ({
    content: [{ type: "text", text: redactor.text(text) }],
    structuredContent: redactor.record(structured),
    isError,
  });
  const written = (answer: ToolAnswer | undefined): void => {
    if (!isAudited(tool)) return;
    auditCall(audit, { tool, caller, requestId, services }, answer?.structured).catch((error: unknown) =>
      log.error("what became of a run could not be written down", { requestId, tool: tool.name, error }),
    );
  };
  try {
    checkNotHalf(tool.toolset, services);
    const prepared = checked(listed, given, redactor);
    if (!prepared.fits) {
      const message = `${tool.name}: ${prepared.words}`;
      return resultOf(failureAnswer({ message }, services.environment));
    }
    const asked = { tool: tool.name, input: prepared.input };
    const said = replyTo(call, asked);
    const context = {
      signal: call.mcpReq.signal,
      caller,
      arrivedAt: services.clock.now(),
      canAsk: () => canAsk(call, server),
      ...progressOf(call, log),
      // Spread last: adding fields to an object of this size after the spread is slow.
      ...services,
    };
    const run = (reply?: Reply): Promise<ToolOutcome> =>
      prepared.run(reply === undefined ? context : { ...context, reply });
    let outcome = await run(said === "closed" ? undefined : said);
    for (let round = 1; "ask" in outcome; round += 1) {
      const { ask }: ToolQuestion = { ask: { ...outcome.ask, message: redactor.text(outcome.ask.message) } };
      if (said === "closed") outcome = (await undecided({ ask }, "closed", context)).answer;
      else if (isModern(call)) return await asking({ ask }, seal, call, asked);
      else outcome = await askDuringCall({ ask }, { context, call, run, round, log });
    }
    written(outcome);
    return resultOf(outcome);
  } catch (thrown) {
    written(undefined);
    // The client has cancelled the call: it ignores the answer, and the error is only that cancellation.
    if (call.mcpReq.signal.aborted)
      return resultOf(failureAnswer({ message: "the call was cancelled" }, services.environment));
    return resultOf(
      failureAnswer(failureOf(thrown, tool.name, toldToClient(log.with({ requestId }), call)), services.environment),
    );
  }
}

/** The ID of the HTTP request; over stdio each call gets a new ID. */
function requestIdOf(log: Log): string {
  const { requestId } = log.facts();
  return typeof requestId === "string" ? requestId : randomUUID();
}

/** Reports progress to clients that gave a token for it. A notification that cannot be sent is only logged. */
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

/**
 * Checks arguments: gives them ready to run, or words that say what is wrong. Arguments that do not fit as given are
 * read a second time as they were probably meant. Unknown names are refused before any value is read. Throws a
 * ToolError for arguments that are too deep or hold a key.
 */
function checked({ tool, inputSchema }: ListedTool, given: unknown, redactor: Redactor) {
  const schema = inputSchema();
  const prepare = (args: unknown) => {
    const looked = upToMisfits(args, schema);
    const prepared = tool.prepare(looked);
    const isCut = looked !== args;
    // A cut copy of the arguments must never run in place of the whole.
    return prepared.fits && isCut ? { ...tool.prepare(args), isCut: false } : { ...prepared, isCut };
  };
  const refused = (words: string) => ({ fits: false, words }) as const;
  const unknown = unknownArguments(given, schema);
  if (redactor.holds(unknown)) throw KEY_IN_ARGUMENTS;
  if (unknown.length > 0) return refused(unknownWords(unknown, [], schema));
  if (isTooDeep(given)) throw TOO_DEEP;
  if (redactor.holds(given)) throw KEY_IN_ARGUMENTS;
  const asGiven = prepare(given);
  if (asGiven.fits) return asGiven;
  const read = understood(given, schema);
  const asMeant = prepare(read);
  return asMeant.fits ? asMeant : refused(argumentWords(asMeant.issues, read, schema, asMeant.isCut));
}
