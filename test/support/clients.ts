import { pathToFileURL } from "node:url";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema, ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import * as z from "zod";
import { atEnd } from "./ends.ts";

/** What the person answers to a question of the server. */
export type Said = { action: "accept" | "decline" | "cancel"; content?: { [field: string]: string | boolean } };
/** Answers a question; `form` is its schema. */
export type Answer = (message: string, form?: unknown) => Said | Promise<Said>;

/** A client of either SDK and protocol era, as tests use it. */
export interface TestClient {
  listTools(): Promise<readonly { readonly name: string }[]>;
  /** Calls a tool; `onProgress` hears how far it is. */
  callTool(name: string, args: Record<string, unknown>, onProgress?: OnProgress): Promise<ToolResult>;
  listResources(): Promise<readonly { readonly uri: string }[]>;
  /** The text of a resource. */
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

/** The text of a result. */
export function textOf(result: ToolResult): string {
  return result.content.map((part) => part.text ?? "").join("\n");
}

interface Spawn {
  readonly args: readonly string[];
  readonly env: Record<string, string>;
  /** Absent: the client cannot ask a person. */
  readonly answer?: Answer;
  /** The folders that the client works in, as paths; absent: it has no roots. */
  readonly roots?: readonly string[];
  /** The name that a 2025-era client gives. */
  readonly name?: string;
}

const INFO = { name: "test-client", version: "1.0.0" };

function formIn(params: object): unknown {
  return "requestedSchema" in params ? params.requestedSchema : undefined;
}

/** The clients that every end-to-end test runs with. They end with the test. */
export const CLIENTS = {
  "2026 client, modern": (spawn: Spawn) => newClient(spawn, "auto"),
  "2026 client, legacy": (spawn: Spawn) => newClient(spawn, "legacy"),
  "2025 client": oldClient,
} as const;

async function newClient({ args, env, answer, roots }: Spawn, mode: "auto" | "legacy"): Promise<TestClient> {
  const client = new Client(INFO, {
    versionNegotiation: { mode },
    capabilities: { ...(answer && { elicitation: { form: {} } }), ...(roots && { roots: {} }) },
  });
  if (roots !== undefined) {
    const all = roots.map((path) => ({ uri: pathToFileURL(path).href }));
    client.setRequestHandler("roots/list", () => ({ roots: all }));
  }
  if (answer !== undefined)
    client.setRequestHandler("elicitation/create", async ({ params }) => answer(params.message, formIn(params)));
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [...args],
      env,
      stderr: "ignore",
    }),
  );
  atEnd(() => client.close());
  return {
    listTools: async () => (await client.listTools()).tools,
    callTool: async (name, input, onProgress) =>
      toolResult.parse(await client.callTool({ name, arguments: input }, onProgress && { onprogress: onProgress })),
    listResources: async () => (await client.listResources()).resources,
    readResource: async (uri) =>
      resourceResult
        .parse(await client.readResource({ uri }))
        .contents.map(({ text }) => text)
        .join(""),
    instructions: () => client.getInstructions(),
    close: () => client.close(),
  };
}

async function oldClient({ args, env, answer, roots, name = INFO.name }: Spawn): Promise<TestClient> {
  const client = new OldClient(
    { ...INFO, name },
    { capabilities: { ...(answer && { elicitation: {} }), ...(roots && { roots: {} }) } },
  );
  if (roots !== undefined) {
    const all = roots.map((path) => ({ uri: pathToFileURL(path).href }));
    client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: all }));
  }
  if (answer !== undefined)
    client.setRequestHandler(ElicitRequestSchema, async ({ params }) => answer(params.message, formIn(params)));
  await client.connect(
    new OldStdioClientTransport({
      command: process.execPath,
      args: [...args],
      env,
      stderr: "ignore",
    }),
  );
  atEnd(() => client.close());
  return {
    listTools: async () => (await client.listTools()).tools,
    callTool: async (name, input, onProgress) =>
      toolResult.parse(
        await client.callTool({ name, arguments: input }, undefined, onProgress && { onprogress: onProgress }),
      ),
    listResources: async () => (await client.listResources()).resources,
    readResource: async (uri) =>
      resourceResult
        .parse(await client.readResource({ uri }))
        .contents.map(({ text }) => text)
        .join(""),
    instructions: () => client.getInstructions(),
    close: () => client.close(),
  };
}
