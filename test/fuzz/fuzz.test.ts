import { createServer } from "node:http";
import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, expect, inject, test } from "vitest";
import * as z from "zod";
import { post } from "../support/http-server.ts";
import { startService } from "../support/service.ts";
import { served } from "../support/stub-server.ts";
import { ANYTHING, misfitsOf, valuesOf } from "./arguments.ts";
import { startWatched } from "./heap.ts";

/**
 * The seed, and how many times as many inputs as in the quick run. If a test fails, fast-check prints the seed and the
 * smallest failing case.
 */
const { seed, times } = inject("fuzz") ?? { seed: 20_260_728, times: 1 };
/** How many inputs the quick run tries for each tool, and in RAW over plain HTTP. */
const PER_TOOL = { fitting: 25, misfit: 8 } as const;
const RAW = 150;
/**
 * By how many bytes the heap may grow in the whole test. A leak of 2 KB for each input would be 30 MB in the long run.
 */
const MAX_GROWTH = 12 * 1_048_576;

let inputs = 0;
afterAll(() => {
  process.stdout.write(`fuzz: ${inputs} inputs, seed ${seed}\n`);
});

const listed = z.object({
  result: z.object({ tools: z.array(z.object({ name: z.string(), inputSchema: z.unknown() })) }),
});
const propertiesOf = (schema: unknown) =>
  z.looseObject({ properties: z.record(z.string(), z.unknown()).default({}) }).parse(schema).properties;
const META = {
  _meta: {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "fuzz", version: "1.0.0" },
    "io.modelcontextprotocol/clientCapabilities": {},
  },
};
const answered = z.union([
  z.object({ result: z.looseObject({ isError: z.boolean().optional() }) }),
  z.object({ error: z.looseObject({ code: z.number() }) }),
]);

/** Starts a server with its own service, and counts the requests that arrive there. */
async function start(more: Readonly<Record<string, string>> = {}) {
  const service = await startService();
  let arrived = 0;
  const counting = createServer((request, response) => {
    arrived += 1;
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", async () => {
      const { method = "GET", url = "/", headers } = request;
      const { "x-api-key": key, authorization } = headers;
      const sent = { ...(typeof key === "string" && { "x-api-key": key }), ...(authorization && { authorization }) };
      const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) };
      const answer = await fetch(service.url + url, { method, headers: sent, ...body });
      response.writeHead(answer.status, { "content-type": "application/json" }).end(await answer.text());
    });
  });
  const at = await served(counting);
  const server = await startWatched({
    ...service.live,
    TARGETING_API_URL: at,
    EVENT_API_URL: at,
    TARGETING_MCP_WAIT_MS: "300",
    TARGETING_MCP_RETRY_BUDGET_MS: "200",
    ...more,
  });
  const { tools } = listed.parse(await (await post(server.url, "tools/list", {})).json()).result;
  expect(tools.length).toBeGreaterThan(10);
  return { ...server, tools, arrived: () => arrived };
}

/** Checks a property with many inputs. */
async function overMany<T>(values: fc.Arbitrary<T>, count: number, check: (value: T) => Promise<void>): Promise<void> {
  const property = fc.asyncProperty(values, async (value) => {
    inputs += 1;
    await check(value);
  });
  await fc.assert(property, { seed, numRuns: Math.ceil(count), endOnFailure: true });
}

/** Calls a tool with any arguments. Returns the answer, which must always exist. */
function called(url: string, name: string, args: unknown) {
  return answerOf(post(url, "tools/call", { name, arguments: args }));
}

/** Calls a tool with arguments as JSON text, because JSON.stringify cannot write such deep ones. */
function calledWithJson(url: string, name: string, args: string) {
  const mark = "arguments stand here";
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { ...META, name, arguments: mark },
  });
  return answerOf(post(url, "tools/call", { name }, { body: body.replace(`"${mark}"`, () => args) }));
}

async function answerOf(sent: Promise<Response>) {
  const response = await sent;
  const text = await response.text();
  // A body that is too large for a tool is refused as a whole.
  expect([200, 400, 413]).toContain(response.status);
  expect(text).not.toContain("for a reason inside this server");
  expect(text).not.toContain("Internal");
  return { text, isRefused: isRefused(JSON.parse(text)) };
}

function isRefused(answer: unknown): boolean {
  const given = answered.parse(answer);
  return "error" in given || given.result.isError === true;
}

/** Does the same work twice. After the second time, memory may have grown only by what limited caches keep. */
async function withoutLeak(heap: () => Promise<number>, work: () => Promise<void>): Promise<void> {
  await work();
  const before = await heap();
  await work();
  expect((await heap()) - before).toBeLessThan(MAX_GROWTH);
}

test("no arguments make a tool fail in an unforeseen way, or stay in memory", { timeout: 900_000 }, async () => {
  const { url, logged, tools, heap, child } = await start();
  await withoutLeak(heap, async () => {
    for (const { name, inputSchema } of tools) {
      await overMany(valuesOf(inputSchema), (PER_TOOL.fitting * times) / 2, async (args) => {
        await called(url, name, args);
      });
    }
  });
  expect(child.exitCode).toBeNull();
  expect(logged().filter(({ level }) => level === "error")).toEqual([]);
});

/**
 * Returns whether a field is a parameter of the event. These may have any value, because they are judged as the service
 * would do it.
 */
function isJudged(field: string): boolean {
  return !["uid", "eventName", "extra", "dryRun"].includes(field);
}

test("arguments that do not fit are refused, and nothing is sent for them", { timeout: 300_000 }, async () => {
  const { url, tools, arrived } = await start();
  for (const { name, inputSchema } of tools) {
    const misfits = misfitsOf(inputSchema, (field) => name !== "track_event" || !isJudged(field));
    await overMany(misfits, PER_TOOL.misfit * times, async (args) => {
      const { text, isRefused: refused } = await called(url, name, args);
      expect(refused, text).toBe(true);
    });
  }
  expect(arrived()).toBe(0);
});

test("arguments nested very deep are refused like others, as they are and as JSON in a text", async () => {
  const { url, tools, logged } = await start();
  for (const depth of [65, 5000, 100_000]) {
    const array = `${"[".repeat(depth)}${"]".repeat(depth)}`;
    const object = `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`;
    for (const { name, inputSchema } of tools) {
      const fields = Object.keys(propertiesOf(inputSchema));
      for (const nested of [array, object, JSON.stringify(array), JSON.stringify(object)]) {
        const args = `{"${fields[inputs % fields.length]}":${nested}}`;
        inputs += 1;
        const { text, isRefused: refused } = await calledWithJson(url, name, args);
        // Where a text is allowed, deeply nested JSON in a text is only a text.
        if (!nested.startsWith('"')) expect(refused, text).toBe(true);
      }
    }
  }
  expect(logged().filter(({ level }) => level === "error")).toEqual([]);
});

const ID_TOOLS = [
  ["get_targeting", (id: string) => ({ targetingId: id })],
  ["list_options", (id: string) => ({ targetingId: id })],
  ["get_option", (id: string) => ({ optionId: id })],
  ["rename_targetings", (id: string) => ({ items: [{ _id: id, name: "Good name" }] })],
  ["update_options", (id: string) => ({ items: [{ _id: id, name: "Good name" }] })],
  ["update_contexts", (id: string) => ({ items: [{ _id: id, add: ["x"] }] })],
  ["delete_targeting", (id: string) => ({ ids: [id] })],
  ["delete_options", (id: string) => ({ ids: [id] })],
] as const;

test("IDs that are none, and names that break the rules, are refused, and nothing is sent for them", async () => {
  // On a busy machine, a run may need long to fail, so the call waits longer.
  const { url, arrived } = await start({ TARGETING_MCP_WAIT_MS: "20000" });
  // An empty ID counts as missing.
  const noUlid = fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 40 }),
    fc.stringMatching(/^[0-9A-Z]{26}U$/),
  );
  for (const [tool, argsOf] of ID_TOOLS) {
    await overMany(noUlid, 2 * times, async (id) => {
      expect((await called(url, tool, argsOf(id))).isRefused).toBe(true);
    });
  }
  const badName = fc.stringMatching(/^[가-힣a-zA-Z0-9 ]{0,20}[_.!#(){}\u4e00-\u4e0f]{1,3}[a-z]{0,4}$/);
  await overMany(badName, 2 * times, async (name) => {
    expect((await called(url, "create_targetings", { items: [{ name }] })).isRefused).toBe(true);
  });
  expect(arrived()).toBe(0);
});

/** Sends raw bytes. Returns what was received before the connection was closed. */
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
    "tools/list",
    "tools/call",
    "initialize",
    "resources/read",
    "subscriptions/listen",
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
const REQUESTS = fc.tuple(METHODS, PATHS, fc.array(fc.tuple(HEADERS, WORDS), { maxLength: 6 }), BODIES);

test.each([[{}], [{ TARGETING_MCP_SESSIONS: "on" }]])(
  "no bytes bring the server down, or stay in memory (%j)",
  { timeout: 300_000 },
  async (more) => {
    const { url, child, heap, arrived } = await start(more);
    await withoutLeak(heap, () =>
      overMany(REQUESTS, (RAW * times) / 2, async ([method, path, headers, body]) => {
        const lines = headers.map(([name, value]) => `${name}: ${value.replaceAll(/[\r\n\0]/g, "")}\r\n`);
        const known =
          "Host: 127.0.0.1\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
        const length = `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n`;
        const head = `${method} ${path} HTTP/1.1\r\n${known}${length}${lines.join("")}\r\n`;
        const answer = await sendRaw(url, head + body);
        if (answer !== "") expect(answer).toMatch(/^HTTP\/1\.1 [2345]\d\d /);
        expect(answer).not.toMatch(/^HTTP\/1\.1 50[02]/);
      }),
    );
    expect(child.exitCode).toBeNull();
    expect((await fetch(url.replace("/mcp", "/healthz"))).status).toBe(200);
    expect(arrived()).toBe(0);
  },
);
