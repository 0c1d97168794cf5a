// Measures how get_run without arguments and a small write slow down with many stored runs, with the built command over
// stdio.
import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { median, PROGRAMS, type ServerProcess, startServer } from "./server-process.ts";

const FEW = 100;
const MANY = 10_000;
const CALLS = 100;
const WRITES = 30;

/** A retention setting with which no run is removed. */
const KEEP = { TARGETING_MCP_KEEP_RUNS: String(10 * MANY) };

const ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/** The age of the oldest run in milliseconds. The newest run ended a minute ago. */
const SPREAD_MS = 20 * 86_400_000;

/** Returns the ID of a run that was created at the given time. */
function runIdAt(time: number): string {
  let letters = "";
  for (let left = time; letters.length < 10; left = Math.floor(left / 32)) letters = ALPHABET[left % 32] + letters;
  for (const byte of randomBytes(16)) letters += ALPHABET[byte % 32];
  return letters;
}

/** Stores a finished run as a server does, but does not add it to the index. */
async function keepRun(folder: string, at: number): Promise<void> {
  const runId = runIdAt(at);
  const place = join(folder, runId);
  const call = { tool: "create_targetings", input: { items: [{ name: "Some targeting" }] } };
  const about = { caller: "local", fingerprint: runId.toLowerCase() };
  const header = {
    version: 1,
    runId,
    call,
    project: "0123456789abcdef",
    environment: "sandbox",
    createdAt: at,
    ...about,
  };
  const counts = { items: 1, pending: 0, succeeded: 1, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 0 };
  const summary = { tool: call.tool, ...about, status: "succeeded", counts, startedAt: at, updatedAt: at, open: false };
  await mkdir(place, { recursive: true });
  await writeFile(join(place, "run.json"), JSON.stringify(header));
  await writeFile(join(place, "record.1.json"), JSON.stringify({ version: 1, status: "running" }));
  await writeFile(join(place, "journal.ndjson"), "");
  await writeFile(join(place, "record.2.json"), JSON.stringify({ version: 2, status: "finished", rest: summary }));
}

/** Starts a server with `count` stored runs, and waits until its index contains them. */
async function serverWith(count: number): Promise<{ readonly server: ServerProcess; readonly folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
  const last = Date.now() - 60_000;
  for (let made = 0; made < count; made += 1) {
    await keepRun(join(folder, "runs"), Math.round(last - (SPREAD_MS * made) / count));
  }
  const first = startServer(PROGRAMS.ours, folder, KEEP);
  await millisecondsOf(first, "get_run", {});
  await first.end();
  return { server: startServer(PROGRAMS.ours, folder, KEEP), folder };
}

async function millisecondsOf(server: ServerProcess, name: string, args: object): Promise<number> {
  const begin = performance.now();
  const answer = await server.ask("tools/call", { name, arguments: args });
  const time = performance.now() - begin;
  if (answer.includes('"isError":true') || !answer.includes("succeeded")) throw new Error(answer.slice(0, 500));
  return time;
}

/**
 * The measured times in milliseconds: of lists of runs while nothing is written (`read`), of small writes (`write`),
 * and of lists right after a write (`after`).
 */
class Times {
  readonly read: number[] = [];
  readonly write: number[] = [];
  readonly after: number[] = [];
}

const sizes = [
  { ...(await serverWith(FEW)), times: new Times() },
  { ...(await serverWith(MANY)), times: new Times() },
];
// The servers alternate, so other work of the machine slows both equally.
for (let call = 0; call < CALLS; call += 1) {
  for (const { server, times } of sizes) times.read.push(await millisecondsOf(server, "get_run", {}));
}
for (let call = 0; call < WRITES; call += 1) {
  for (const { server, times } of sizes) {
    const args = { items: [{ name: `Targeting ${call}` }] };
    times.write.push(await millisecondsOf(server, "create_targetings", args));
    times.after.push(await millisecondsOf(server, "get_run", {}));
  }
}
for (const { server, folder } of sizes) {
  await server.end();
  await rm(folder, { recursive: true });
}

const WHAT = { read: "get_run without arguments", write: "a small write", after: "get_run right after a write" };
for (const measure of ["read", "write", "after"] as const) {
  const [few = Number.NaN, many = Number.NaN] = sizes.map(({ times }) => median(times[measure]));
  console.log(`${measure}: ${few.toFixed(2)} ms with ${FEW} stored runs, ${many.toFixed(2)} ms with ${MANY}`);
  console.log(
    `${WHAT[measure]}, with ${MANY} stored runs, compared with ${FEW}: ${(many / few).toFixed(2)} (at most 3)`,
  );
}
