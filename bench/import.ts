// Measures the import of 100,000 options from a CSV file by the built command over stdio. The comparison is a bare loop
// that posts the same prepared bodies to the same sandbox. The sandbox answers immediately, or after 50 ms per request.
// Prints ratios, and how much more memory 100,000 rows need than 10,000.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as z from "zod";

const ROWS = 100_000;
const FEWER_ROWS = 10_000;
const PER_REQUEST = 5000;
const ROUNDS = 8;
const SLOW_MS = 50;
const COMMAND = join(import.meta.dirname, "..", "dist", "main.js");
const BARE_LOOP = join(import.meta.dirname, "bare-loop.mjs");

/** What a process used: milliseconds, milliseconds of processor time, and its peak memory in mebibytes. */
interface Cost {
  readonly wallMs: number;
  readonly cpuMs: number;
  readonly peakMb: number;
}

const made = z.object({ results: z.array(z.object({ data: z.object({ _id: z.string() }) })) });
const reply = z.looseObject({
  id: z.unknown(),
  result: z.looseObject({ structuredContent: z.looseObject({ status: z.string().optional() }).optional() }).optional(),
});

const folder = await mkdtemp(join(tmpdir(), "targeting-import-"));
const sandbox = await startSandbox();
try {
  for (const rows of [FEWER_ROWS, ROWS]) await writeFile(join(folder, `${rows}.csv`), csvOf(rows));
  const bare: Cost[] = [];
  const imports: Cost[] = [];
  const fewer: Cost[] = [];
  const slowBare: Cost[] = [];
  const slowImports: Cost[] = [];
  for (const [latencyMs, ofBare, ofImports] of [
    [0, bare, imports],
    [SLOW_MS, slowBare, slowImports],
  ] as const) {
    const measureBare = async () => ofBare.push(await bareLoop(await newTargeting(latencyMs), ROWS));
    const measureImport = async () => ofImports.push(await importFile(await newTargeting(latencyMs), ROWS));
    // The order alternates, because a large import leaves garbage that slows the sandbox for the next one.
    for (let round = 0; round < ROUNDS; round += 1) {
      for (const measure of round % 2 === 0 ? [measureBare, measureImport] : [measureImport, measureBare])
        await measure();
    }
  }
  for (let round = 0; round < ROUNDS; round += 1) fewer.push(await importFile(await newTargeting(), FEWER_ROWS));
  for (const [what, costs] of [
    ["bare loop", bare],
    [`import of ${ROWS} rows`, imports],
    [`import of ${FEWER_ROWS} rows`, fewer],
    [`bare loop, ${SLOW_MS} ms a request`, slowBare],
    [`import of ${ROWS} rows, ${SLOW_MS} ms a request`, slowImports],
  ] as const) {
    console.log(
      `${what}: ${median(costs, "wallMs").toFixed(0)} ms, ${median(costs, "cpuMs").toFixed(0)} ms of processor time, ` +
        `${median(costs, "peakMb").toFixed(0)} MB at its peak`,
    );
  }
  // Each ratio compares two values of the same round. If the machine is slower for a while, both are.
  const ratio = (of: keyof Cost, ours: readonly Cost[], control: readonly Cost[]): string =>
    middle(ours.map((cost, round) => cost[of] / (control[round]?.[of] ?? Number.NaN))).toFixed(2);
  console.log(`time: ${ratio("wallMs", imports, bare)} times the bare loop (at most 1.35)`);
  console.log(
    `time, ${SLOW_MS} ms a request: ${ratio("wallMs", slowImports, slowBare)} times the bare loop (at most 1.05)`,
  );
  console.log(`processor time: ${ratio("cpuMs", imports, bare)} times the bare loop (at most 2.2)`);
  const growth = median(imports, "peakMb") - median(fewer, "peakMb");
  console.log(
    `memory: ${median(imports, "peakMb").toFixed(0)} MB (at most 200), ${growth.toFixed(0)} MB more (at most 40)`,
  );
} finally {
  sandbox.child.kill();
  await rm(folder, { recursive: true, force: true });
}

function csvOf(rows: number): string {
  const lines = Array.from({ length: rows }, (_, row) => `${nameOf(row)},${contextOf(row)}`);
  return `name,contextId\n${lines.join("\n")}\n`;
}

function nameOf(row: number): string {
  return `관심사 option ${row}`;
}

function contextOf(row: number): string {
  return `context-${row}`;
}

/** Starts the sandbox in its own process. */
async function startSandbox(): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const child = spawn(process.execPath, [COMMAND, "sandbox", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const [url] = /http:\/\/[\d.:]+/.exec(line) ?? [];
    if (url !== undefined) return { url, child };
  }
  throw new Error("the sandbox did not start");
}

/** Resets the sandbox and creates a targeting in it. Each request then takes `latencyMs`. */
async function newTargeting(latencyMs = 0): Promise<string> {
  await post("/_sandbox/reset", {});
  const body = await post("/context-targeting/bulk/create", { items: [{ name: "Import" }] });
  if (latencyMs > 0) {
    const slow = { kind: "slow", delayMs: latencyMs, on: "any", times: 1_000_000 };
    await post("/_sandbox/faults", { faults: [slow] });
  }
  return made.parse(body).results[0]?.data._id ?? "";
}

async function post(path: string, body: unknown): Promise<unknown> {
  const headers = { "x-api-key": "sandbox-key", "content-type": "application/json" };
  const response = await fetch(sandbox.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 200)}`);
  return text === "" ? undefined : JSON.parse(text);
}

/** Posts prepared bodies one after another, in a separate process. */
async function bareLoop(targeting: string, rows: number): Promise<Cost> {
  const bodies = Array.from({ length: rows / PER_REQUEST }, (_, request) =>
    JSON.stringify({
      items: Array.from({ length: PER_REQUEST }, (_, at) => {
        const row = request * PER_REQUEST + at;
        return { targeting, name: nameOf(row), contexts: [contextOf(row)] };
      }),
    }),
  );
  await writeFile(join(folder, "bodies.ndjson"), `${bodies.join("\n")}\n`);
  const child = spawn(process.execPath, [BARE_LOOP, sandbox.url, join(folder, "bodies.ndjson")], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const cost = z.object({ wallMs: z.number(), cpuMs: z.number(), peakMb: z.number() });
  const [line] = await Promise.all([firstLine(child), once(child, "exit")]);
  return cost.parse(JSON.parse(line));
}

async function firstLine({ stdout }: ChildProcess): Promise<string> {
  if (stdout !== null) for await (const line of createInterface({ input: stdout })) return line;
  throw new Error("nothing was said");
}

/**
 * Imports a file with one call of the built command. The time is that of the call; the other values are those of the
 * process.
 */
async function importFile(targetingId: string, rows: number): Promise<Cost> {
  const child = spawn(process.execPath, [COMMAND], {
    stdio: ["pipe", "pipe", "inherit"],
    env: {
      TARGETING_MCP_SANDBOX_URL: sandbox.url,
      TARGETING_MCP_ALLOWED_DIRS: folder,
      TARGETING_MCP_STATE_DIR: join(folder, "state"),
      TARGETING_MCP_LOG_LEVEL: "error",
    },
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (id: number, method: string, params: unknown) => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id, method, params })}\n`);
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error("the command ended");
      const answer = reply.parse(JSON.parse(value));
      if (answer.id === id) return answer.result?.structuredContent;
    }
  };
  const clientInfo = { name: "bench", version: "1" };
  await ask(1, "initialize", { protocolVersion: "2025-06-18", capabilities: {}, clientInfo });
  child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" })}\n`);
  const from = performance.now();
  const args = { targetingId, file: `${rows}.csv` };
  const result = await ask(2, "tools/call", { name: "bulk_add_options", arguments: args });
  const wallMs = performance.now() - from;
  if (result?.status !== "succeeded") throw new Error(`the import ended otherwise: ${JSON.stringify(result)}`);
  const cost = { wallMs, ...(await usageOf(child.pid ?? 0)) };
  child.stdin.end();
  await once(child, "exit");
  return cost;
}

/** Returns what a running process has used so far, as reported by Linux. */
async function usageOf(pid: number): Promise<Omit<Cost, "wallMs">> {
  const [status, stat] = await Promise.all([
    readFile(`/proc/${pid}/status`, "utf8"),
    readFile(`/proc/${pid}/stat`, "utf8"),
  ]);
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return { cpuMs: ticks * 10, peakMb: Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024 };
}

function median(costs: readonly Cost[], of: keyof Cost): number {
  return middle(costs.map((cost) => cost[of]));
}

function middle(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((one, other) => one - other);
  const half = (sorted.length - 1) / 2;
  return ((sorted[Math.floor(half)] ?? 0) + (sorted[Math.ceil(half)] ?? 0)) / 2;
}
