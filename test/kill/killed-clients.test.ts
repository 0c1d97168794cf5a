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
/** These need three requests. The client is killed while the second is on its way. */
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

/** Starts a client in its own process. Kills it while it adds options. Returns the first line that the client wrote. */
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

/** Returns whether a process still runs. */
function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Returns the contents of all lease files in a folder: of projects, of runs, and of equal calls. */
async function leasesIn(stateDir: string) {
  const files = await readdir(stateDir, { recursive: true });
  const found = files.filter((file) => /\.lease\.\d+$/.test(file));
  return Promise.all(
    found.map(async (file) => lease.parse(JSON.parse(await readFile(join(stateDir, file), "utf8"))).released),
  );
}

/**
 * Finishes the killed client's call with another server. Checks that nothing is missing, and nothing was sent twice.
 */
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
