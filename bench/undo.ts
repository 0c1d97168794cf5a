// Measures the undo of an import of 100,000 options: making the undo plan, and applying it, each by its own process
// against a sandbox. Prints peak memory, times, and how often the Context IDs of an option are read.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as z from "zod";
import { callTool, inFolder, peakOf, timed } from "./large-targeting.ts";
import { PROGRAMS, type ServerProcess, startServer } from "./server-process.ts";

const ROWS = Number(process.env.UNDO_ROWS ?? 100_000);
const MAX_MB = 300;

const made = z.object({ results: z.array(z.object({ data: z.object({ _id: z.string() }) })) });
const run = z.looseObject({ runId: z.string(), status: z.string(), counts: z.looseObject({ items: z.number() }) });

/** Starts the sandbox in its own process. */
async function startSandbox(): Promise<{ readonly url: string; readonly child: ChildProcess }> {
  const args = [PROGRAMS.ours, "sandbox", "--port", "0"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) {
    const [url] = /http:\/\/[\d.:]+/.exec(line) ?? [];
    if (url !== undefined) return { url, child };
  }
  throw new Error("the sandbox did not start");
}

async function newTargeting(url: string): Promise<string> {
  const headers = { "x-api-key": "sandbox-key", "content-type": "application/json" };
  const body = JSON.stringify({ items: [{ name: "Import" }] });
  const answer = await fetch(`${url}/context-targeting/bulk/create`, { method: "POST", headers, body });
  return made
    .parse(await answer.json())
    .results.map(({ data }) => data._id)
    .join();
}

/** Runs one step of the work with its own server. */
async function step(folder: string, url: string, name: string, args: object) {
  const settings = {
    TARGETING_MCP_SANDBOX_URL: url,
    TARGETING_MCP_ALLOWED_DIRS: folder,
    TARGETING_MCP_STATE_DIR: join(folder, "state"),
    TARGETING_MCP_CONFIRM: "off",
    TARGETING_MCP_WAIT_MS: "900000",
  };
  const server: ServerProcess = startServer(PROGRAMS.ours, folder, settings);
  try {
    await server.ask("tools/list");
    let answer: unknown;
    const ms = await timed(async () => {
      answer = await callTool(server, name, args);
    });
    const { runId, status, counts } = run.parse(answer);
    if (counts.items !== ROWS) throw new Error(`${name} is about ${counts.items} options`);
    return { runId, status, ms, peak: (await peakOf(server)) ?? Number.NaN };
  } finally {
    await server.end();
  }
}

const { url, child } = await startSandbox();
try {
  await inFolder(async (folder) => {
    const rows = Array.from({ length: ROWS }, (_, row) => `관심사 option ${row},context-${row}`);
    await writeFile(join(folder, "import.csv"), `name,contextId\n${rows.join("\n")}\n`);
    const targetingId = await newTargeting(url);
    const imported = await step(folder, url, "bulk_add_options", { targetingId, file: join(folder, "import.csv") });
    const planned = await step(folder, url, "undo_run", { runId: imported.runId });
    const applied = await step(folder, url, "apply_plan", { runId: planned.runId });
    if (applied.status !== "succeeded") throw new Error(`the undo ended as ${applied.status}`);
    for (const [what, { ms, peak }] of [
      ["import", imported],
      ["undo of it, planned", planned],
      ["undo of it, applied", applied],
    ] as const) {
      console.log(`${what} in ${ms.toFixed(0)} ms`);
      console.log(`${what}, memory at its peak: ${peak.toFixed(0)} MB (at most ${MAX_MB})`);
    }
  });
} finally {
  child.kill();
  await once(child, "exit");
}
