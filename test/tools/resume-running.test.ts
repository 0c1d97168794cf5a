import { expect, test } from "vitest";
import { Changes } from "../../src/changes/changes.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { Runs } from "../../src/runs/registry.ts";
import type { ToolContext } from "../../src/tools/define-tool.ts";
import { resumeRun } from "../../src/tools/resume-run.ts";
import { startService } from "../changes/service.ts";
import { testServices } from "../support/tool-context.ts";

const never = new AbortController().signal;

test("resume_run does not continue a deletion without approval if its process stops it just then", async () => {
  const { world, changes, store, api, targeting, option } = await startService();
  const targetingId = await targeting("Spring");
  const optionId = await option({ targeting: targetingId, name: "Old" });
  const call = { tool: "delete_options", input: { targetingId, ids: [optionId] } } as const;
  const plan = await changes.plan(call, never);
  // Another run has the write lock, so nothing is sent before the run is stopped.
  let free = (): void => {};
  const locked = world.lock.hold("test", () => new Promise<void>((resolve) => (free = resolve)), never);
  const run = await changes.start(await changes.keep(call, "tester"), plan);
  const runId = run?.header.runId ?? "";
  await expect.poll(() => run?.state.planned).toBe(true);

  const lease = async (of: string) => {
    run?.stop("interrupted");
    await run?.rest;
    return store.lease(of);
  };
  const there = { ...world, store: { ...store, lease } };
  const others = new Changes(there);
  const clock = { ...systemClock, now: () => Date.now() + 3_600_000 };
  const context: ToolContext = {
    ...testServices(clock, 300),
    ...{ management: api, changes: others, runs: new Runs(there, [others.runs]), caller: "tester" },
    ...{ arrivedAt: clock.now(), signal: never, canAsk: () => false },
  };
  await resumeRun.handler({ runId }, context);
  run?.stop("interrupted");
  await run?.rest;
  free();
  await locked;
  await others.runs.driven(runId)?.rest;
  expect((await api.listOptions(targetingId)).items.map(({ _id }) => _id)).toEqual([optionId]);
});
