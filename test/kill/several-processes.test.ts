// Several servers use the same state folder and the same service.
import { readdir, utimes } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { startHttp } from "../support/http-server.ts";
import { optionItems, startService } from "../support/service.ts";

const answer = z.looseObject({
  runId: z.string().default(""),
  status: z.string().default(""),
  counts: z.record(z.string(), z.number()).default({}),
  requests: z.record(z.string(), z.number()).default({}),
  results: z.array(z.looseObject({ _id: z.string().default("") })).default([]),
  runs: z.array(z.looseObject({ runId: z.string(), status: z.string() })).default([]),
  nextSteps: z.array(z.string()).default([]),
  confirmation: z.object({ token: z.string() }).default({ token: "" }),
});
type Service = Awaited<ReturnType<typeof startService>>;

/** Starts a server and its client. */
async function startServer(service: Service, env: Record<string, string>) {
  const server = await startHttp({ ...service.live, ...env });
  const { callTool } = await CLIENTS["2026 client, modern"]({ url: server.url });
  return {
    child: server.child,
    exited: server.exited,
    stateDir: server.stateDir,
    call: async (name: string, args: Record<string, unknown>) => {
      const told = await callTool(name, args);
      return { ...answer.parse(told.structuredContent), text: textOf(told) };
    },
  };
}

const ALL = { TARGETING_MCP_CONFIRM: "off" };

/** Starts this many servers on one state folder. */
async function start(count: number, env: Record<string, string> = {}) {
  const service = await startService();
  const first = await startServer(service, env);
  const more = { ...env, TARGETING_MCP_STATE_DIR: first.stateDir };
  const others = await Promise.all(Array.from({ length: count - 1 }, () => startServer(service, more)));
  const another = () => startServer(service, more);
  return { service, servers: [first, ...others], first, second: others[0] ?? first, another };
}

const kept = perFile(start);

/** Returns the servers that all tests share which do not kill them, with an empty service. */
async function shared(...what: Parameters<typeof start>): ReturnType<typeof start> {
  const started = await kept(...what);
  await started.service.control("POST", "/reset", {});
  return started;
}

async function newTargeting({ url }: Service, name = "Spring"): Promise<string> {
  const response = await fetch(`${url}/context-targeting`, {
    method: "POST",
    headers: { "x-api-key": "sandbox-key" },
    body: JSON.stringify({ name }),
  });
  return z.looseObject({ _id: z.string() }).parse(await response.json())._id;
}

const CLICK = { eventName: "app_open" };
const events = (count: number) => Array.from({ length: count }, (_, number) => ({ uid: `user-${number}`, ...CLICK }));

/**
 * Makes every lease in a folder look as if its holder has shown no sign of life for a minute, so that others take it.
 */
async function outdateLeases(stateDir: string): Promise<void> {
  const files = (await readdir(stateDir, { recursive: true })).filter((file) => /\.lease\.\d+$/.test(file));
  const past = new Date(Date.now() - 60_000);
  await Promise.all(files.map((file) => utimes(join(stateDir, file), past, past)));
}

describe("the same call at one instant in three processes makes one run", () => {
  test("of 1,500 new options, of which none is reported as there already", async () => {
    const { service, servers } = await shared(3, ALL);
    const targetingId = await newTargeting(service);
    const args = { targetingId, items: optionItems(1500) };
    const told = await Promise.all(servers.map(({ call }) => call("bulk_add_options", args)));
    expect(new Set(told.map(({ runId }) => runId)).size).toBe(1);
    for (const one of told) expect(one).toMatchObject({ status: "succeeded", counts: { succeeded: 1500 } });
    expect(await service.count("addOptions")).toBe(1);
  });

  test("with every other tool that writes, one after the other", async () => {
    const { service, servers, first } = await shared(3, ALL);
    const targetingId = await newTargeting(service);
    const { results } = await first.call("bulk_add_options", { targetingId, items: optionItems(2) });
    const [one, two] = results.map(({ _id }) => _id);
    const other = await newTargeting(service, "Other");
    const calls = [
      ["create_targetings", { items: [{ name: "New" }] }, "createTargetings"],
      ["rename_targetings", { items: [{ _id: other, name: "Renamed" }] }, "renameTargetings"],
      ["update_options", { items: [{ _id: one, name: "Renamed" }] }, "updateOptions"],
      ["update_contexts", { items: [{ _id: one, add: ["ctx-1"] }] }, "updateOptions"],
      ["delete_options", { ids: [one, two] }, "deleteOptions"],
      ["delete_targeting", { ids: [other] }, "deleteTargetings"],
      ["track_events", { events: events(3) }, "trackEvent"],
    ] as const;
    for (const [tool, args, operation] of calls) {
      const before = await service.count(operation);
      const release = await service.hold(operation);
      const calls = Promise.all(servers.map(({ call }) => call(tool, args)));
      await expect.poll(() => service.count(operation)).toBeGreaterThan(before);
      // A server that answers these later calls has read the earlier call, too.
      for (const _ of [1, 2]) await Promise.all(servers.map(({ call }) => call("get_run", {})));
      await release();
      const told = await calls;
      expect(new Set(told.map(({ runId }) => runId)).size, tool).toBe(1);
      for (const answered of told) expect(answered, tool).toMatchObject({ status: "succeeded" });
      expect((await service.count(operation)) - before, tool).toBe(tool === "track_events" ? 3 : 1);
    }
  });

  test("but a call that is made once its run has ended is a new one", async () => {
    const { service, first, second } = await shared(3, ALL);
    const one = await first.call("track_events", { events: events(2) });
    const two = await second.call("track_events", { events: events(2) });
    expect(two.runId).not.toBe(one.runId);
    expect(await service.count("trackEvent")).toBe(4);
  });
});

describe("a confirmation token", () => {
  test("that is used three times at once starts one run, and used again gives its report", async () => {
    const { service, servers, first, second } = await start(2, { TARGETING_MCP_CONFIRM: "ask" });
    const targetingId = await newTargeting(service);
    const { results } = await first.call("bulk_add_options", { targetingId, items: optionItems(300) });
    const { items: all } = z.looseObject({ items: z.array(z.looseObject({ _id: z.string() })) }).parse(
      await (
        await fetch(`${service.url}/context-targeting/${targetingId}/category?limit=300`, {
          headers: { "x-api-key": "sandbox-key" },
        })
      ).json(),
    );
    expect(results.length).toBeGreaterThan(0);
    const ids = all.map(({ _id }) => _id);
    const { confirmation } = await first.call("delete_options", { ids });
    const act = { confirmation: confirmation.token };
    const told = await Promise.all([...servers, first].map(({ call }) => call("delete_options", act)));
    const again = await second.call("delete_options", act);
    expect(new Set([...told, again].map(({ runId }) => runId)).size).toBe(1);
    for (const one of [...told, again])
      expect(one).toMatchObject({ status: "succeeded", counts: { items: 300, succeeded: 300 } });
    expect(await service.count("deleteOptions")).toBe(1);
  });
});

describe("a run is cancelled from any process", () => {
  const WAIT = { TARGETING_MCP_WAIT_MS: "300" };

  test("that changes options: nothing new leaves once cancel_run has answered", async () => {
    const { service, first, second } = await shared(2, WAIT);
    const targetingId = await newTargeting(service);
    const release = await service.hold("addOptions");
    const { runId, status } = await first.call("bulk_add_options", { targetingId, items: optionItems(12_000) });
    expect(status).toBe("running");
    await expect.poll(() => service.count("addOptions")).toBe(1);
    const asked = await second.call("cancel_run", { runId });
    const sent = await service.count("addOptions");
    expect(asked.status).toBe("running");
    expect(asked.text).toContain("The run stops after the request in flight and sends nothing more");
    await release();
    await expect.poll(async () => (await second.call("get_run", { runId })).status).toBe("cancelled");
    const told = await first.call("get_run", { runId });
    expect(told).toMatchObject({ status: "cancelled", counts: { failed: 0, unknown: 0, pending: 0 } });
    expect(await service.count("addOptions")).toBe(sent);
    expect(told.counts.succeeded).toBe(5000 * sent);
    await second.call("resume_run", { runId });
    await expect
      .poll(() => first.call("get_run", { runId }))
      .toMatchObject({ status: "succeeded", counts: { succeeded: 12_000 } });
  });

  test("that waits for the service's lock", async () => {
    const { service, first, second } = await shared(2, WAIT);
    const targetingId = await newTargeting(service);
    await service.control("POST", "/lock", { ms: 600_000 });
    const { runId } = await first.call("bulk_add_options", { targetingId, items: optionItems(10) });
    await second.call("cancel_run", { runId });
    await expect
      .poll(() => first.call("get_run", { runId }))
      .toMatchObject({
        status: "cancelled",
        counts: { notApplied: 10 },
      });
  });

  test("that sends events", async () => {
    const { service, first, second } = await shared(2, WAIT);
    const release = await service.hold("trackEvent", { nth: 100 });
    const { runId, status } = await first.call("track_events", { events: events(3000) });
    expect(status).toBe("running");
    await expect.poll(() => service.control("GET", "/faults")).not.toMatchObject({ faults: [{ struck: 0 }] });
    const asked = await second.call("cancel_run", { runId });
    expect(asked.status).toBe("running");
    await release();
    await expect.poll(async () => (await second.call("get_run", { runId })).status).toBe("cancelled");
    const told = await first.call("get_run", { runId });
    expect(told).toMatchObject({ status: "cancelled", counts: { items: 3000, unknown: 0, pending: 0 } });
    expect(told.counts.notApplied).toBeGreaterThan(2000);
    expect(await service.count("trackEvent")).toBe(told.counts.succeeded);
  });

  test.each(["bulk_add_options", "track_events"])("that nobody drives any more: %s", async (tool) => {
    const { service, first, second } = await start(2, WAIT);
    const targetingId = await newTargeting(service);
    await service.hold("addOptions");
    await service.hold("trackEvent");
    const args = tool === "track_events" ? { events: events(500) } : { targetingId, items: optionItems(12_000) };
    const { runId } = await first.call(tool, args);
    first.child.kill("SIGKILL");
    await first.exited;
    expect((await second.call("get_run", { runId })).status).toBe("interrupted");
    const told = await second.call("cancel_run", { runId });
    expect(told).toMatchObject({ runId, status: "cancelled", counts: { pending: 0, succeeded: 0 } });
    expect(told.counts.notApplied).toBeGreaterThan(0);
    expect((await second.call("get_run", {})).runs).toMatchObject([{ runId, status: "cancelled" }]);
  });
});

describe("a run that is resumed is driven by one process alone", () => {
  // Calls answer only when their work has ended, even on a busy machine.
  const TO_THE_END = { TARGETING_MCP_WAIT_MS: "600000" };

  test("where two resume it at one instant", async () => {
    const { service, first, second, another } = await start(2, TO_THE_END);
    const targetingId = await newTargeting(service);
    const release = await service.hold("addOptions", { nth: 2 });
    const lost = first.call("bulk_add_options", { targetingId, items: optionItems(12_000) }).catch(() => undefined);
    await expect.poll(() => service.count("addOptions")).toBe(2);
    first.child.kill("SIGKILL");
    await first.exited;
    await lost;
    await release();
    const third = await another();
    const { runs } = await second.call("get_run", {});
    const runId = runs[0]?.runId;
    const told = await Promise.all([second, third].map(({ call }) => call("resume_run", { runId })));
    for (const one of told) expect(one).toMatchObject({ runId, status: "succeeded", counts: { succeeded: 12_000 } });
  });

  test.each(["bulk_add_options", "track_events"])(
    "where its driver stood still meanwhile and goes on: %s",
    async (tool) => {
      const { service, first, second } = await start(2, TO_THE_END);
      const targetingId = await newTargeting(service);
      const args = tool === "track_events" ? { events: events(1500) } : { targetingId, items: optionItems(20_000) };
      const items = tool === "track_events" ? 1500 : 20_000;
      const operation = tool === "track_events" ? "trackEvent" : "addOptions";
      const release = await service.hold(operation, { nth: 2 });
      const waiting = first.call(tool, args);
      await expect.poll(() => service.count(operation)).toBeGreaterThan(1);
      first.child.kill("SIGSTOP");
      // The service now executes the requests of the suspended process, and holds the other one in the middle of the
      // run.
      const releaseOthers = await service.hold(operation, { nth: 2 });
      await release();
      await outdateLeases(first.stateDir);
      const runId = (await second.call("get_run", {})).runs[0]?.runId;
      const at = await service.count(operation);
      const resumed = second.call("resume_run", { runId });
      await expect.poll(() => service.count(operation)).toBeGreaterThan(at);
      first.child.kill("SIGCONT");
      await releaseOthers();
      const [one, two] = await Promise.all([waiting, resumed]);
      expect(one.runId).toBe(runId);
      expect(one.counts).toEqual(two.counts);
      expect(one).toMatchObject({ status: two.status, counts: { items, failed: 0, notApplied: 0, pending: 0 } });
      if (tool !== "track_events") expect(two).toMatchObject({ status: "succeeded", counts: { succeeded: items } });
      expect(await second.call("get_run", { runId })).toMatchObject({ status: two.status, counts: two.counts });
    },
  );
});

test("a second call while the service is locked is the first one's run, in any process, also once that gave up", async () => {
  const { service, first, second } = await start(2, {
    TARGETING_MCP_WAIT_MS: "300",
    TARGETING_MCP_RETRY_BUDGET_MS: "4000",
  });
  const targetingId = await newTargeting(service);
  await service.control("POST", "/faults", {
    faults: [{ kind: "busy", on: "addOptions", retryAfterMs: 100, times: 1000 }],
  });
  const args = { targetingId, items: optionItems(10) };
  const { runId, status } = await first.call("bulk_add_options", args);
  expect(status).toBe("running");
  expect(await second.call("bulk_add_options", args)).toMatchObject({ runId, status: "running" });
  await expect.poll(async () => (await second.call("get_run", { runId })).status).toBe("failed");
  const again = await second.call("bulk_add_options", args);
  expect(again).toMatchObject({ runId, status: "running" });
  expect(again.text).toContain("made before and had not finished");
  await fetch(`${service.url}/_sandbox/faults`, { method: "DELETE" });
  await expect
    .poll(() => first.call("get_run", { runId }))
    .toMatchObject({ status: "succeeded", counts: { succeeded: 10 } });
});

test("the next write names an interrupted run, in any process and after a restart, until that is resumed", async () => {
  const { service, first, second, another } = await start(2, { TARGETING_MCP_WAIT_MS: "300" });
  const targetingId = await newTargeting(service);
  const releases = [await service.hold("addOptions"), await service.hold("trackEvent")];
  const added = await first.call("bulk_add_options", { targetingId, items: optionItems(12_000) });
  const sent = await first.call("track_events", { events: events(200) });
  const during = await second.call("create_targetings", { items: [{ name: "Before" }] });
  expect(during.text).not.toContain("interrupted");
  first.child.kill("SIGKILL");
  await first.exited;
  for (const release of releases) await release();
  const third = await another();
  for (const [server, name] of [
    [second, "One"],
    [third, "Two"],
  ] as const) {
    const { nextSteps, text } = await server.call("create_targetings", { items: [{ name }] });
    for (const { runId } of [added, sent]) {
      expect(nextSteps.join()).toContain(runId);
      expect(text).toContain(runId);
    }
    expect(nextSteps.join()).toContain("resume_run");
  }
  expect((await third.call("track_events", { events: events(1) })).nextSteps.join()).toContain(added.runId);
  for (const { runId } of [added, sent]) {
    await third.call("resume_run", { runId });
    await expect.poll(async () => (await third.call("get_run", { runId })).status).not.toBe("running");
  }
  expect((await second.call("create_targetings", { items: [{ name: "Three" }] })).text).not.toContain("interrupted");
});

test("finished runs of a caller are kept as many as the setting says, and what was taken away goes by days alone", async () => {
  const { service, first, another } = await start(1, { ...ALL, TARGETING_MCP_KEEP_RUNS: "3" });
  const targetingId = await newTargeting(service);
  const { results } = await first.call("bulk_add_options", { targetingId, items: optionItems(2) });
  const deleted = await first.call("delete_options", { ids: results.map(({ _id }) => _id) });
  const made: string[] = [];
  for (let number = 0; number < 6; number += 1) {
    made.push((await first.call("create_targetings", { items: [{ name: `Targeting ${number}` }] })).runId);
  }
  const kept = [...made.slice(3).reverse(), deleted.runId];
  const listed = async (server: typeof first) => (await server.call("get_run", {})).runs.map(({ runId }) => runId);
  await expect.poll(() => listed(first)).toEqual(kept);
  expect(await listed(await another())).toEqual(kept);
  expect((await first.call("get_run", { runId: made[0] })).text).toContain("there is no run");
});
