import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { closedPort } from "../../support/stub-server.ts";
import { startMember, withPostgres } from "../cluster.ts";
import { statement } from "../postgres.ts";
import { storeProxy } from "../store-proxy.ts";

/** Longer than a session with the database may go without an answer. */
const SILENT_MS = 12_000;
const HOLDERS = `
  select l.pid, l.objid::int as number from pg_locks l join pg_database d on d.oid = l.database
  where d.datname = current_database() and l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.objid > 0`;

const cluster = withPostgres();

/**
 * Starts a worker whose connections to the store a test can make silent: all of them, or only the one for its sign of
 * life.
 */
async function workerBehind(which: "TARGETING_MCP_STORE" | "TARGETING_MCP_STORE_LISTEN") {
  const store = await cluster.postgres.database();
  const way = await storeProxy(cluster.postgres.port);
  cluster.closing.push(way.close);
  const worker = startMember(["worker"], {
    TARGETING_MCP_MODE: "sandbox",
    TARGETING_MCP_SANDBOX_URL: await closedPort(),
    TARGETING_MCP_STORE: store,
    [which]: way.through(store),
  });
  await worker.logged("driving");
  const holders = async () => (await statement(store, HOLDERS)).rows;
  const [before] = await holders();
  expect(before).toEqual({ pid: expect.any(Number), number: expect.any(Number) });
  return { store, way, worker, holders, before };
}

test("a sign of life that ended without the process hearing of it is shown again", async () => {
  const { store, way, holders, before } = await workerBehind("TARGETING_MCP_STORE_LISTEN");
  way.hang();
  await statement(store, `select pg_terminate_backend(${before.pid})`);
  await expect.poll(holders).toEqual([]);
  await delay(500);
  // New connections work again. Over the old one, nothing will ever arrive.
  way.pass();
  await expect.poll(holders).toEqual([{ pid: expect.any(Number), number: before.number }]);
});

test("a session that the server still believes in is replaced, and the process keeps its number", async () => {
  const { way, holders, before } = await workerBehind("TARGETING_MCP_STORE_LISTEN");
  way.hang();
  await delay(SILENT_MS);
  expect(await holders()).toEqual([before]);
  way.pass();
  await expect
    .poll(async () => (await holders()).filter(({ pid }) => pid !== before.pid))
    .toEqual([{ pid: expect.any(Number), number: before.number }]);
  expect(await holders()).toHaveLength(1);
});

test("a process ends in time, although nothing comes over the way to its store", async () => {
  const { way, worker } = await workerBehind("TARGETING_MCP_STORE");
  way.hang();
  await delay(1000);
  const asked = Date.now();
  worker.child.kill("SIGTERM");
  expect(await worker.exited).toBe(0);
  expect(Date.now() - asked).toBeLessThan(8000);
});
