// The baseline for sending: posts prepared bodies from a file, one per line, one after another, and prints the cost.
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";
import { Pool } from "undici";

const [, , url = "", file = ""] = process.argv;
const bodies = [];
for await (const line of createInterface({ input: createReadStream(file) })) bodies.push(line);
const pool = new Pool(url, { connections: 1 });
const headers = { "x-api-key": "sandbox-key", "content-type": "application/json" };
const path = "/context-targeting/category/bulk/create";
const from = performance.now();
for (const body of bodies) {
  const answer = await pool.request({ method: "POST", path, headers, body });
  const { failed } = await answer.body.json();
  if (answer.statusCode !== 200 || failed !== 0) throw new Error(`status ${answer.statusCode}, ${failed} failed`);
}
const wallMs = performance.now() - from;
const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
console.log(JSON.stringify({ wallMs, cpuMs: (userCPUTime + systemCPUTime) / 1000, peakMb: maxRSS / 1024 }));
await pool.close();
