import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import * as z from "zod";
import { manyProjects } from "./chaos/projects.ts";
import { isLong, type Member, restOf, runOf, startReplica, startWorker, withPostgres } from "./cluster.ts";
import { statement } from "./postgres.ts";

const PROJECTS = 10;
/** How often a worker with ten runs is killed. More than a few deaths need a machine without other work. */
const DEATHS = Number(process.env.TARGETING_MCP_TEST_DEATHS ?? 2);
const LONGEST_MS = 5000;

const cluster = withPostgres();

/**
 * Returns whether PostgreSQL has run for 5 seconds. Before that, the store counts all processes as alive, so that they
 * can connect again.
 */
async function hasRunForLong(store: string): Promise<boolean> {
  const query = "select pg_postmaster_start_time() < clock_timestamp() - interval '5 seconds' as is";
  return (await statement(store, query)).rows[0]?.is === true;
}

test.runIf(isLong)(
  "ten runs of a worker that is killed go on within five seconds, each with its next request",
  async () => {
    const { service, gate, callers, settings, close } = await manyProjects(PROJECTS);
    cluster.closing.push(close);
    const store = await cluster.postgres.database();
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
        callers.map(
          ({ key }) => gate.writes.find((one) => one.key === key && one.from === from && one.at >= since)?.at,
        );
      const { number: dying } = worker;
      const before = Date.now();
      const runs = await Promise.all(
        callers.map(async ({ name, token }) => {
          const items = Array.from({ length: 1500 }, (_, at) => ({ name: `${name} ${death} ${at}` }));
          const { runId, status } = await runOf(replica.url, "create_targetings", { items }, token);
          expect(status).toBe("running");
          return { runId, token };
        }),
      );
      await expect.poll(() => ofEach(dying, before).every((at) => at !== undefined), { timeout: 30_000 }).toBe(true);
      const next = await started();
      await expect.poll(() => hasRunForLong(store)).toBe(true);
      // The worker dies at a different moment of a request each time.
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
  },
);

test("a run of a worker that is killed is claimed within five seconds, and goes on", async () => {
  const { callers, service, settings: given, close } = await manyProjects(1);
  cluster.closing.push(close);
  const settings = { ...given, TARGETING_MCP_STORE: await cluster.postgres.database() };
  const replica = await startReplica({ ...settings, TARGETING_MCP_DRIVE: "off" });
  await service.faults({ kind: "slow", delayMs: 700, on: "write", probability: 1 });
  let worker = await startWorker(settings);
  const items = Array.from({ length: 3000 }, (_, n) => ({ name: `targeting ${n}` }));
  const { runId } = await runOf(replica.url, "create_targetings", { items }, callers[0]?.token);
  const newest = async () => {
    const query = `select coalesce(max(epoch), 0)::int as epoch, count(*)::int as entries from targeting_mcp.entry where run = '${runId}'`;
    const [row] = z
      .array(z.object({ epoch: z.number(), entries: z.number() }))
      .parse((await statement(settings.TARGETING_MCP_STORE, query)).rows);
    return row ?? { epoch: 0, entries: 0 };
  };
  const holder = async () => {
    const query = `select epoch::int from targeting_mcp.lease where name = 'run:${runId}'`;
    return (await statement(settings.TARGETING_MCP_STORE, query)).rows[0]?.epoch;
  };
  const [takenUp, wrote]: [number[], number[]] = [[], []];
  for (let death = 0; death < 4; death += 1) {
    const next = await startWorker(settings);
    const before = await newest();
    await expect.poll(async () => (await newest()).entries).toBeGreaterThan(before.entries);
    const { epoch } = await newest();
    worker.child.kill("SIGKILL");
    const killedAt = Date.now();
    await expect.poll(holder, { interval: 50, timeout: 20_000 }).toBeGreaterThan(epoch);
    takenUp.push(Date.now() - killedAt);
    await expect.poll(async () => (await newest()).epoch, { interval: 50, timeout: 20_000 }).toBeGreaterThan(epoch);
    wrote.push(Date.now() - killedAt);
    worker = next;
  }
  const told = (times: readonly number[]): string => times.toSorted((one, other) => one - other).join(", ");
  process.stdout.write(`after a kill -9: taken up ${told(takenUp)} ms, next request ${told(wrote)} ms\n`);
  // The next request is sent only when no request of the dead process can be sent any more. This wait makes it safe.
  expect(Math.max(...takenUp)).toBeLessThan(5000);
});
