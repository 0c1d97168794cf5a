import { setImmediate } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { messageFor } from "../../src/answers/failures.ts";
import { RejectedError } from "../../src/api/errors.ts";
import { type ChangeRun, changeRunKind } from "../../src/changes/change-run.ts";
import { Plan } from "../../src/changes/plan/plan.ts";
import { StoreUnavailableError } from "../../src/runs/store.ts";
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
  const prepareFailing = (thrown: Error) => {
    const planning = { plan: Promise.reject<Plan>(thrown), stop: () => {} };
    return service.changes.prepare(header, planning, async () => undefined, { isForKeeping: true });
  };
  return { ...service, header, prepare, prepareFailing, open: () => gate.open() };
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

test("a run whose store fails while it is planned is no longer held by this process", async () => {
  const { prepare, open, header, changes, store } = await planned(1);
  const run = await prepare();
  const { record, read } = store;
  const away = () => Promise.reject(new StoreUnavailableError("the store is away", "Try again."));
  Object.assign(store, { record: away, read: away });
  open();
  await run.rest;
  Object.assign(store, { record, read });
  expect(run.status()).toBe("interrupted");
  expect(changes.runs.isDriving).toBe(false);
  expect(await store.isDriven(header.runId)).toBe(false);
});

/** A planning that fails when it is stopped. Nothing handles its error yet. */
function failingPlanning() {
  let stop = (): void => {};
  const plan = new Promise<Plan>((_, reject) => {
    stop = () => reject(new Error("stopped"));
  });
  return { plan, stop: () => stop() };
}

test.each(["prepare", "start"] as const)(
  "planning that fails before its run is stored ends no process: %s",
  async (how) => {
    const { header, changes, store } = await planned(1);
    const unhandled: unknown[] = [];
    const note = (thrown: unknown): void => void unhandled.push(thrown);
    process.on("unhandledRejection", note);
    onTestFinished(() => void process.off("unhandledRejection", note));
    const planning = failingPlanning();
    const away = async (): Promise<never> => {
      planning.stop();
      await setImmediate();
      throw new StoreUnavailableError("the store is away", "Try again.");
    };
    Object.assign(store, { lease: away });
    const started =
      how === "start" ? changes.start(header, planning) : changes.prepare(header, planning, async () => undefined);
    await expect(started).rejects.toThrow("the store is away");
    await setImmediate();
    expect(unhandled).toEqual([]);
  },
);

test("a plan that ends with an unexpected error says so, and that the call has to be made again", async () => {
  const { prepareFailing, changes, header } = await planned(1);
  await (await prepareFailing(new RangeError("no such row"))).rest;
  const { stopped } = (await changes.runs.find(header.runId))?.state ?? {};
  expect(stopped).toMatchObject({ cause: "ended", reason: { code: "NOT_PLANNED", detail: { isOver: true } } });
  const { message, remedy } = messageFor(stopped?.reason ?? { code: "" });
  expect(message).toContain('an unexpected error, "no such row"');
  expect(remedy).toBe("Look for the reason in the log of the server (stderr). Then make the call again.");
});

test("a run that is cancelled just after it was planned does not wait for approval", async () => {
  const { prepare, open, header, changes, store } = await planned(1);
  let run: ChangeRun | undefined;
  const cancelling: Promise<unknown>[] = [];
  const { lease } = store;
  store.lease = async (runId) => {
    const held = await lease(runId);
    const release = async (): Promise<void> => {
      await held?.release();
      if (run?.status() === "needs_confirmation") cancelling.push(changes.runs.cancel(runId));
    };
    return held && { ...held, release };
  };
  run = await prepare(false);
  open();
  await run.rest;
  await Promise.all(cancelling);
  expect(cancelling).toHaveLength(1);
  expect((await store.record(header.runId))?.status).toBe("cancelled");
});

test("a run that is cancelled and then interrupted while it is planned does not start later", async () => {
  const { prepare, open, header, store } = await planned(1);
  const run = await prepare();
  run.stop("cancelled");
  run.stop("interrupted");
  open();
  await run.rest;
  expect((await store.record(header.runId))?.status).toBe("cancelled");
});

test("a read that is refused after a run was planned is reported as a read", async () => {
  const { world } = await startService();
  const others = { end: async () => {}, resolve: () => undefined, stateOf: async () => undefined };
  const kind = changeRunKind(world, others);
  const about = { statusCode: 403, operation: "listOptions", route: "GET /" } as const;
  const reason = kind.reasonOf?.(new RejectedError({ kind: "forbidden", ...about }));
  expect(reason).toMatchObject({ code: "FORBIDDEN", statusCode: 403 });
  expect(reason).not.toHaveProperty("operation");
  expect(messageFor(reason ?? { code: "" }).message).toContain("context-targeting:read");
});
