import { expect, test } from "vitest";
import { call, optionItems, reportOf, restOf, runOf, startReplica, withService } from "./cluster.ts";
import { storeProxy } from "./store-proxy.ts";

const cluster = withService({ TARGETING_MCP_WAIT_MS: "2000" });

/** Groups that need twelve requests. */
const GROUPS = optionItems(1800).map((item) => ({ ...item, type: "collection" }));

test("a replica that follows a run never answers with less than another one told before, also without notices", async () => {
  const way = await storeProxy(cluster.postgres.port);
  cluster.closing.push(way.close);
  const one = await startReplica(cluster.settings);
  const other = await startReplica({
    ...cluster.settings,
    TARGETING_MCP_STORE_LISTEN: way.through(cluster.store),
    TARGETING_MCP_WAIT_MS: "25000",
    TARGETING_MCP_DRIVE: "off",
  });
  const targetingId = await cluster.service.targeting("Followed");
  await cluster.service.faults({ kind: "slow", delayMs: 700, on: "write", probability: 1 });
  const { runId, status } = await runOf(one.url, "bulk_add_options", { targetingId, items: GROUPS });
  expect(status).toBe("running");
  const following = call(other.url, "get_run", { runId, waitMs: 25_000 });
  // From now on, the other replica gets no notices about the run.
  way.hang();
  const stale: string[] = [];
  for (let isOver = false; !isOver; ) {
    const told = reportOf(await call(one.url, "get_run", { runId }));
    const next = reportOf(await call(other.url, "get_run", { runId }));
    const isStale = (next.counts.succeeded ?? 0) < (told.counts.succeeded ?? 0);
    if (isStale || (told.status === "succeeded" && next.status !== "succeeded")) {
      stale.push(`${JSON.stringify(next)} after ${JSON.stringify(told)}`);
    }
    isOver = told.status !== "running";
  }
  expect(stale).toEqual([]);
  await following;
});

test("a replica whose run was taken over while it was cut off answers as the one that has it now, or not at all", async () => {
  const way = await storeProxy(cluster.postgres.port);
  cluster.closing.push(way.close);
  const cutOff = await startReplica({ ...cluster.settings, TARGETING_MCP_STORE: way.through(cluster.store) });
  const targetingId = await cluster.service.targeting("Taken over");
  await cluster.service.faults({ kind: "slow", delayMs: 1000, on: "write", probability: 1 });
  const { runId } = await runOf(cutOff.url, "bulk_add_options", { targetingId, items: GROUPS });
  await expect.poll(() => cluster.gate.writes.length).toBeGreaterThan(0);
  way.hang();
  const other = await startReplica(cluster.settings);
  await cluster.service.calm();
  const rest = await restOf(other.url, runId, 120_000);
  expect(rest).toMatchObject({ status: "succeeded", counts: { succeeded: GROUPS.length } });
  const whileAway = await call(cutOff.url, "get_run", { runId });
  expect(whileAway.structuredContent).toMatchObject({ error: { errorCode: "STORE_UNAVAILABLE" } });
  way.pass();
  const answered = async () => {
    const answer = await call(cutOff.url, "get_run", { runId });
    return answer.isError === true ? undefined : reportOf(answer);
  };
  let first: Awaited<ReturnType<typeof answered>>;
  await expect
    .poll(async () => {
      first ??= await answered();
      return first;
    })
    .toBeDefined();
  expect(first).toMatchObject({ status: "succeeded", counts: { succeeded: GROUPS.length, pending: 0 } });
});
