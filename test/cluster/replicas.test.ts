import { describe, expect, test } from "vitest";
import { listenOverHttp, overHttp, type TaskReply, taskHost } from "../support/task-clients.ts";
import {
  call,
  optionItems,
  type Replica,
  reportOf,
  restOf,
  runOf,
  startMember,
  startReplica,
  startWorker,
  withService,
} from "./cluster.ts";
import { statement } from "./postgres.ts";

/** After this time, any process may continue a run whose lease was not renewed. The database's clock decides. */
const LONGER_THAN_A_LEASE_MS = 7000;

const cluster = withService({ TARGETING_MCP_CONFIRM: "ask", TARGETING_MCP_WAIT_MS: "1500" });

/** Makes every write of the service slow. Returns a call whose run takes several seconds. */
async function slowCall(delayMs = 1200, options = 60) {
  const targetingId = await cluster.service.targeting("slow");
  await cluster.service.faults({ kind: "slow", delayMs, on: "write", probability: 1 });
  const items = optionItems(options).map((item) => ({
    ...item,
    contexts: Array.from({ length: 800 }, (_, n) => `${item.name}-${n}`),
  }));
  return { targetingId, args: { targetingId, items }, names: items.map(({ name }) => name) };
}

/** Starts a run, and waits until its first request is applied. A run that is stopped earlier may have no plan yet. */
async function slowRun(replica: Replica, ...of: Parameters<typeof slowCall>) {
  const { args, ...rest } = await slowCall(...of);
  const told = await runOf(replica.url, "bulk_add_options", args);
  await expect.poll(() => cluster.service.options(rest.targetingId), { timeout: 60_000 }).not.toEqual([]);
  return { ...rest, told };
}

/** Settings with which calls answer only when their work has ended, even on a busy machine. */
const patient = () => ({ ...cluster.settings, TARGETING_MCP_WAIT_MS: "60000" });

describe("replicas", () => {
  test("hand a run over at SIGTERM, and end with exit code 0", async () => {
    const one = await startReplica(cluster.settings);
    const { targetingId, told, names } = await slowRun(one);
    const worker = await startWorker(cluster.settings);
    one.child.kill("SIGTERM");
    expect(await one.exited).toBe(0);
    const other = await startReplica({ ...cluster.settings, TARGETING_MCP_DRIVE: "off" });
    expect(await restOf(other.url, told.runId)).toMatchObject({ status: "succeeded" });
    expect([...(await cluster.service.options(targetingId))].sort()).toEqual([...names].sort());
    worker.child.kill("SIGTERM");
    expect(await worker.exited).toBe(0);
  });

  test("that drive nothing leave their runs to a worker, and answer with what it did", async () => {
    await startWorker(cluster.settings);
    const one = await startReplica({ ...patient(), TARGETING_MCP_DRIVE: "off" });
    const targetingId = await cluster.service.targeting("left");
    const told = await runOf(one.url, "bulk_add_options", { targetingId, items: optionItems(20) });
    expect(told).toMatchObject({ status: "succeeded", counts: { items: 20, succeeded: 20 } });
    expect(await cluster.service.options(targetingId)).toHaveLength(20);
  });

  test("cancel runs that another one drives", async () => {
    const [one, other] = [await startReplica(cluster.settings), await startReplica(cluster.settings)];
    const { targetingId, told, names } = await slowRun(one, 1500);
    expect(told.status).toBe("running");
    // On a busy machine, the store may answer too late for the wait of one call, whose answer then is an error.
    await expect.poll(async () => (await call(other.url, "cancel_run", { runId: told.runId })).isError).toBeFalsy();
    expect((await restOf(other.url, told.runId)).status).toBe("cancelled");
    const { counts } = reportOf(await call(one.url, "get_run", { runId: told.runId }));
    const there = await cluster.service.options(targetingId);
    expect(there.length).toBe(counts.succeeded);
    expect(there.length).toBeLessThan(names.length);
  });
});

describe("a task", () => {
  /** Starts a slow run as a task. */
  async function slowTask(replica: Replica, delayMs: number) {
    const { args, ...rest } = await slowCall(delayMs);
    const { taskId, status } = await taskHost(overHttp(replica.url)).call("bulk_add_options", args);
    expect(status).toBe("working");
    return { ...rest, taskId };
  }

  test("is followed on another replica, and outlives the replica that works on it", async () => {
    const [one, other] = [await startReplica(patient()), await startReplica(patient())];
    const { targetingId, taskId, names } = await slowTask(one, 1200);
    const host = taskHost(overHttp(other.url));
    expect(await host.get(taskId)).toMatchObject({ taskId, status: "working" });
    const heard: TaskReply[] = [];
    await listenOverHttp(other.url)({ taskIds: [taskId] }, (message) => heard.push(message));
    const states = () => heard.flatMap(({ params }) => params?.status ?? []);
    await expect.poll(states).toContain("working");
    one.child.kill("SIGKILL");
    const { status, result } = await host.settled(taskId);
    await expect.poll(states).toContain("completed");
    const { _meta, ...told } = heard.at(-1)?.params ?? {};
    expect(told).toEqual(expect.objectContaining({ taskId, status, result }));
    expect(new Set(states())).toEqual(new Set(["working", "completed"]));
    expect([status, result?.structuredContent]).toMatchObject([
      "completed",
      { status: "succeeded", counts: { items: names.length, succeeded: names.length } },
    ]);
    expect([...(await cluster.service.options(targetingId))].sort()).toEqual([...names].sort());
  });

  test("is cancelled on another replica", async () => {
    const [one, other] = [await startReplica(patient()), await startReplica(patient())];
    const { targetingId, taskId, names } = await slowTask(one, 1500);
    const host = taskHost(overHttp(other.url));
    expect((await host.cancel(taskId)).result?.resultType).toBe("complete");
    expect((await host.settled(taskId)).status).toBe("cancelled");
    expect((await taskHost(overHttp(one.url)).settled(taskId)).status).toBe("cancelled");
    expect((await cluster.service.options(targetingId)).length).toBeLessThan(names.length);
  });
});

describe("the store", () => {
  test("is away: calls say so, nothing is sent, and it goes on by itself", async () => {
    const one = await startReplica({ ...cluster.settings, TARGETING_MCP_WAIT_MS: "20000" });
    const targetingId = await cluster.service.targeting("away");
    const told = await runOf(one.url, "bulk_add_options", { targetingId, items: optionItems(5) });
    await cluster.postgres.kill();
    try {
      // How quickly this answer comes is tested in store-away.test.ts.
      const answer = await call(one.url, "bulk_add_options", { targetingId, items: optionItems(5, "later") });
      expect(answer).toMatchObject({ isError: true, structuredContent: { error: { errorCode: "STORE_UNAVAILABLE" } } });
      expect(await cluster.service.options(targetingId)).toHaveLength(5);
      // This read needs no store.
      expect((await call(one.url, "list_options", { targetingId })).isError).not.toBe(true);
    } finally {
      await cluster.postgres.start();
    }
    expect(reportOf(await call(one.url, "get_run", { runId: told.runId })).status).toBe("succeeded");
  });

  test("is killed in the middle of a run: nothing is lost, doubled or unknown", async () => {
    const [one] = [await startReplica(cluster.settings), await startReplica(cluster.settings)];
    const { targetingId, told, names } = await slowRun(one);
    await cluster.postgres.kill();
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await cluster.postgres.start();
    const rest = await restOf(one.url, told.runId);
    expect(rest).toMatchObject({ status: "succeeded", counts: { items: names.length, succeeded: names.length } });
    expect([...(await cluster.service.options(targetingId))].sort()).toEqual([...names].sort());
  });

  test("is away while a run is cancelled: no process continues the run when the store is back", async () => {
    const patient = { ...cluster.settings, TARGETING_MCP_WAIT_MS: "1000" };
    const [one] = [await startReplica(patient), await startReplica(patient)];
    const { targetingId, told, names } = await slowRun(one);
    await cluster.postgres.kill();
    try {
      const answer = await call(one.url, "cancel_run", { runId: told.runId });
      expect(JSON.stringify(answer.content)).toContain("but its store is unavailable");
      await new Promise((resolve) => setTimeout(resolve, LONGER_THAN_A_LEASE_MS));
    } finally {
      await cluster.postgres.start();
    }
    expect((await restOf(one.url, told.runId)).status).toBe("cancelled");
    expect((await cluster.service.options(targetingId)).length).toBeLessThan(names.length);
  });

  test("without tables is brought up to date once, by many at a time", async () => {
    const many = [1, 2, 3].map(() => startMember(["migrate"], cluster.settings));
    expect(await Promise.all(many.map(({ exited }) => exited))).toEqual([0, 0, 0]);
    const found = await statement(cluster.store, "select number from targeting_mcp.migration");
    expect(found.rows).toEqual([{ number: 1 }]);
    const without = startMember(["migrate"], {});
    expect(await without.exited).toBe(1);
    expect(without.stderr()).toContain("TARGETING_MCP_STORE");
  });
});
