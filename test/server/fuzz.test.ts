import { connect } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import * as z from "zod";
import { post, startHttp } from "../support/http-server.ts";

/** Fast-check prints the seed and the smallest failing case. */
const SEED = 20_260_728;
const RUNS_PER_TOOL = 25;

const schema = z.looseObject({
  type: z.string().optional(),
  enum: z.array(z.unknown()).optional(),
  anyOf: z.array(z.unknown()).optional(),
  items: z.unknown().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
});
const listed = z.object({
  result: z.object({ tools: z.array(z.object({ name: z.string(), inputSchema: z.unknown() })) }),
});

const TEXTS = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }),
  fc.constantFrom(
    "",
    " ",
    "01JABCDEFGHJKMNPQRSTVWXYZ0",
    "01jabcdefghjkmnpqrstvwxyz0",
    "../../etc/passwd",
    "targeting://runs/x",
    "\u202Eevil\u0000",
    "[]",
    "{",
    "null",
    "가나",
    "purchase",
  ),
);
const ANYTHING = fc.jsonValue({ maxDepth: 3 });

/** Values as a schema wants them, and sometimes others. */
function valuesOf(given: unknown): fc.Arbitrary<unknown> {
  const { type, enum: words, anyOf, items, properties } = schema.parse(given);
  const fitting = (): fc.Arbitrary<unknown> => {
    if (words !== undefined) return fc.constantFrom(...words);
    if (anyOf !== undefined) return fc.oneof(...anyOf.map(valuesOf));
    if (type === "array") return fc.array(items === undefined ? ANYTHING : valuesOf(items), { maxLength: 4 });
    if (type === "object") {
      const fields = Object.entries(properties ?? {}).map(([name, field]) => [name, valuesOf(field)] as const);
      return fc.record(Object.fromEntries(fields), { requiredKeys: [] });
    }
    if (type === "boolean") return fc.boolean();
    if (type === "integer" || type === "number") return fc.oneof(fc.integer(), fc.double({ noNaN: true }));
    return TEXTS;
  };
  return fc.oneof({ arbitrary: fitting(), weight: 12 }, { arbitrary: ANYTHING, weight: 1 });
}

test("no arguments make a tool fail in an unforeseen way", { timeout: 180_000 }, async () => {
  const { url, logged } = await startHttp({
    TARGETING_MCP_WAIT_MS: "300",
    TARGETING_MCP_RETRY_BUDGET_MS: "200",
  });
  const { tools } = listed.parse(await (await post(url, "tools/list", {})).json()).result;
  expect(tools.length).toBeGreaterThan(10);
  for (const { name, inputSchema } of tools) {
    await fc.assert(
      fc.asyncProperty(valuesOf(inputSchema), async (args) => {
        const response = await post(url, "tools/call", { name, arguments: args });
        const text = await response.text();
        expect([200, 400]).toContain(response.status);
        expect(text).not.toContain("for a reason inside this server");
        expect(text).not.toContain("Internal");
      }),
      { seed: SEED, numRuns: RUNS_PER_TOOL },
    );
  }
  expect(logged().filter(({ level }) => level === "error")).toEqual([]);
});

/** Sends bytes as they are; gives what came back before the connection was closed. */
function sendRaw(url: string, bytes: string): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let received = "";
    socket.setEncoding("utf8");
    socket.on("data", (text) => {
      received += text;
    });
    socket.on("error", () => socket.destroy());
    socket.on("close", () => resolve(received));
    socket.end(bytes);
  });
}

const WORDS = fc.oneof(
  fc.string({ maxLength: 20 }),
  fc.constantFrom(
    "application/json",
    "text/event-stream",
    "127.0.0.1",
    "evil.example",
    "chunked",
    "5",
    "-1",
    "2026-07-28",
  ),
);
const HEADERS = fc.constantFrom(
  "Host",
  "Origin",
  "Content-Type",
  "Content-Length",
  "Transfer-Encoding",
  "Accept",
  "Authorization",
  "Mcp-Session-Id",
  "MCP-Protocol-Version",
  "Mcp-Method",
  "X-Request-Id",
  "X-Targeting-Api-Key",
);
const BODIES = fc.oneof(
  fc.string({ unit: "binary", maxLength: 60 }),
  fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value)),
  fc
    .record(
      { jsonrpc: fc.constantFrom("2.0", "1.0"), id: ANYTHING, method: WORDS, params: ANYTHING },
      { requiredKeys: [] },
    )
    .map((value) => JSON.stringify(value)),
);
const METHODS = fc.constantFrom("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE", "BREW");
const PATHS = fc.oneof(fc.constantFrom("/mcp", "/mcp/", "/healthz", "/", "//", "/mcp?x=%", "*"), fc.webPath());

test.each([[{}], [{ TARGETING_MCP_SESSIONS: "on" }]])("no bytes bring the server down (%j)", async (more) => {
  const { url, child } = await startHttp(more);
  await fc.assert(
    fc.asyncProperty(METHODS, PATHS, fc.array(fc.tuple(HEADERS, WORDS), { maxLength: 6 }), BODIES, async (...parts) => {
      const [method, path, headers, body] = parts;
      const lines = headers.map(([name, value]) => `${name}: ${value.replaceAll(/[\r\n\0]/g, "")}\r\n`);
      const known =
        "Host: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
      const length = `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n`;
      const answer = await sendRaw(url, `${method} ${path} HTTP/1.1\r\n${known}${length}${lines.join("")}\r\n${body}`);
      if (answer !== "") expect(answer).toMatch(/^HTTP\/1\.1 [2345]\d\d /);
      expect(answer).not.toMatch(/^HTTP\/1\.1 50[02]/);
    }),
    { seed: SEED, numRuns: 150 },
  );
  expect(child.exitCode).toBeNull();
  expect((await fetch(url.replace("/mcp", "/healthz"))).status).toBe(200);
});
