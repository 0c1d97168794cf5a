import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import type { Task } from "../support/client-process.ts";
import { CLIENTS } from "../support/clients.ts";
import { startHttp } from "../support/http-server.ts";
import { builtProgram, COMMAND, cleanEnvironment, startNode } from "../support/server-process.ts";
import { optionItems, startService } from "../support/service.ts";

const CLIENT = [builtProgram("client-process")];
/** Three requests; the second is on its way when the client is killed. */
const OPTIONS = 12_000;

type Service = Awaited<ReturnType<typeof startService>>;

const lease = z.object({ released: z.boolean() });
const runs = z.object({ runs: z.array(z.looseObject({ runId: z.string(), tool: z.string(), status: z.string() })) });
const report = z.looseObject({ status: z.string(), counts: z.record(z.string(), z.number()) });

async function newTargeting({ url }: Service): Promise<string> {
  const response = await fetch(`${url}/context-targeting`, {
    method: "POST",
    headers: { "x-api-key": "sandbox-key" },
    body: JSON.stringify({ name: "Spring" }),
  });
  return z.looseObject({ _id: z.string() }).parse(await response.json())._id;
}

/** Has a client in a process of its own add options, and kills it with SIGKILL in the middle; gives what it wrote first. */
async function killInTheMiddle(service: Service, targetingId: string, task: Pick<Task, "client" | "url" | "env">) {
  const release = await service.hold("addOptions", { nth: 2 });
  const args = { targetingId, items: optionItems(OPTIONS) };
  const given: Task = { ...task, command: [COMMAND], tool: "bulk_add_options", args };
  const client = startNode(CLIENT);
  client.send(given);
  await expect.poll(() => service.count("addOptions").then((count) => `${count} ${client.stderr()}`)).toBe("2 ");
  client.child.kill("SIGKILL");
  await client.exited;
  await release();
  return Number(client.lines[0]);
}

/** Whether a process is there. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** What is in all leases below a folder: of projects, of runs and of the turns that equal calls take. */
async function leasesIn(stateDir: string) {
  const files = await readdir(stateDir, { recursive: true });
  const found = files.filter((file) => /\.lease\.\d+$/.test(file));
  return Promise.all(
    found.map(async (file) => lease.parse(JSON.parse(await readFile(join(stateDir, file), "utf8"))).released),
  );
}

/** Finishes what the killed client began, with another server: nothing is missing, and nothing was sent twice. */
async function expectNothingLost(service: Service, targetingId: string, stateDir: string): Promise<void> {
  const { url } = await startHttp({ ...service.live, TARGETING_MCP_STATE_DIR: stateDir });
  const client = await CLIENTS["2026 client, modern"]({ url });
  const listed = runs.parse((await client.callTool("get_run", {})).structuredContent).runs;
  expect(listed).toHaveLength(1);
  const { structuredContent } = await client.callTool("resume_run", { runId: listed[0]?.runId });
  expect(report.parse(structuredContent)).toMatchObject({
    status: "succeeded",
    counts: { items: OPTIONS, succeeded: OPTIONS },
  });
  expect(await service.count("addOptions")).toBe(3);
  const all = await fetch(`${service.url}/context-targeting/${targetingId}/category?limit=1`, {
    headers: { "x-api-key": "sandbox-key" },
  });
  expect(await all.json()).toMatchObject({ total: OPTIONS });
}

describe("a client that is killed in the middle of a call leaves no process, no lock and no unknown write", () => {
  test.each(["modern", "legacy", "old"] as const)("over stdio: %s", async (client) => {
    const service = await startService();
    const targetingId = await newTargeting(service);
    const env = cleanEnvironment(service.live);
    const stateDir = env.TARGETING_MCP_STATE_DIR ?? "";
    const pid = await killInTheMiddle(service, targetingId, { client, env });
    expect(pid).toBeGreaterThan(0);
    await expect.poll(() => isAlive(pid)).toBe(false);
    expect(await leasesIn(stateDir)).toEqual([true, true, true]);
    await expectNothingLost(service, targetingId, stateDir);
  });

  test.each([
    ["modern", {}],
    ["old", {}],
    ["old", { TARGETING_MCP_SESSIONS: "on" }],
  ] as const)("over HTTP: %s %j", async (client, more) => {
    const service = await startService();
    const targetingId = await newTargeting(service);
    const server = await startHttp({ ...service.live, ...more });
    await killInTheMiddle(service, targetingId, { client, url: server.url, env: {} });
    await expect.poll(() => leasesIn(server.stateDir)).toEqual([true, true, true]);
    expect((await fetch(server.url.replace("/mcp", "/healthz"))).status).toBe(200);
    await expectNothingLost(service, targetingId, server.stateDir);
  });
});
