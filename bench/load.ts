// Runs a mixed load of eight callers over HTTP. Measures errors, memory, and how much longer a confirmed deletion takes
// than its requests. `npm run bench -- load`; LOAD_SECONDS sets the duration (default: 300).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Pool } from "undici";
import * as z from "zod";
import { callerAt, confirmed, imported, mixedLoad } from "./mixed-load.ts";
import { median, PROGRAMS } from "./server-process.ts";

const SECONDS = Number(process.env.LOAD_SECONDS ?? 300);
const CALLERS = 8;
const SLICES = 12;
const DELETED = 2000;
const DELETIONS = 5;

const COLLECT = `process.on("SIGUSR2", () => {
  for (let round = 0; round < 3; round += 1) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  process.stderr.write(JSON.stringify({ message: "memory", bytes: heapUsed + external }) + "\\n");
});`;

const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
const tokens = Array.from({ length: CALLERS }, (_, n) => ({ name: `caller-${n}`, token: `token-of-caller-${n}-0001` }));
await writeFile(join(folder, "access.json"), JSON.stringify({ tokens }), { mode: 0o600 });

const sandbox = spawn(process.execPath, [PROGRAMS.ours, "sandbox", "--port", "0"], {
  stdio: ["ignore", "pipe", "inherit"],
});
const [firstLines] = await once(sandbox.stdout, "data");
const service = /http:\/\/\S+/.exec(String(firstLines))?.[0];
if (service === undefined) throw new Error("the sandbox did not start; is dist/ built?");
sandbox.stdout.resume();

/** Forwards requests to the service, and measures how long at least one request was pending. */
const pool = new Pool(service, { connections: 64 });
const busy = { requests: 0, since: 0, total: 0 };
const watching = createServer(async (request, response) => {
  if (busy.requests === 0) busy.since = performance.now();
  busy.requests += 1;
  const { "x-api-key": key, authorization, "content-type": type } = request.headers;
  const headers = { "x-api-key": key, authorization, "content-type": type };
  const path = request.url ?? "/";
  const method = z.enum(["GET", "POST", "PUT", "PATCH", "DELETE"]).parse(request.method);
  const answered = await pool.request({ method, path, headers, body: method === "GET" ? null : request });
  response.writeHead(answered.statusCode, answered.headers);
  response.end(Buffer.from(await answered.body.arrayBuffer()));
  busy.requests -= 1;
  if (busy.requests === 0) busy.total += performance.now() - busy.since;
});
watching.listen(0, "127.0.0.1");
await once(watching, "listening");
const { port } = z.object({ port: z.number() }).parse(watching.address());

const server = spawn(
  process.execPath,
  ["--expose-gc", `--import=data:text/javascript,${encodeURIComponent(COLLECT)}`, PROGRAMS.ours, "http", "--port", "0"],
  {
    env: {
      PATH: process.env.PATH,
      TARGETING_MCP_STATE_DIR: join(folder, "state"),
      TARGETING_MCP_ACCESS_FILE: join(folder, "access.json"),
      TARGETING_MCP_MODE: "live",
      TARGETING_API_URL: `http://127.0.0.1:${port}`,
      TARGETING_API_KEY: "sandbox-key",
      EVENT_API_URL: `http://127.0.0.1:${port}`,
      EVENT_APP_KEY: "sandbox-app-key",
      TARGETING_MCP_CONFIRM: "ask",
      TARGETING_MCP_MAX_DELETES: String(DELETED),
    },
    stdio: ["ignore", "inherit", "pipe"],
  },
);
const line = z.looseObject({ message: z.string(), level: z.string().optional(), url: z.string().optional() });
const logged = createInterface({ input: server.stderr })[Symbol.asyncIterator]();
const problems: string[] = [];
/**
 * Waits for the next line of the server's log that has this message, and returns it. Collects errors and warnings on
 * the way.
 */
async function said(message: string) {
  for (;;) {
    const { value, done } = await logged.next();
    if (done) throw new Error("the server ended");
    const one = line.parse(JSON.parse(value));
    if (one.level === "error" || one.level === "warn") problems.push(value);
    if (one.message === message) return one;
  }
}

async function memory(): Promise<number> {
  server.kill("SIGUSR2");
  return z.object({ bytes: z.number() }).parse(await said("memory")).bytes;
}

const { url = "" } = await said("serving");
const callers = tokens.map(({ token }) => callerAt(url, token));
const began = Date.now();
const sizes: number[] = [];
let calls = 0;
const errors: string[] = [];
for (let slice = 1; slice <= SLICES; slice += 1) {
  const until = began + (slice * SECONDS * 1000) / SLICES;
  const done = await mixedLoad(callers, until, `Load ${slice}`);
  calls += done.calls;
  errors.push(...done.errors);
  sizes.push(await memory());
}
const seconds = (Date.now() - began) / 1000;
const megabytes = sizes.map((bytes) => (bytes / 1_048_576).toFixed(1)).join(" ");
console.log(`${CALLERS} callers, ${calls} calls in ${seconds.toFixed(0)} s; MB after each part: ${megabytes}`);
for (const error of [...errors, ...problems].slice(0, 10)) console.log(error);
console.log(`errors of a mixed load over HTTP: ${errors.length + problems.length} (at most 0)`);
// The first parts are a warm-up.
const [early, late] = [median(sizes.slice(2, 5)), median(sizes.slice(-3))];
console.log(
  `memory after a mixed load, compared with the memory near its beginning: ${(late / early).toFixed(2)} (at most 1.15)`,
);

const ratios: number[] = [];
const [call] = callers;
if (call === undefined) throw new Error("there is no caller");
for (let number = 0; number < DELETIONS; number += 1) {
  const targetingId = await imported(call, `Deletion ${number}`, DELETED);
  const ids: string[] = [];
  for (let cursor: unknown; ids.length < DELETED; ) {
    const page = await call("list_options", { targetingId, limit: 1000, ...(cursor !== undefined && { cursor }) });
    ids.push(...page.options.map(({ _id }) => _id));
    cursor = page.cursor;
  }
  const { confirmation } = await call("delete_options", { ids });
  const [before, start] = [busy.total, performance.now()];
  const done = await call("delete_options", { confirmation: confirmation?.token });
  const took = performance.now() - start;
  if (done.counts.succeeded !== DELETED) throw new Error(JSON.stringify(done.counts));
  console.log(
    `deleting ${DELETED} options: ${took.toFixed(0)} ms, its requests ${(busy.total - before).toFixed(0)} ms`,
  );
  ratios.push(took / (busy.total - before));
  await confirmed(call, "delete_targeting", { ids: [targetingId] });
}
console.log(
  `a confirmed deletion of 2,000 options, compared with the time of its requests: ${median(ratios).toFixed(2)} (at most 2)`,
);

server.kill("SIGTERM");
await once(server, "close");
watching.close();
watching.closeAllConnections();
await pool.close();
sandbox.kill();
await rm(folder, { recursive: true });
