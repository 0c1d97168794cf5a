// Compares the time of a cheap tool call over stdio with that of a call to a minimal server with a single tool.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median, PROGRAMS, type ServerProcess, startServer } from "./server-process.ts";

const WARM_UP = 500;
const CALLS = 3000;

async function millisecondsOf(server: ServerProcess, call: object): Promise<number> {
  const begin = performance.now();
  const answer = await server.ask("tools/call", call);
  if (!answer.includes('"content"')) throw new Error(answer);
  return performance.now() - begin;
}

const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
const ours = startServer(PROGRAMS.ours, folder);
const control = startServer(PROGRAMS.control, folder);
const times: { readonly ours: number[]; readonly control: number[] } = { ours: [], control: [] };
// The servers alternate, so other work of the machine slows both equally.
for (let call = 0; call < WARM_UP + CALLS; call += 1) {
  const mine = await millisecondsOf(ours, { name: "get_targeting", arguments: {} });
  const other = await millisecondsOf(control, { name: "greet", arguments: { name: "you" } });
  if (call < WARM_UP) continue;
  times.ours.push(mine);
  times.control.push(other);
}
await Promise.all([ours.end(), control.end()]);
await rm(folder, { recursive: true });

const [mine, other] = [median(times.ours), median(times.control)];
console.log(`get_targeting ${(mine * 1000).toFixed(0)} µs, the one tool ${(other * 1000).toFixed(0)} µs`);
console.log(`a cheap call over stdio, compared with a one-tool server: ${(mine / other).toFixed(2)} (at most 1.3)`);
