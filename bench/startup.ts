// Compares the built command with a minimal server with one tool: the time and memory from the start to the list of
// tools.
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median, PROGRAMS, startServer } from "./server-process.ts";

const ROUNDS = 20;

/**
 * The result of a start: milliseconds until the list arrived, and the memory then in MB, if the operating system
 * reports it.
 */
interface Start {
  readonly ms: number;
  readonly memory: number | undefined;
}

async function start(program: string, folder: string): Promise<Start> {
  const begin = performance.now();
  const server = startServer(program, folder);
  await server.ask("tools/list");
  const ms = performance.now() - begin;
  const memory = await memoryOf(server.child.pid);
  await server.end();
  return { ms, memory };
}

async function memoryOf(pid: number | undefined): Promise<number | undefined> {
  if (process.platform !== "linux") return undefined;
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kilobytes) / 1024;
}

const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
const starts: Record<keyof typeof PROGRAMS, Start[]> = { ours: [], control: [] };
// The servers alternate, so other work of the machine slows both equally. The first round warms up the disk cache.
for (let round = 0; round <= ROUNDS; round += 1) {
  for (const name of ["ours", "control"] as const) {
    const measured = await start(PROGRAMS[name], folder);
    if (round > 0) starts[name].push(measured);
  }
}
await rm(folder, { recursive: true });

const timeOf = (all: readonly Start[]) => median(all.map(({ ms }) => ms));
const memoryOfAll = (all: readonly Start[]) => median(all.flatMap(({ memory }) => memory ?? []));
const ms = { ours: timeOf(starts.ours), control: timeOf(starts.control) };
const memory = { ours: memoryOfAll(starts.ours), control: memoryOfAll(starts.control) };
console.log(`to the list of tools ${ms.ours.toFixed(0)} ms, one tool ${ms.control.toFixed(0)} ms`);
console.log(`memory ${memory.ours.toFixed(0)} MB, one tool ${memory.control.toFixed(0)} MB`);
console.log(
  `start to the list of tools, compared with a one-tool server: ${(ms.ours / ms.control).toFixed(2)} (at most 0.9)`,
);
if (process.platform === "linux") {
  console.log(
    `memory after it, compared with a one-tool server: ${(memory.ours / memory.control).toFixed(2)} (at most 1.1)`,
  );
}
