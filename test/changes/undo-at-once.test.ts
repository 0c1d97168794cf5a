import { expect, test } from "vitest";
import { undoingRuns } from "../../src/changes/change-kinds.ts";
import { effectsOfRun } from "../../src/changes/done.ts";
import { planUndo } from "../../src/plans/planned-undo.ts";
import { targetingMemory } from "../../src/runs/files/backend.ts";
import { startService } from "./service.ts";

const never = new AbortController().signal;

/** Runs a rename and plans how to undo it. `undo` stores such a plan, and `check` plans it again, as apply_plan does. */
async function renamed() {
  const service = await startService();
  const { changes, store, api, url } = service;
  const _id = await service.targeting("Spring");
  const call = { tool: "rename_targetings", input: { items: [{ _id, name: "Summer" }] } } as const;
  const run = await changes.start(await changes.keep(call, "tester"), await changes.plan(call, never));
  await run?.rest;
  const runId = run?.header.runId ?? "";
  const undo = async () => {
    const state = (await changes.runs.find(runId))?.state;
    if (state === undefined) throw new Error("the run is stored");
    const done = await effectsOfRun(state, store.parts.read(runId, "former")());
    const memory = targetingMemory({ now: Date.now, onProblem: () => {} });
    const about = { undoes: runId, environment: "sandbox", apiUrl: url } as const;
    const made = await planUndo(done, about, { api, signal: never, memory });
    const kept = { plannedBy: "undo_run", undoes: runId, text: made.text, caller: "tester" } as const;
    const { header } = await changes.keepPlan(made.changes, kept);
    const check = () => changes.plan(header.call, never, store.parts.read(header.runId, "input"));
    return { header, check };
  };
  return { ...service, runId, undo };
}

test("an undo that ends before it starts does not end the run that it would undo", async () => {
  const { changes, store, runId, undo } = await renamed();
  const { header, check } = await undo();
  const plan = await check();
  await changes.runs.withdraw(header.runId);
  expect(await changes.start(header, plan)).toBeUndefined();
  expect((await store.record(runId))?.isFinal).toBeUndefined();
});

test("a run that two plans undo at the same time names both", async () => {
  const { changes, store, runId, undo } = await renamed();
  const undos = [await undo(), await undo()];
  const starts = await Promise.all(
    undos.map(async ({ header, check }) => {
      const plan = await check();
      return () => changes.start(header, plan);
    }),
  );
  const { lease } = store;
  store.lease = async (of) => {
    if (of === runId) {
      store.lease = lease;
      await (await starts[1]?.())?.rest;
    }
    return lease(of);
  };
  await (await starts[0]?.())?.rest;
  const state = (await changes.runs.find(runId))?.state;
  expect(state && undoingRuns(state)).toEqual(undos.map(({ header }) => header.runId).reverse());
});

test("an undo whose run is just being resumed sends nothing, and says so", async () => {
  const { changes, store, runId, undo } = await renamed();
  const { header, check } = await undo();
  const plan = await check();
  await store.lease(runId);
  const run = await changes.start(header, plan);
  await run?.rest;
  expect(run?.state.requests.sent).toBe(0);
  expect(run?.status()).toBe("failed");
  expect(JSON.stringify(run?.state.reason(0))).toContain("the run to undo is being executed");
});
