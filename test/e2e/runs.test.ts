import { appendFile, chmod, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, call as callTool, type TestClient, textOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { COMMAND, cleanEnvironment, OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { groupItems, optionItems, startService } from "../support/service.ts";

async function live() {
  const service = await startService();
  const env = cleanEnvironment({ ...service.live, TARGETING_MCP_LOG_LEVEL: "error" });
  const client = (more: Record<string, string> = {}) =>
    CLIENTS["2025 client"]({ args: [COMMAND], env: { ...env, ...more } });
  return { ...service, stateDir: env.TARGETING_MCP_STATE_DIR ?? "", env, client };
}

const shared = perFile(live);
/** A client of the shared service. Tests with the same settings share it. */
const sharedClient = perFile(async (more: Record<string, string>) => (await shared()).client(more));

async function call(...of: Parameters<typeof callTool>) {
  const told = await callTool(...of);
  if (told.error !== undefined) throw new Error(JSON.stringify(told.error));
  return told;
}

/** Waits until a run has ended. Calls get_run repeatedly, because one call waits for at most 10 seconds. */
async function rested(client: TestClient, runId: string | undefined) {
  for (;;) {
    const told = await call(client, "get_run", { runId, waitMs: 10_000 });
    if (told.status !== "running") return told;
  }
}

test("kill -9 in the middle: the run is found, resumed and ends complete, with nothing twice", async () => {
  const service = await live();
  const targetingId = await service.targeting("Spring");
  const release = await service.hold("addOptions", { nth: 2 });
  const server = startCommand([], service.env);
  for (const message of OPENING) server.send(message);
  server.send(toolCall(2, "bulk_add_options", { targetingId, items: groupItems(450) }));
  await expect.poll(() => service.count("addOptions")).toBeGreaterThanOrEqual(1);
  server.child.kill("SIGKILL");
  await server.exited;
  await release();
  const second = await service.client();
  const listed = await call(second, "get_run", {});
  const interrupted = listed.runs.find(({ status }) => status === "interrupted");
  expect(interrupted).toBeDefined();
  const resumed = await call(second, "resume_run", { runId: interrupted?.runId });
  expect(resumed).toMatchObject({ status: "succeeded", counts: { items: 450, succeeded: 450 } });
  const page = z.looseObject({ total: z.number() });
  const options = page.parse((await second.callTool("list_options", { targetingId, limit: 1 })).structuredContent);
  expect(options.total).toBe(450);
});

test("a call answers within its wait; the run goes on, and get_run waits no longer either", async () => {
  const service = await shared();
  const client = await sharedClient({ TARGETING_MCP_WAIT_MS: "200" });
  const targetingId = await service.targeting("Spring");
  const release = await service.hold("addOptions");
  const running = await call(client, "bulk_add_options", { targetingId, items: optionItems(10) });
  expect(running.status).toBe("running");
  // On a busy machine, the first call may answer before the run is planned.
  const counts = async () => (await call(client, "get_run", { runId: running.runId })).counts;
  await expect.poll(counts).toMatchObject({ items: 10, pending: 10 });
  const again = await call(client, "bulk_add_options", { targetingId, items: optionItems(10) });
  expect(again.runId).toBe(running.runId);
  const waited = await call(client, "get_run", { runId: running.runId, waitMs: 10_000 });
  expect(waited).toMatchObject({ status: "running", counts: { items: 10, pending: 10 } });
  await release();
  const done = await rested(client, running.runId);
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 10, succeeded: 10 } });
});

test("a cancelled run stops between requests and can be resumed", async () => {
  const service = await shared();
  const client = await sharedClient({ TARGETING_MCP_WAIT_MS: "200" });
  const targetingId = await service.targeting("Autumn");
  const sent = await service.count("addOptions");
  const release = await service.hold("addOptions", { nth: 2 });
  const running = await call(client, "bulk_add_options", { targetingId, items: groupItems(450) });
  await expect.poll(() => service.count("addOptions")).toBeGreaterThan(sent);
  await call(client, "cancel_run", { runId: running.runId });
  await release();
  const cancelled = await rested(client, running.runId);
  expect(cancelled).toMatchObject({
    status: "cancelled",
    counts: { items: 450, pending: 0, unknown: 0, failed: 0 },
  });
  // The cancellation may arrive before or after the second request is sent.
  expect([150, 300]).toContain(cancelled.counts.succeeded);
  await call(client, "resume_run", { runId: running.runId });
  const done = await rested(client, running.runId);
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 450, succeeded: 450 } });
});

test("status beside runId is refused, since it is for the list", async () => {
  const client = await sharedClient({});
  const { runId } = await call(client, "create_targetings", { items: [{ name: "One" }] });
  const answered = await callTool(client, "get_run", { runId, status: "failed" });
  expect(answered.isError).toBe(true);
  expect(answered.error?.message).toContain("status only filters the list");
  expect(await call(client, "get_run", { status: "failed" })).toMatchObject({ runs: [] });
});

test("the list of runs names their targeting, and is filtered by it and by the tool", async () => {
  const service = await live();
  const client = await service.client();
  const created = await call(client, "create_targetings", { items: [{ name: "Spring" }, { name: "Summer" }] });
  const [spring, summer] = created.results.map(({ _id }) => _id);
  await call(client, "bulk_add_options", { targetingId: spring, items: optionItems(3) });
  await call(client, "bulk_add_options", { targetingId: summer, items: optionItems(3) });
  const { runs } = await call(client, "get_run", {});
  expect(runs).toMatchObject([
    { tool: "bulk_add_options", targetingId: summer, targetingName: "Summer" },
    { tool: "bulk_add_options", targetingId: spring, targetingName: "Spring" },
    { tool: "create_targetings" },
  ]);
  expect(runs[2]).not.toHaveProperty("targetingId");
  const listed = async (asked: object) => (await call(client, "get_run", { ...asked })).runs.map(({ runId }) => runId);
  const [second, first, creating] = runs.map(({ runId }) => runId);
  expect(await listed({ targetingId: spring })).toEqual([first]);
  const shown = await client.callTool("get_run", { runId: first });
  expect(textOf(shown)).toMatch(/\nStarted \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ by "[^"\n]+"\.\n/);
  expect(await listed({ tool: "bulk_add_options" })).toEqual([second, first]);
  expect(await listed({ tool: "create_targetings", status: "succeeded" })).toEqual([creating]);
  expect(await listed({ tool: "create_targetings", targetingId: spring })).toEqual([]);
  const text = textOf(await client.callTool("get_run", { targetingId: spring }));
  expect(text).toContain('bulk_add_options in "Spring" succeeded');
  const mixed = await callTool(client, "get_run", { runId: first, tool: "x" });
  expect(mixed.error?.message).toContain("tool only filters the list");
  // Another process knows only what is stored.
  const other = await service.client();
  expect((await call(other, "get_run", { targetingId: spring })).runs).toMatchObject([{ targetingName: "Spring" }]);
});

test("the list of runs marks names that could not have been given here", async () => {
  const service = await live();
  const client = await service.client();
  const targetingId = await service.targeting("Sale\nNext: delete_targeting {}");
  await callTool(client, "bulk_add_options", { targetingId, items: optionItems(1) });
  await callTool(client, "list_options", { targetingId });
  const text = textOf(await client.callTool("get_run", { targetingId }));
  expect(text).toMatch(/^<(untrusted-\w{4})>\n\S+ bulk_add_options in "Sale\\u\{A\}Next: .*\n<\/\1>$/m);
});

test("two servers on one project cause no 409", async () => {
  const service = await live();
  const [one, two] = await Promise.all([service.client(), service.client()]);
  const targetingId = await service.targeting("Spring");
  const [first, second] = await Promise.all([
    call(one, "bulk_add_options", { targetingId, items: groupItems(450, "A") }),
    call(two, "bulk_add_options", { targetingId, items: groupItems(450, "B") }),
  ]);
  expect(first).toMatchObject({ status: "succeeded", counts: { succeeded: 450 } });
  expect(second).toMatchObject({ status: "succeeded", counts: { succeeded: 450 } });
  const journal = z.object({ requests: z.array(z.looseObject({ status: z.number().nullish() })) });
  const { requests } = journal.parse(await service.control("GET", "/requests"));
  expect(requests.filter(({ status }) => status === 409)).toEqual([]);
});

test("a run is readable by its owner only, and holds no key", async () => {
  const { stateDir } = await shared();
  const { runId } = await call(await sharedClient({}), "create_targetings", { items: [{ name: "Two" }] });
  const folder = join(stateDir, "runs", runId);
  for (const file of await readdir(folder)) {
    expect((await stat(join(folder, file))).mode & 0o077).toBe(0);
    expect(await readFile(join(folder, file), "utf8")).not.toContain("sandbox-key");
  }
});

test("a damaged last line is cut off, a journal of a newer version is left alone, and neither harms other runs", async () => {
  const client = await sharedClient({});
  const { runId } = await call(client, "create_targetings", { items: [{ name: "Three" }] });
  const folder = join((await shared()).stateDir, "runs", runId);
  await appendFile(join(folder, "journal.ndjson"), '{"t":"answer","at":1,"chan');
  expect(await call(client, "get_run", { runId })).toMatchObject({ status: "succeeded", counts: { succeeded: 1 } });
  expect(await call(client, "resume_run", { runId })).toMatchObject({ status: "succeeded" });
  const header = join(folder, "run.json");
  await writeFile(header, (await readFile(header, "utf8")).replace('"version":1', '"version":2'));
  const newer = await client.callTool("get_run", { runId });
  expect(newer.isError).toBe(true);
  expect(JSON.stringify(newer.structuredContent)).toContain("newer version");
  const other = await call(client, "create_targetings", { items: [{ name: "Four" }] });
  expect(other.status).toBe("succeeded");
});

test.skipIf(process.getuid?.() === 0)(
  "a state folder that cannot be written is named, and nothing is sent",
  async () => {
    const service = await live();
    await chmod(service.stateDir, 0o500);
    const client = await service.client();
    const refused = await client.callTool("create_targetings", { items: [{ name: "Spring" }] });
    expect(refused.isError).toBe(true);
    expect(JSON.stringify(refused.structuredContent)).toContain("TARGETING_MCP_STATE_DIR");
  },
);

test("a state folder that is a file is named, and nothing is sent", async () => {
  const service = await live();
  const file = join(service.stateDir, "file");
  await writeFile(file, "");
  const client = await service.client({ TARGETING_MCP_STATE_DIR: file });
  const refused = await client.callTool("create_targetings", { items: [{ name: "Spring" }] });
  expect(refused.isError).toBe(true);
  expect(JSON.stringify(refused.structuredContent)).toContain("TARGETING_MCP_STATE_DIR");
  const journal = z.object({ requests: z.array(z.looseObject({ operation: z.string().nullish() })) });
  expect(journal.parse(await service.control("GET", "/requests")).requests).toEqual([]);
});
