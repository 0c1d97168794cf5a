// Starts the built command over HTTP with a slow sandbox, behind a proxy that renames tools. The conformance suite
// calls its own tool names. The proxy passes each call on to a tool of this server that has a similar task.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";

const MAIN = join(import.meta.dirname, "..", "..", "dist", "main.js");
/** Planning takes longer than a call may, so that the server asks the person through the task. */
const WAIT_MS = "400";
const SLOW_MS = 1000;

const sandbox = await startSandbox({ lockWaitMs: 0 });
const control = async (path: string, body: unknown): Promise<unknown> =>
  (await fetch(`${sandbox.url}/_sandbox${path}`, { method: "POST", body: JSON.stringify(body) })).json();
const seeded = z.object({ targetings: z.array(z.string()), options: z.array(z.string()) });
const { targetings } = seeded.parse(await control("/seed", { targetings: [{ name: "Fixtures" }] }));
const [targeting = ""] = targetings;
await control("/faults", {
  faults: ["trackEvent", "listOptions"].map((on) => ({ kind: "slow", delayMs: SLOW_MS, on, times: 100_000 })),
});

const child = spawn(process.execPath, [MAIN, "http", "--port", "0"], {
  env: {
    ...process.env,
    TARGETING_API_URL: sandbox.url,
    TARGETING_API_KEY: "sandbox-key",
    EVENT_API_URL: sandbox.url,
    EVENT_APP_KEY: "sandbox-app-key",
    TARGETING_MCP_CONFIRM: "ask",
    TARGETING_MCP_PAGE: "off",
    TARGETING_MCP_WAIT_MS: WAIT_MS,
  },
  stdio: ["ignore", "ignore", "pipe"],
});
process.once("exit", () => child.kill());
process.once("SIGTERM", () => process.exit());
const serving = z.looseObject({ message: z.literal("serving"), url: z.string() });
let url = "";
for await (const line of createInterface({ input: child.stderr })) {
  const { data } = serving.safeParse(JSON.parse(line));
  if (data === undefined) continue;
  ({ url } = data);
  break;
}
child.stderr.resume();

const called = z.looseObject({ seconds: z.number().optional(), label: z.string().optional() });
let count = 0;

/** Returns the call of this server for a tool of the suite: a name and arguments; undefined if there is none. */
async function behind(fixture: string, given: unknown) {
  count += 1;
  if (fixture === "slow_compute") {
    const { seconds = 0 } = called.parse(given);
    const event = { uid: `user-${count}`, eventName: "app_open" };
    if (seconds === 0) return { name: "track_event", arguments: { ...event, dryRun: true } };
    // Events of one person are sent one after another. Each takes a second.
    return { name: "track_events", arguments: { items: Array.from({ length: seconds }, () => event) } };
  }
  if (fixture === "failing_job") {
    return { name: "bulk_add_options", arguments: { targetingId: targeting, items: [{ name: "_" }] } };
  }
  if (fixture === "confirm_delete") {
    const name = `Option ${count}`;
    await control("/seed", { options: [{ targeting, name, contexts: ["c"] }] });
    return { name: "delete_options", arguments: { targetingId: targeting, names: [name] } };
  }
  return fixture === "greet" ? { name: "list_event_types", arguments: {} } : undefined;
}

const message = z.looseObject({
  method: z.string().optional(),
  params: z.looseObject({ name: z.unknown().optional(), arguments: z.unknown().optional() }).optional(),
});
const NOT_PASSED_ON: ReadonlySet<string> = new Set(["host", "connection", "content-length", "transfer-encoding"]);

const proxy = createServer((request, answer) => {
  const passOn = async (): Promise<void> => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    let body = Buffer.concat(chunks).toString("utf8");
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) {
      if (!NOT_PASSED_ON.has(name)) headers.set(name, String(value));
    }
    const { data } = message.safeParse(body === "" ? {} : JSON.parse(body));
    const fixture = String(data?.params?.name);
    const other = data?.method === "tools/call" ? await behind(fixture, data.params?.arguments) : undefined;
    if (data !== undefined && other !== undefined) {
      body = JSON.stringify({ ...data, params: { ...data.params, ...other } });
      // If the header names another tool than the call, it must stay wrong.
      if (headers.get("mcp-name") === fixture) headers.set("mcp-name", other.name);
    }
    const { method = "GET" } = request;
    const found = await fetch(url, { method, headers, ...(body !== "" && { body }) });
    const text = await found.text();
    answer.writeHead(found.status, { "content-type": found.headers.get("content-type") ?? "application/json" });
    // The suite expects one special text.
    const { name: who } = z.looseObject({ name: z.string().optional() }).safeParse(data?.params?.arguments).data ?? {};
    answer.end(fixture === "greet" ? greeting(text, who) : text);
  };
  passOn().catch((error: unknown) => answer.writeHead(500).end(String(error)));
});

/** Returns the answer of a tool that is not a task, with the text that the suite expects. */
function greeting(text: string, who = ""): string {
  const { data } = z
    .looseObject({ result: z.looseObject({ content: z.array(z.unknown()) }) })
    .safeParse(text.startsWith("{") ? JSON.parse(text) : undefined);
  if (data === undefined) return text;
  return JSON.stringify({ ...data, result: { ...data.result, content: [{ type: "text", text: `Hello, ${who}!` }] } });
}

proxy.listen(0, "127.0.0.1");
await once(proxy, "listening");
const address = proxy.address();
if (address === null || typeof address === "string") throw new TypeError("the proxy listens on no port");
process.stderr.write(`${JSON.stringify({ message: "serving", url: `http://127.0.0.1:${address.port}/mcp` })}\n`);
