import { pathToFileURL } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldHttpTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";
import { atEnd } from "./ends.ts";
import { COMMAND, isWarm } from "./server-process.ts";
import { WarmTransport } from "./warm-transport.ts";

/** The person's reply to a question of the server. */
export type Said = { action: "accept" | "decline" | "cancel"; content?: { [field: string]: string | boolean } };
/** Answers a question. `form` is its schema. */
export type Answer = (message: string, form?: unknown) => Said | Promise<Said>;

/** A client of either SDK and either protocol era. */
export interface TestClient {
  listTools(): Promise<readonly { readonly name: string }[]>;
  toolNames(): Promise<readonly string[]>;
  /** Calls a tool. `onProgress` is called with each progress notification. */
  callTool(name: string, args: Readonly<Record<string, unknown>>, onProgress?: OnProgress): Promise<ToolResult>;
  listResources(): Promise<readonly { readonly uri: string }[]>;
  /** Returns the text of a resource. */
  readResource(uri: string): Promise<string>;
  instructions(): string | undefined;
  close(): Promise<void>;
}

type OnProgress = (progress: { readonly progress: number; readonly total?: number | undefined }) => void;

const resourceResult = z.looseObject({ contents: z.array(z.looseObject({ text: z.string() })) });

export const toolResult = z.looseObject({
  content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional(),
});
export type ToolResult = z.infer<typeof toolResult>;

/** Returns the text of a result. */
export function textOf(result: ToolResult): string {
  return result.content.map((part) => part.text ?? "").join("\n");
}

const answer = z.looseObject({
  runId: z.string().default(""),
  status: z.string().default(""),
  counts: z.record(z.string(), z.number()).default({}),
  results: z.array(z.looseObject({ _id: z.string().default(""), name: z.string().default("") })).default([]),
  runs: z.array(z.looseObject({ runId: z.string(), status: z.string(), tool: z.string() })).default([]),
  failures: z
    .array(
      z.looseObject({
        errorCode: z.string(),
        message: z.string(),
        indexes: z.array(z.number()),
        lines: z.array(z.number()).optional(),
      }),
    )
    .default([]),
  confirmation: z.looseObject({ token: z.string().default(""), effect: z.string() }).default({ token: "", effect: "" }),
  error: z.looseObject({ message: z.string(), remedy: z.string().default("") }).optional(),
  blocked: z.looseObject({ code: z.string(), message: z.string() }).optional(),
  suiteId: z.string().default(""),
  rejectsUri: z.string().optional(),
  nextSteps: z.array(z.string()).default([]),
  notes: z.array(z.string()).default([]),
});

/** Calls a tool. Returns the common fields of answers, and the text for the model. */
export async function call(
  { callTool }: Pick<TestClient, "callTool">,
  name: string,
  args: Readonly<Record<string, unknown>> = {},
) {
  const result = await callTool(name, args);
  return { ...answer.parse(result.structuredContent ?? {}), text: textOf(result), isError: result.isError === true };
}

/** Returns a function that calls tools with one client. */
export function callsOf(client: Pick<TestClient, "callTool">) {
  return (name: string, args: Readonly<Record<string, unknown>> = {}) => call(client, name, args);
}

type Started = { readonly args: readonly string[]; readonly env: Record<string, string> };

/** How to reach the server (a command to start, or an address), and what the client supports. */
type To = {
  /** Absent: the client cannot ask a person. */
  readonly answer?: Answer;
  /** The paths that the client reports as its roots; absent: the client does not support roots. */
  readonly roots?: readonly string[];
  /** The client's name, which only clients with a protocol version of 2025 send. */
  readonly name?: string;
} & (Started | { readonly url: string; readonly headers?: Record<string, string> });

const INFO = { name: "test-client", version: "1.0.0" };

function formIn(params: object): unknown {
  return "requestedSchema" in params ? params.requestedSchema : undefined;
}

/** The clients of both SDKs and eras, over stdio and HTTP. They are closed at the end of the test. */
export const CLIENTS = {
  "2026 client, modern": (to: To) => newClient(to, "auto"),
  "2026 client, legacy": (to: To) => newClient(to, "legacy"),
  "2025 client": oldClient,
} as const;

/** Connects over stdio. Starts a new process, unless one that has run the command before can be used again. */
function overStdio({ args: [program = "", ...args], env }: Started) {
  if (program !== COMMAND || !isWarm(env)) {
    return new StdioClientTransport({ command: process.execPath, args: [program, ...args], env, stderr: "ignore" });
  }
  return new WarmTransport(COMMAND, args, env);
}

const rootsAt = (paths: readonly string[]) => ({ roots: paths.map((path) => ({ uri: pathToFileURL(path).href })) });

async function newClient(to: To, mode: "auto" | "legacy"): Promise<TestClient> {
  const { answer, roots } = to;
  const client = new Client(INFO, {
    versionNegotiation: { mode },
    capabilities: { ...(answer && { elicitation: { form: {} } }), ...(roots && { roots: {} }) },
  });
  if (roots !== undefined) client.setRequestHandler("roots/list", () => rootsAt(roots));
  if (answer !== undefined)
    client.setRequestHandler("elicitation/create", async ({ params }) => answer(params.message, formIn(params)));
  await client.connect(
    "url" in to
      ? new StreamableHTTPClientTransport(new URL(to.url), { requestInit: { headers: to.headers ?? {} } })
      : overStdio(to),
  );
  return testClient(client, (request, onprogress) => client.callTool(request, onprogress && { onprogress }));
}

async function oldClient(to: To): Promise<TestClient> {
  const { answer, roots, name = INFO.name } = to;
  const client = new OldClient(
    { ...INFO, name },
    { capabilities: { ...(answer && { elicitation: {} }), ...(roots && { roots: {} }) } },
  );
  if (roots !== undefined) client.setRequestHandler(ListRootsRequestSchema, () => rootsAt(roots));
  if (answer !== undefined)
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => answer(params.message, formIn(params)));
  if ("url" in to) {
    const transport = new OldHttpTransport(new URL(to.url), { requestInit: { headers: to.headers ?? {} } });
    await client.connect(transport);
  } else await client.connect(overStdio(to));
  return testClient(client, (request, onprogress) => client.callTool(request, undefined, onprogress && { onprogress }));
}

/** The methods that the clients of both SDKs have in common. */
interface SdkClient {
  readonly transport?: unknown;
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>;
  listResources(): Promise<{ readonly resources: readonly { readonly uri: string }[] }>;
  readResource(of: { readonly uri: string }): Promise<unknown>;
  getInstructions(): string | undefined;
  close(): Promise<void>;
}
type Call = { name: string; arguments: Record<string, unknown> };

function testClient(client: SdkClient, call: (of: Call, onProgress?: OnProgress) => Promise<unknown>): TestClient {
  atEnd(() => (client.transport instanceof WarmTransport ? client.transport.leave() : client.close()));
  return {
    listTools: async () => (await client.listTools()).tools,
    toolNames: async () => (await client.listTools()).tools.map(({ name }) => name),
    callTool: async (name, input, onProgress) =>
      toolResult.parse(await call({ name, arguments: { ...input } }, onProgress)),
    listResources: async () => (await client.listResources()).resources,
    async readResource(uri) {
      const { contents } = resourceResult.parse(await client.readResource({ uri }));
      return contents.map(({ text }) => text).join("");
    },
    instructions: () => client.getInstructions(),
    close: () => client.close(),
  };
}
