// Time and memory from spawning the built command to its list of tools, beside a server with one tool on the same SDK,
// started from the SDK's own unbundled package. Prints medians and ratios; exits 1 where a ratio is above its target.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

const ROUNDS = 20;
const MOST_TIME_RATIO = 0.9;

const MESSAGES: readonly unknown[] = [
  {
    jsonrpc: "2.0",
    id: 0,
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "bench", version: "1" } },
  },
  { jsonrpc: "2.0", method: "notifications/initialized" },
  { jsonrpc: "2.0", id: 1, method: "tools/list" },
];

/** A start: milliseconds until the list was there, and the memory then, in MB (only where the system tells). */
interface Start {
  readonly ms: number;
  readonly memory: number | undefined;
}

async function start(program: string, folder: string): Promise<Start> {
  const begin = performance.now();
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env.PATH, TARGETING_MCP_STATE_DIR: folder, TARGETING_MCP_LOG_LEVEL: "silent" },
    stdio: ["pipe", "pipe", "inherit"],
  });
  for (const message of MESSAGES) child.stdin.write(`${JSON.stringify(message)}\n`);
  await listOf(child);
  const ms = performance.now() - begin;
  const memory = await memoryOf(child.pid);
  const ended = once(child, "exit");
  child.stdin.end();
  await ended;
  return { ms, memory };
}

async function listOf(child: ChildProcessByStdio<Writable, Readable, null>): Promise<void> {
  for await (const line of createInterface({ input: child.stdout })) if (line.includes('"tools":[')) return;
  throw new Error("the server ended without listing its tools");
}

async function memoryOf(pid: number | undefined): Promise<number | undefined> {
  if (process.platform !== "linux") return undefined;
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

function median(numbers: readonly number[]): number {
  const sorted = [...numbers].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
const programs = {
  ours: join(import.meta.dirname, "..", "dist", "main.js"),
  one: join(import.meta.dirname, "one-tool-server.mjs"),
} as const;
const starts: Record<keyof typeof programs, Start[]> = { ours: [], one: [] };
// One after the other in turn, so that whatever else the machine does strikes both; the first round warms the disk.
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const name of ["ours", "one"] as const) {
    const measured = await start(programs[name], folder);
    if (round > 0) starts[name].push(measured);
  }
}
await rm(folder, { recursive: true });

const ms = { ours: median(starts.ours.map((one) => one.ms)), one: median(starts.one.map((one) => one.ms)) };
const memoryOfAll = (all: readonly Start[]) => median(all.flatMap(({ memory }) => memory ?? []));
const memory = { ours: memoryOfAll(starts.ours), one: memoryOfAll(starts.one) };
const timeRatio = ms.ours / ms.one;
console.log(`to the list of tools: ${ms.ours.toFixed(0)} ms, one tool: ${ms.one.toFixed(0)} ms`);
console.log(`ratio of time: ${timeRatio.toFixed(2)} (at most ${MOST_TIME_RATIO})`);
console.log(`memory: ${memory.ours.toFixed(0)} MB, one tool: ${memory.one.toFixed(0)} MB`);
console.log(`ratio of memory: ${(memory.ours / memory.one).toFixed(2)}`);
process.exitCode = timeRatio <= MOST_TIME_RATIO ? 0 : 1;
