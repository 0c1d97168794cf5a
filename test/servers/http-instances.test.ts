import { mkdtempSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, callsOf, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { startHttp } from "../support/http-server.ts";
import { optionItems, startService } from "../support/service.ts";

const connect = CLIENTS["2026 client, modern"];
const TOKENS = { alice: "token-of-alice-0001", bob: "token-of-bob-000001" };
/** Starts two servers that share a state folder, each with a client for Alice and one for Bob. */
const started = perFile(async () => {
  const service = await startService();
  const file = join(mkdtempSync(join(tmpdir(), "targeting-mcp-")), "access.json");
  await writeFile(file, JSON.stringify({ tokens: Object.entries(TOKENS).map(([name, token]) => ({ name, token })) }));
  const asking = { TARGETING_MCP_ACCESS_FILE: file, TARGETING_MCP_CONFIRM: "ask" };
  const first = await startHttp({ ...service.live, ...asking });
  const shared = { TARGETING_MCP_STATE_DIR: first.stateDir };
  const second = await startHttp({ ...service.live, ...asking, ...shared });
  const client = async ({ url }: { readonly url: string }, who: keyof typeof TOKENS) => {
    const { callTool } = await connect({ url, headers: { authorization: `Bearer ${TOKENS[who]}` } });
    return { callTool, call: callsOf({ callTool }) };
  };
  return {
    service,
    stateDir: first.stateDir,
    aliceHere: await client(first, "alice"),
    aliceThere: await client(second, "alice"),
    bobThere: await client(second, "bob"),
  };
});

/** Returns the servers that all tests share, with an empty service. */
async function start() {
  const servers = await started();
  await servers.service.control("POST", "/reset", {});
  return servers;
}

/** Returns the lines of the audit. */
async function linesIn(stateDir: string): Promise<readonly string[]> {
  return (await readFile(join(stateDir, "audit.ndjson"), "utf8").catch(() => ""))
    .split("\n")
    .filter((one) => one !== "");
}

const EVENT = { uid: "u1", eventName: "app_open" };

test("runs of either kind are known to every instance that shares the folder, and to their caller only", async () => {
  const { aliceHere, aliceThere, bobThere } = await start();
  const listed = async ({ call }: typeof aliceThere) => (await call("get_run", {})).runs.map(({ runId }) => runId);
  const before = { ofAlice: await listed(aliceThere), ofBob: await listed(bobThere) };
  const events = await aliceHere.call("track_events", { events: [EVENT, { ...EVENT, uid: "u2" }] });
  const made = await aliceHere.call("create_targetings", { items: optionItems(2) });
  for (const { runId, counts } of [events, made]) {
    expect(runId).toMatch(/^[0-9A-Z]{26}$/);
    expect(await aliceThere.call("get_run", { runId })).toMatchObject({ runId, status: "succeeded", counts });
    expect(textOf(await bobThere.callTool("get_run", { runId }))).toContain("there is no run");
    expect(textOf(await bobThere.callTool("resume_run", { runId }))).toContain("there is no run");
  }
  expect((await listed(aliceThere)).sort()).toEqual([...before.ofAlice, events.runId, made.runId].sort());
  expect(await listed(bobThere)).toEqual(before.ofBob);
});

test("a confirmation of one instance acts at another, once", async () => {
  const { service, aliceHere, aliceThere, bobThere } = await start();
  const { results } = await aliceHere.call("create_targetings", { items: [{ name: "Spring" }] });
  const { confirmation } = await aliceHere.call("delete_targeting", { ids: [results[0]?._id] });
  const act = { confirmation: confirmation.token };
  expect(textOf(await bobThere.callTool("delete_targeting", act))).toContain("not a token that this server gave");
  const both = await Promise.all([aliceThere.call("delete_targeting", act), aliceHere.call("delete_targeting", act)]);
  expect(new Set(both.map(({ runId }) => runId)).size).toBe(1);
  expect(await service.count("deleteTargetings")).toBe(1);
});

test("suites of one instance run at another, their caller's only, and a yes is good for one run in all", async () => {
  const { service, stateDir, aliceHere, aliceThere, bobThere } = await start();
  const before = await linesIn(stateDir);
  const { suiteId } = await aliceHere.call("generate_event_tests", { eventNames: ["app_open"], kinds: ["minimal"] });
  expect(textOf(await bobThere.callTool("run_event_tests", { suiteId }))).toContain("there is no suite with this ID");
  const planned = await aliceHere.call("run_event_tests", { suiteId, target: "configured" });
  expect(planned.status).toBe("needs_confirmation");
  expect(await service.count("trackEvent")).toBe(0);
  const act = { confirmation: planned.confirmation.token };
  const done = await aliceThere.call("run_event_tests", act);
  expect(done).toMatchObject({ suiteId });
  const sent = await service.count("trackEvent");
  expect(sent).toBeGreaterThan(0);
  expect(await aliceHere.call("run_event_tests", act)).toEqual(done);
  expect(await service.count("trackEvent")).toBe(sent);
  // One line for each call: refused, approval requested, executed, and reported again. A line may be written after the
  // answer.
  const ofTests = (line: string) => line.includes('"tool":"run_event_tests"');
  const newLines = async () => (await linesIn(stateDir)).slice(before.length).filter(ofTests);
  await expect.poll(async () => (await newLines()).length).toBe(4);
});

test("every write is in the audit of the folder, events included, under who made it", async () => {
  const { stateDir, aliceHere, aliceThere, bobThere } = await start();
  const before = await linesIn(stateDir);
  await aliceHere.call("track_events", { events: [EVENT] });
  await aliceThere.call("track_event", EVENT);
  await bobThere.call("create_targetings", { items: [{ name: "Spring" }] });
  await bobThere.call("create_targetings", { items: [{ name: "Summer" }], dryRun: true });
  await bobThere.call("get_run", {});
  const tests = { suiteId: (await bobThere.call("generate_event_tests", { eventNames: ["app_open"] })).suiteId };
  await bobThere.call("run_event_tests", tests);
  const { confirmation } = await bobThere.call("run_event_tests", { ...tests, target: "configured" });
  await bobThere.call("run_event_tests", { confirmation: confirmation.token });
  const lines = async () =>
    (await linesIn(stateDir))
      .slice(before.length)
      .map((line) =>
        z.looseObject({ tool: z.string(), caller: z.string(), outcome: z.string() }).parse(JSON.parse(line)),
      );
  await expect.poll(async () => (await lines()).length).toBe(5);
  expect((await lines()).map(({ tool, caller, outcome }) => [tool, caller, outcome])).toEqual([
    ["track_events", "token:alice", "succeeded"],
    ["track_event", "token:alice", "succeeded"],
    ["create_targetings", "token:bob", "succeeded"],
    ["run_event_tests", "token:bob", "needs_confirmation"],
    ["run_event_tests", "token:bob", "done"],
  ]);
  for (const line of await lines()) expect(line).toMatchObject({ requestId: expect.any(String), environment: "live" });
  expect((await lines()).at(-1)).toMatchObject({
    counts: { cases: expect.any(Number), unobservable: expect.any(Number) },
  });
});
