import { expect, test } from "vitest";
import { CLIENTS, callsOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const WAIT_MS = "400";

/** Starts a server whose calls answer early, with a service that reads slowly and a targeting with two options. */
async function slowlyRead(more: Record<string, string> = {}) {
  const service = await startService();
  const env = cleanEnvironment({
    ...service.live,
    TARGETING_MCP_LOG_LEVEL: "error",
    TARGETING_MCP_WAIT_MS: WAIT_MS,
    ...more,
  });
  /** Starts another process with the same state folder. Returns a function that calls its tools. */
  const other = async () => callsOf(await CLIENTS["2025 client"]({ args: [COMMAND], env }));
  const call = await other();
  const targetingId = await service.targeting("News");
  const options = await service.options(
    targetingId,
    ["One", "Two"].map((name) => ({ name, contexts: ["a", "b"] })),
  );
  const releases: (() => Promise<void>)[] = [];
  /** Makes the service hold requests of an operation until `fast` is called. */
  const slow = async (operation: string) => {
    releases.push(await service.hold(operation));
  };
  const fast = async () => {
    for (const release of releases.splice(0)) await release();
  };
  return { call, other, targetingId, options, slow, fast, arrived: service.count };
}

/** Makes the service fast again, and waits until a run has been planned and has ended. */
async function ended(service: Awaited<ReturnType<typeof slowlyRead>>, runId: string | undefined) {
  await service.fast();
  for (;;) {
    const told = await service.call("get_run", { runId, waitMs: 5000 });
    if (told.status !== "running") return told;
  }
}

test("a write whose planning takes long answers with its run, which then goes on", async () => {
  const service = await slowlyRead();
  await service.slow("listOptions");
  const items = [{ name: "One", add: ["c"] }];
  const told = await service.call("update_contexts", { targetingId: service.targetingId, items });
  expect(told).toMatchObject({ status: "running", counts: { items: 1, pending: 1 } });
  expect(await ended(service, told.runId)).toMatchObject({ status: "succeeded", counts: { items: 1, succeeded: 1 } });
});

test("the same call made again meanwhile attaches to that run", async () => {
  const service = await slowlyRead();
  await service.slow("listOptions");
  const args = { targetingId: service.targetingId, items: [{ name: "One", add: ["c"] }] };
  const first = await service.call("update_contexts", args);
  const second = await service.call("update_contexts", args);
  expect(second.runId).toBe(first.runId);
  expect(await ended(service, first.runId)).toMatchObject({ status: "succeeded" });
});

test("the same call made in another process meanwhile attaches to that run, and later to what waits", async () => {
  const service = await slowlyRead();
  await service.slow("read");
  const args = { ids: service.options };
  const first = await service.call("delete_options", args);
  const elsewhere = await service.other();
  expect(await elsewhere("delete_options", args)).toMatchObject({ status: "running", runId: first.runId });
  const planned = await ended(service, first.runId);
  expect(planned).toMatchObject({ status: "needs_confirmation" });
  const asked = await elsewhere("delete_options", args);
  expect(asked.runId).toBe(first.runId);
  expect(await ended(service, asked.runId)).toMatchObject({ status: "needs_confirmation" });
});

test("a deletion whose planning takes long asks in get_run, and acts only on a yes", async () => {
  const service = await slowlyRead();
  await service.slow("read");
  const told = await service.call("delete_options", { ids: service.options });
  expect(told).toMatchObject({ status: "running" });
  const planned = await ended(service, told.runId);
  expect(planned).toMatchObject({ status: "needs_confirmation", counts: { items: 2, pending: 2 } });
  const listed = async () => JSON.stringify(await service.call("list_options", { targetingId: service.targetingId }));
  await expect.poll(listed).toContain("Two");
  const agreed = await service.call("delete_options", { confirmation: planned.confirmation?.token });
  expect(await ended(service, agreed.runId)).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
});

test("a long planning can be cancelled, and one that fails says why", async () => {
  const service = await slowlyRead();
  await service.slow("listOptions");
  const args = { targetingId: service.targetingId, items: [{ name: "One", add: ["c"] }] };
  const going = await service.call("update_contexts", args);
  await service.call("cancel_run", { runId: going.runId });
  expect(await ended(service, going.runId)).toMatchObject({
    status: "cancelled",
    counts: { items: 1, notApplied: 1 },
  });
  await service.slow("listOptions");
  const missing = { targetingId: "01ARZ3NDEKTSV4RRFFQ69G5FAV", items: [{ name: "One", add: ["c"] }] };
  const failing = await service.call("update_contexts", missing);
  await ended(service, failing.runId);
  const told = await service.call("get_run", { runId: failing.runId });
  expect(told.isError).toBe(true);
  expect(told).toMatchObject({ status: "failed", counts: { items: 1, notApplied: 1 } });
  expect(told.failures[0]?.message).toContain("has no context targeting with this ID");
});

test("a deletion that is cancelled while a yes is awaited is not done any more", async () => {
  const service = await slowlyRead();
  await service.slow("listOptions");
  const going = await service.call("delete_options", { targetingId: service.targetingId, names: ["One", "Two"] });
  const waiting = await ended(service, going.runId);
  expect(waiting).toMatchObject({ status: "needs_confirmation", counts: { items: 2, pending: 2 } });
  const cancelled = await service.call("cancel_run", { runId: going.runId });
  expect(cancelled).toMatchObject({ status: "cancelled", counts: { items: 2, notApplied: 2 } });
  const refused = await service.call("delete_options", { confirmation: waiting.confirmation?.token });
  expect(refused.error?.message).toContain("was cancelled before it was started");
  const listed = async () => JSON.stringify(await service.call("list_options", { targetingId: service.targetingId }));
  await expect.poll(listed).toContain("Two");
});

test("one that is cancelled while it is planned again after the yes, neither", async () => {
  const service = await slowlyRead();
  const planned = await service.call("delete_options", { ids: service.options });
  const waiting = await ended(service, planned.runId);
  expect(waiting).toMatchObject({ status: "needs_confirmation", counts: { items: 2, pending: 2 } });
  await service.slow("getOption");
  const args = { confirmation: planned.confirmation.token || waiting.confirmation.token };
  const going = await service.call("delete_options", args);
  expect(going).toMatchObject({ status: "running", counts: { items: 2, pending: 2 } });
  await service.call("cancel_run", { runId: going.runId });
  const cancelled = await ended(service, going.runId);
  expect(cancelled).toMatchObject({ status: "cancelled", counts: { items: 2, notApplied: 2 } });
  const refused = await service.call("delete_options", args);
  expect(refused.error?.message).toContain("was cancelled before it was started");
});

test("the same call made twice at once has one run", async () => {
  const service = await slowlyRead({ TARGETING_MCP_WAIT_MS: "30000" });
  await service.slow("listOptions");
  const args = { targetingId: service.targetingId, items: [{ name: "Three" }], onExisting: "skip" };
  const calls = Promise.all([service.call("bulk_add_options", args), service.call("bulk_add_options", args)]);
  await expect.poll(() => service.arrived("listOptions")).toBeGreaterThan(0);
  // The answer to this later call shows that the server has received both calls.
  await service.call("get_run", {});
  await service.fast();
  const [first, second] = await calls;
  expect(first).toMatchObject({ status: "succeeded", counts: { succeeded: 1 } });
  expect(second.runId).toBe(first.runId);
});
