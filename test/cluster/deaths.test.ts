import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { manyProjects } from "./chaos/projects.ts";
import { call, killAll, type Member, reportOf, restOf, startReplica, startWorker } from "./cluster.ts";
import { type TestPostgres, testPostgres } from "./postgres.ts";

const PROJECTS = 10;
/** How often a worker is killed. */
const DEATHS = Number(process.env.TARGETING_MCP_TEST_DEATHS ?? 2);
const LONGEST_MS = 5000;

let postgres: TestPostgres;
let close = async (): Promise<void> => {};
beforeAll(async () => {
  postgres = await testPostgres();
});
afterEach(async () => {
  killAll();
  await close();
});
afterAll(() => postgres.stop());

test("ten runs of a worker that is killed go on within five seconds, each with its next request", async () => {
  const { service, gate, callers, settings, close: closeAll } = await manyProjects(PROJECTS);
  close = closeAll;
  const store = await postgres.database();
  const withStore = { ...settings, TARGETING_MCP_STORE: store };
  let number = 0;
  const started = async (): Promise<Member & { readonly number: number }> => {
    number += 1;
    return { ...(await startWorker({ ...withStore, ...(await gate.routesOf(number)) })), number };
  };
  const replica = await startReplica({
    ...withStore,
    ...(await gate.routesOf(0)),
    TARGETING_MCP_DRIVE: "off",
    TARGETING_MCP_WAIT_MS: "1000",
  });
  let worker = await started();
  const waits: number[] = [];
  for (let death = 0; death < DEATHS; death += 1) {
    await service.faults({ kind: "slow", delayMs: 700, on: "write", probability: 1 });
    const ofEach = (from: number, since: number) =>
      callers.map(({ key }) => gate.writes.find((one) => one.key === key && one.from === from && one.at >= since)?.at);
    const { number: dying } = worker;
    const before = Date.now();
    const runs = await Promise.all(
      callers.map(async ({ name, token }) => {
        const items = Array.from({ length: 1500 }, (_, at) => ({ name: `${name} ${death} ${at}` }));
        const { runId, status } = reportOf(await call(replica.url, "create_targetings", { items }, token));
        expect(status).toBe("running");
        return { runId, token };
      }),
    );
    await expect.poll(() => ofEach(dying, before).every((at) => at !== undefined), { timeout: 30_000 }).toBe(true);
    const next = await started();
    // At any moment of a request.
    await delay(death * 97);
    worker.child.kill("SIGKILL");
    const killedAt = Date.now();
    await expect
      .poll(() => ofEach(next.number, killedAt).every((at) => at !== undefined), { timeout: 30_000 })
      .toBe(true);
    const these = ofEach(next.number, killedAt).map((at = 0) => at - killedAt);
    process.stdout.write(`after kill -9: ${these.toSorted((one, other) => one - other).join(", ")} ms\n`);
    waits.push(...these);
    worker = next;
    await service.calm();
    for (const { runId, token } of runs) {
      expect(await restOf(replica.url, runId, 60_000, token)).toMatchObject({ status: "succeeded" });
    }
  }
  waits.sort((one, other) => one - other);
  const [median = 0, worst = 0] = [waits[Math.floor(waits.length / 2)], waits.at(-1)];
  process.stdout.write(`${waits.length} runs went on after ${median} ms (median), ${worst} ms (worst)\n`);
  expect(gate.overlaps).toEqual([]);
  expect(worst).toBeLessThan(LONGEST_MS);
});
