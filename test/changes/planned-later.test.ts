import { expect, test } from "vitest";
import { Plan } from "../../src/changes/plan/plan.ts";
import { startService } from "./service.ts";

/** Stores a run whose planning waits until the test lets it continue. */
async function planned(count: number) {
  const service = await startService();
  const targetingId = await service.targeting("Spring");
  const items = Array.from({ length: count }, (_, number) => ({ name: `Option ${number}` }));
  const call = { tool: "bulk_add_options", input: { targetingId, items } } as const;
  const header = await service.changes.keep(call, "tester");
  const gate: { open: () => void } = { open: () => {} };
  const opened = new Promise<void>((resolve) => {
    gate.open = resolve;
  });
  const plan = async (): Promise<Plan> => {
    const made = await service.changes.plan(call, new AbortController().signal);
    await opened;
    return made;
  };
  const prepare = (mayStart = true) =>
    service.changes.prepare(header, { plan: plan(), stop: () => {} }, async (made, start) =>
      mayStart ? start(made) : undefined,
    );
  return { ...service, header, prepare, open: () => gate.open() };
}

test.each([true, false])("a run that is cancelled while it is planned is not started (may start: %s)", async (may) => {
  const { prepare, open, header, changes } = await planned(2);
  const run = await prepare(may);
  expect(run.stop("cancelled")).toBe(true);
  open();
  await run.rest;
  expect(run.status()).toBe("cancelled");
  expect(run.state.requests.sent).toBe(0);
  expect(await changes.start(header, new Plan())).toBeUndefined();
  expect((await changes.runs.find(header.runId))?.status()).toBe("cancelled");
  expect(changes.runs.isDriving).toBe(false);
});

test("a run that is prepared twice is one run, which can be stopped", async () => {
  const { prepare, open, changes } = await planned(12_000);
  const [one, two] = await Promise.all([prepare(), prepare()]);
  expect(two).toBe(one);
  open();
  await expect.poll(() => one.state.requests.sent).toBeGreaterThan(0);
  expect(changes.runs.isDriving).toBe(true);
  await changes.runs.stopAll();
  expect(["interrupted", "succeeded"]).toContain(one.status());
  expect(changes.runs.isDriving).toBe(false);
});
