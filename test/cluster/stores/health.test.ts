import { setTimeout as delay } from "node:timers/promises";
import { expect, test, vi } from "vitest";
import { optionItems, restOf, runOf, startMember, startReplica, startService, withPostgres } from "../cluster.ts";
import { storeProxy } from "../store-proxy.ts";

const cluster = withPostgres();

/** Starts a service with an empty store. Returns it, and the settings of processes that use them. */
async function serviceAndSettings() {
  const service = await startService();
  cluster.closing.push(service.close);
  const settings = {
    TARGETING_API_URL: service.url,
    TARGETING_API_KEY: "sandbox-key",
    TARGETING_MCP_MODE: "live",
    TARGETING_MCP_STORE: await cluster.postgres.database(),
    TARGETING_MCP_METRICS: "on",
  };
  return { service, settings };
}

async function start() {
  const { service, settings } = await serviceAndSettings();
  const replica = await startReplica({ ...settings, TARGETING_MCP_DRIVE: "off" });
  const worker = startMember(["worker", "--port", "0"], settings);
  const { url = "" } = await worker.logged("driving");
  return { service, replica, worker: url };
}

const get = async (url: string, path: string) => {
  const answer = await fetch(new URL(path, url));
  return { status: answer.status, text: await answer.text() };
};

test("a worker's figures tell of the runs that it drives for a replica", async () => {
  const { service, replica, worker } = await start();
  const targetingId = await service.targeting("Spring");
  const begun = await runOf(replica.url, "bulk_add_options", { targetingId, items: optionItems(3) });
  expect((await restOf(replica.url, begun.runId)).status).toBe("succeeded");
  const { text } = await get(worker, "/metrics");
  expect(text).toContain('targeting_mcp_runs_total{tool="bulk_add_options",status="succeeded"} 1\n');
  expect(text).toContain('targeting_mcp_items_total{tool="bulk_add_options",outcome="succeeded"} 3\n');
  expect(text).toContain('targeting_mcp_api_requests_total{operation="addOptions",result="200"} 1\n');
  const { text: ofReplica } = await get(replica.url, "/metrics");
  expect(ofReplica).toContain('targeting_mcp_calls_total{tool="bulk_add_options",result="ok"} 1\n');
  expect(ofReplica).not.toContain('operation="addOptions"');
}, 60_000);

test("without its store a process lives and is not ready, and is ready again by itself", async () => {
  const { replica, worker } = await start();
  const statuses = async () => {
    const asked = [replica.url, worker].flatMap((url) => [get(url, "/healthz"), get(url, "/readyz")]);
    return (await Promise.all(asked)).map(({ status }) => status);
  };
  expect(await statuses()).toEqual([200, 200, 200, 200]);
  await cluster.postgres.kill();
  await vi.waitFor(async () => expect(await statuses()).toEqual([200, 503, 200, 503]), { timeout: 10_000 });
  expect((await get(worker, "/readyz")).text).toBe('{"status":"the store cannot be used"}');
  await cluster.postgres.start();
  await vi.waitFor(async () => expect(await statuses()).toEqual([200, 200, 200, 200]), { timeout: 20_000 });
}, 90_000);

test.each(["http", "worker"])(
  "a process that cannot listen ends: %s",
  async (command) => {
    const { settings } = await serviceAndSettings();
    const replica = await startReplica({ ...settings, TARGETING_MCP_DRIVE: "off" });
    const late = startMember([command, "--port", new URL(replica.url).port], settings);
    expect(await late.exited).toBeGreaterThan(0);
    expect(late.stderr()).toContain("EADDRINUSE");
  },
  60_000,
);

/** Longer than a failed statement is repeated. */
const AWAY_MS = 7000;

test("a process that starts waits for a store that goes away at any moment of the start", async () => {
  const startsWith = async (connections: number) => {
    const way = await storeProxy(cluster.postgres.port);
    cluster.closing.push(way.close);
    const gone = way.cutAfter(connections);
    const replica = startReplica({ TARGETING_MCP_STORE: way.through(await cluster.postgres.database()) });
    await gone;
    await delay(AWAY_MS);
    way.pass();
    const { url } = await replica;
    await expect.poll(async () => (await get(url, "/readyz")).status).toBe(200);
    return "ready";
  };
  // The connections of a start: one inspects the server, two try its locks, one creates the tables, one checks them, one
  // reads the key, and one shows that the process is alive.
  expect(await Promise.all([0, 1, 3, 4, 5, 6].map(startsWith))).toEqual(Array(6).fill("ready"));
}, 120_000);
