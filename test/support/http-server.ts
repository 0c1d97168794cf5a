import { expect } from "vitest";
import * as z from "zod";
import { COMMAND, cleanEnvironment, startCommand, startNode } from "./server-process.ts";

const logLine = z.looseObject({ message: z.string(), url: z.string().optional() });

/**
 * Starts the built command as an HTTP server on a free port. With `nodeOptions`, always starts a new process. Ends with
 * the test.
 */
export async function startHttp(
  given: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
  nodeOptions: readonly string[] = [],
) {
  const env = cleanEnvironment(given);
  const words = ["http", "--port", "0", ...args];
  const command =
    nodeOptions.length > 0 ? startNode([...nodeOptions, COMMAND, ...words], env) : startCommand(words, env);
  const logged = () =>
    command
      .stderr()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line) => logLine.parse(JSON.parse(line)));
  let url: string | undefined;
  while (url === undefined) {
    url = logged().find(({ message }) => message === "serving")?.url;
    if (command.child.exitCode !== null) throw new Error(`the server ended during its start: ${command.stderr()}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  const health = url.replace("/mcp", "/healthz");
  return {
    ...command,
    url,
    logged,
    /** Asks the server to stop, and waits until it accepts no more requests. */
    async stop() {
      command.child.kill("SIGTERM");
      const takesRequests = () =>
        fetch(health).then(
          ({ ok }) => ok,
          () => false,
        );
      await expect.poll(takesRequests).toBe(false);
    },
    stateDir: env.TARGETING_MCP_STATE_DIR ?? "",
  };
}

const INFO = { name: "test-client", version: "1.0.0" };
const REVISION = "2026-07-28";

/** Sends one message of protocol version 2026-07-28 without an SDK. */
export function post(url: string, method: string, params: Record<string, unknown>, init: RequestInit = {}) {
  const named = params.name ?? params.uri;
  const name = typeof named === "string" ? { "mcp-name": named } : {};
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": REVISION,
    "io.modelcontextprotocol/clientInfo": INFO,
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return fetch(url, {
    method: "POST",
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { _meta, ...params } }),
    ...init,
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": REVISION,
      "mcp-method": method,
      ...name,
      ...init.headers,
    },
  });
}
