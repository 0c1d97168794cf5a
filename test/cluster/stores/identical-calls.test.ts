import { setTimeout as delay } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { sourceOfEvents } from "../../../src/events/run/source.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { postgresBackend } from "../../../src/runs/postgres/backend.ts";
import { openDatabase } from "../../../src/runs/postgres/database.ts";
import { migrate } from "../../../src/runs/postgres/migrations.ts";
import { ulidSource } from "../../../src/spec/names-and-contexts.ts";
import { sentEvents } from "../../support/sent-events.ts";
import { withPostgres } from "../cluster.ts";

const MINUTES_MS = 180_000;
const SEND_MS = 300;

const cluster = withPostgres({ fsync: "off" });
let url = "";
let sent = 0;

beforeEach(async () => {
  sent = 0;
  url = await cluster.postgres.database();
  const database = openDatabase({ url, connections: 2 });
  await migrate(database);
  await database.close();
});

const planned = {
  source: sourceOfEvents([{ uid: "user-1", eventName: "app_open" }]),
  items: 1,
  onUnknown: "report",
} as const;

/** Starts a process whose clock is wrong by `aheadMs`. Returns a function that makes the call, by default just now. */
function processOf(aheadMs = 0) {
  const clock = { ...systemClock, now: () => Date.now() + aheadMs };
  const backend = postgresBackend({ url, connections: 5, clock, keep: { days: 30, runs: 500 } });
  cluster.closing.push(() => backend.close());
  const runs = sentEvents({
    api: {
      track: async () => {
        sent += 1;
        await delay(SEND_MS);
        return { statusCode: 200, message: "ok" };
      },
    },
    store: backend.runs,
    clock,
    newRunId: ulidSource(() => clock.now(), Math.random),
    project: "project",
    environment: "sandbox",
    retryBudgetMs: 1000,
    words: ({ code }) => code,
  });
  cluster.closing.push(() => runs.stopAll());
  const call = async (arrivedAt = clock.now()) => {
    const { run } = await runs.once(planned, "me", arrivedAt);
    await run.rest;
    return { runId: run.header.runId, status: run.status() };
  };
  return { clock, call };
}

describe("identical calls of processes whose clocks are minutes apart", () => {
  for (const [first, aheadMs] of [
    ["behind", -MINUTES_MS],
    ["ahead", MINUTES_MS],
  ] as const) {
    test(`share one run if they are made at the same time, and only then; the first clock is ${first}`, async () => {
      const [one, other] = [processOf(aheadMs), processOf()];
      const running = one.call();
      await expect.poll(() => sent).toBe(1);
      const arrivedAt = other.clock.now();
      const { runId } = await running;
      expect(await other.call(arrivedAt)).toMatchObject({ runId });
      expect(sent).toBe(1);
      const repeated = other.call();
      await expect.poll(() => sent).toBe(2);
      const meanwhile = one.clock.now();
      const again = await repeated;
      expect(again.runId).not.toBe(runId);
      expect(await one.call(meanwhile)).toMatchObject({ runId: again.runId });
      expect(sent).toBe(2);
    });
  }
});
