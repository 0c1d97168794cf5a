import { expect, test } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { KindRuns } from "../../src/runs/kind-runs.ts";
import { type RunStore, StoreUnavailableError } from "../../src/runs/store.ts";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { counting } from "../support/counting-runs.ts";
import { memoryRunStore } from "../support/memory-store.ts";
import { startRun } from "../support/records.ts";

const world = {
  ...{ clock: systemClock, newRunId: ulidSource(Date.now, Math.random), project: "p", environment: "sandbox" as const },
};
const CALL = { tool: "count", to: 1 };

const runsOver = (store: RunStore) => new KindRuns(counting("count").kind, { ...world, store });

test("a run whose requests to stop cannot be withdrawn is not kept from other processes", async () => {
  const memory = memoryRunStore();
  const { runId } = await runsOver(memory).keep(CALL, "me");
  await startRun(memory, runId);
  const away = new StoreUnavailableError("the store is away", "Try again.");
  const store = { ...memory, stops: { ...memory.stops, forget: () => Promise.reject(away) } };
  await expect(runsOver(store).resume(runId)).rejects.toBe(away);
  expect(await memory.isDriven(runId)).toBe(false);
});

test("a run can be read while its start waits for the process that plans it", async () => {
  const store = memoryRunStore();
  const runs = runsOver(store);
  const header = await runs.keep(CALL, "me");
  const planning = await store.lease(header.runId);
  const starting = runs.start(header, undefined);
  expect((await runs.find(header.runId))?.header).toEqual(header);
  await planning?.release();
  const run = await starting;
  await run?.rest;
  expect(run?.status()).toBe("succeeded");
});

test("the process that plans a run starts it, although another call waits to start it as well", async () => {
  const store = memoryRunStore();
  const runs = runsOver(store);
  const header = await runs.keep(CALL, "me");
  const lease = await store.lease(header.runId);
  const waiting = runs.start(header, undefined);
  const run = await runs.start(header, undefined, { lease });
  await run?.rest;
  expect(run?.status()).toBe("succeeded");
  expect(await waiting).toBeUndefined();
});
