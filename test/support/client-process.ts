// A client in its own process, so that tests can kill it in the middle of a call. Its only argument is a `Task` as one
// line of JSON. Over stdio, it starts the server itself, and prints the process ID of the server.
import { once } from "node:events";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as z from "zod";

const task = z.object({
  client: z.enum(["modern", "legacy", "old"]),
  /** The address of a running server; absent: the client starts a server over stdio with `command` and `env`. */
  url: z.string().optional(),
  command: z.array(z.string()),
  env: z.record(z.string(), z.string()),
  tool: z.string(),
  args: z.record(z.string(), z.unknown()),
});
export type Task = z.infer<typeof task>;

const [line] = z.tuple([z.string()]).parse(await once(createInterface({ input: process.stdin }), "line"));
const { client: kind, url, command, env, tool, args } = task.parse(JSON.parse(line));
const INFO = { name: "client-process", version: "1.0.0" };
const spawned = { command: process.execPath, args: command, env, stderr: "ignore" as const };

if (kind === "old") {
  const client = new OldClient(INFO);
  const stdio = url === undefined ? new OldStdioClientTransport(spawned) : undefined;
  await client.connect(stdio ?? new OldTransport(new URL(url ?? "")));
  process.stdout.write(`${stdio?.pid ?? 0}\n`);
  await client.callTool({ name: tool, arguments: args });
} else {
  const client = new Client(INFO, { versionNegotiation: { mode: kind === "modern" ? "auto" : "legacy" } });
  const stdio = url === undefined ? new StdioClientTransport(spawned) : undefined;
  await client.connect(stdio ?? new StreamableHTTPClientTransport(new URL(url ?? "")));
  process.stdout.write(`${stdio?.pid ?? 0}\n`);
  await client.callTool({ name: tool, arguments: args });
}
