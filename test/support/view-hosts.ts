import { randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport, type Transport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import * as z from "zod";
import { hasCode } from "../../src/platform/files.ts";
import type { Answer, Said } from "./clients.ts";
import { atEnd } from "./ends.ts";
import { startHttp } from "./http-server.ts";
import { COMMAND, cleanEnvironment } from "./server-process.ts";

export const VIEW_URI = "ui://targeting/run.html";
const VIEW_TYPE = "text/html;profile=mcp-app";
/** The capabilities of a host that shows views. */
export const SHOWS_VIEWS = { "io.modelcontextprotocol/ui": { mimeTypes: [VIEW_TYPE] } };

/** The secret in the `_meta` of an answer. A view sends it along with the person's decision. */
export const decisionMeta = z.strictObject({ runId: z.string(), secret: z.string().min(40) });

const result = z.looseObject({
  content: z.array(z.looseObject({ type: z.literal("text"), text: z.string() })),
  structuredContent: z.looseObject({ runId: z.string().optional(), status: z.string().optional() }).optional(),
  isError: z.boolean().optional(),
  _meta: z.looseObject({ "targeting-mcp/decision": decisionMeta.optional() }).optional(),
});
export type ViewResult = z.infer<typeof result>;

export interface Given {
  readonly env?: Readonly<Record<string, string>>;
  /** The extensions that the client declares; absent: those of a host that shows views. */
  readonly extensions?: Record<string, { mimeTypes?: string[] }>;
  /** Absent: the client cannot ask a person. */
  readonly answer?: Answer;
  /** How the client can ask a person, and its raw replies. Replaces `answer`. */
  readonly elicitation?: {
    readonly modes: { readonly form?: Record<string, never>; readonly url?: Record<string, never> };
    readonly says: (question: unknown) => Said | Promise<Said>;
  };
  /** Over HTTP: the token of the caller, one of `TOKENS`. */
  readonly token?: string;
}

export type Era = "auto" | "legacy";

/** A client of the built command, with all messages that it received. */
export async function connected(
  transport: Transport,
  era: Era,
  { extensions = SHOWS_VIEWS, answer, elicitation }: Given,
) {
  const client = new Client(
    { name: "test-host", version: "1.0.0" },
    {
      versionNegotiation: { mode: era },
      capabilities: {
        extensions,
        ...(answer && { elicitation: { form: {} } }),
        ...(elicitation && { elicitation: { ...elicitation.modes } }),
      },
    },
  );
  if (answer !== undefined) client.setRequestHandler("elicitation/create", ({ params }) => answer(params.message));
  if (elicitation !== undefined) {
    client.setRequestHandler("elicitation/create", ({ params }) => elicitation.says(params));
  }
  await client.connect(transport);
  atEnd(() => client.close());
  const told: unknown[] = [];
  const { onmessage } = transport;
  transport.onmessage = (message, extra) => {
    told.push(message);
    onmessage?.(message, extra);
  };
  return {
    /** All messages from the server. */
    told,
    client,
    tools: async () => (await client.listTools()).tools,
    resources: async () => (await client.listResources()).resources,
    read: (uri: string) => client.readResource({ uri }),
    call: async (name: string, args: Record<string, unknown>): Promise<ViewResult> =>
      result.parse(await client.callTool({ name, arguments: args })),
  };
}

export type ViewHost = Awaited<ReturnType<typeof connected>> & {
  /** Everything that the server has written: its log and its files. */
  readonly written: () => string;
  /** Another client of the same server. Over HTTP, it may be another caller. */
  readonly other: (given?: Given) => Promise<Awaited<ReturnType<typeof connected>>>;
  readonly audit: () => readonly unknown[];
};

async function overStdio(era: Era, given: Given = {}): Promise<ViewHost> {
  const env = cleanEnvironment(given.env);
  let logged = "";
  const connect = (more: Given) => {
    const transport = new StdioClientTransport({ command: process.execPath, args: [COMMAND], env, stderr: "pipe" });
    transport.stderr?.on("data", (text: Buffer) => {
      logged += text.toString("utf8");
    });
    return connected(transport, era, more);
  };
  const folder = env.TARGETING_MCP_STATE_DIR ?? "";
  const host = await connect(given);
  return { ...host, other: (more = {}) => connect({ ...given, ...more }), ...writtenIn(folder, () => logged) };
}

/** The tokens of the callers over HTTP, by name. */
export const TOKENS = { alice: randomBytes(16).toString("hex"), bob: randomBytes(16).toString("hex") };

async function overHttp(era: Era, given: Given = {}): Promise<ViewHost> {
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-access-")), "access.json");
  const tokens = Object.entries(TOKENS).map(([name, token]) => ({ name, token }));
  writeFileSync(file, JSON.stringify({ projects: {}, tokens }));
  const server = await startHttp({
    TARGETING_MCP_ACCESS_FILE: file,
    TARGETING_MCP_CONFIRM: "ask",
    TARGETING_MCP_SESSIONS: era === "legacy" ? "on" : "off",
    ...given.env,
  });
  const connect = ({ token = TOKENS.alice, ...more }: Given) => {
    const requestInit = { headers: { authorization: `Bearer ${token}` } };
    return connected(new StreamableHTTPClientTransport(new URL(server.url), { requestInit }), era, more);
  };
  const host = await connect(given);
  return {
    ...host,
    other: (more = {}) => connect({ ...given, ...more }),
    ...writtenIn(server.stateDir, server.stderr),
  };
}

/** Returns everything that a server has written: its log, and the names and contents of its files. */
export function writtenIn(folder: string, logged: () => string) {
  const files = (isMeant = (_name: string) => true) =>
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && isMeant(entry.name))
      .map(({ name, parentPath }) => ({ name, text: textOf(join(parentPath, name)) }));
  return {
    written: () => [logged(), ...files().map(({ name, text }) => `${name} ${text}`)].join("\n"),
    audit: (): readonly unknown[] =>
      files((name) => name.startsWith("audit"))
        .flatMap(({ text }) => text.split("\n").filter((line) => line !== ""))
        .map((line): unknown => JSON.parse(line)),
  };
}

/** Returns the text of a file; "" if the server has replaced the file since it was listed. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (thrown) {
    if (hasCode(thrown, "ENOENT")) return "";
    throw thrown;
  }
}

/** All ways in which a host that shows views can connect. */
export const VIEW_HOSTS = {
  "stdio, 2026 era": (given?: Given) => overStdio("auto", given),
  "stdio, 2025 era": (given?: Given) => overStdio("legacy", given),
  "HTTP, 2026 era": (given?: Given) => overHttp("auto", given),
  "HTTP sessions, 2025 era": (given?: Given) => overHttp("legacy", given),
} as const;

/** Creates a targeting with one option. Returns the ID of the targeting. */
export async function madeTargeting({ call }: Pick<ViewHost, "call">, name = "Sports fans"): Promise<string> {
  const made = await call("create_targetings", { items: [{ name }] });
  const { results } = z
    .looseObject({ results: z.array(z.looseObject({ _id: z.string() })) })
    .parse(made.structuredContent);
  const targetingId = results[0]?._id ?? "";
  await call("bulk_add_options", { targetingId, items: [{ name: "Running", contexts: ["r"] }] });
  return targetingId;
}
