import { expect, test } from "vitest";
import { DamagedRunError, StoreUnavailableError } from "../../src/runs/store.ts";
import { timeLeft } from "../../src/tools/define-tool.ts";
import { followRun, interruptedHints, waitWithinCall } from "../../src/tools/write/within-call.ts";
import { readingApi, toolContext } from "../support/tool-context.ts";

test.each([
  ["just arrived", 0, 1000],
  ["planned and asked for a while", 400, 600],
  ["asked for longer than a call may take", 5000, 0],
])("a call that %s waits only for what is left of its time", async (_case, takenMs, leftMs) => {
  const { context, pass } = toolContext(readingApi([]).api);
  pass(takenMs);
  expect(timeLeft(context)).toBe(leftMs);
  const before = context.clock.now();
  await waitWithinCall(new Promise(() => {}), context);
  expect(context.clock.now() - before).toBe(leftMs);
});

test.each([
  [{ items: 100_000, pending: 88_000 }, 0, "12,000 of 100,000 items"],
  [{ items: 1, pending: 1 }, 0, "0 of 1 item"],
  [{ items: 300, pending: 200 }, 30_000, "100 of 300 items, waiting 30 s for the service"],
  [{ items: 0, pending: 0 }, 0, undefined],
])("a run tells in words how far it is: %o", async (counts, waitingMs, words) => {
  const told: unknown[] = [];
  const { context } = toolContext(readingApi([]).api);
  const none = { succeeded: 0, alreadyDone: 0, skipped: 0, failed: 0, notApplied: 0, unknown: 0 };
  const run = {
    kept: Promise.resolve(),
    rest: Promise.resolve(),
    watch(watcher: Parameters<Parameters<typeof followRun>[0]["watch"]>[0]) {
      watcher({ ...none, ...counts }, waitingMs);
      return () => undefined;
    },
    stop: () => true,
  };
  await followRun(run, { ...context, progress: (done, total, message) => told.push([done, total, message]) });
  expect(told).toEqual([[counts.items - counts.pending, counts.items, words]]);
});

test.each([
  [1, 0, 0],
  [1, 1, 1],
  [5000, 0, 1],
])("an interrupted run of events with %i left is named only if it can be resumed", async (left, pending, named) => {
  const { context } = toolContext(readingApi([]).api);
  const counts = { pending, notApplied: 0 };
  const runs = Object.assign(Object.create(context.runs), {
    interrupted: async () => [{ runId: "RUN", tool: "track_events", left }],
    find: async () => ({ state: { counts: () => counts } }),
  });
  expect(await interruptedHints({ ...context, runs }, "other")).toHaveLength(named);
});

test.each([
  ["is damaged", new DamagedRunError("RUN"), 1],
  ["cannot be reached", new StoreUnavailableError("away", "wait"), 0],
])("a call is answered although another interrupted run %s", async (_case, problem, named) => {
  const { context } = toolContext(readingApi([]).api);
  const runs = Object.assign(Object.create(context.runs), {
    interrupted: async () => [
      { runId: "RUN", tool: "track_events", left: 1 },
      { runId: "OTHER", tool: "bulk_add_options", left: 1 },
    ],
    find: async () => Promise.reject(problem),
  });
  const hints = await interruptedHints({ ...context, runs }, "this one");
  expect(hints).toHaveLength(named);
  expect(hints.join()).not.toContain("RUN");
});
