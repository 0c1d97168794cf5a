import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, textOf } from "../support/clients.ts";
import { COMMAND, cleanEnvironment, OPENING, startCommand, toolCall } from "../support/server-process.ts";
import { startService } from "../support/service.ts";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const env = { TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_RETRY_BUDGET_MS: "300" };
const ids = (count: number, start: string) => Array.from({ length: count }, (_, at) => `${start}${at}`);

/** Changes an option or targeting as another user of the API would. */
async function asOthers(url: string, item: object, kind: "/category" | "" = "/category"): Promise<void> {
  const answer = await fetch(`${url}/context-targeting${kind}/bulk/update`, {
    method: "POST",
    headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
    body: JSON.stringify({ items: [item] }),
  });
  expect(await answer.json()).toMatchObject({ results: [{ success: true }] });
}

type Made = Readonly<Record<"shop" | "one" | "two" | "group" | "inner", string>>;

interface Refused {
  readonly tool: string;
  readonly args: (made: Made) => Readonly<Record<string, unknown>>;
  /** Which write of the run the service refuses. */
  readonly nth?: number;
  /** What another user changes before the run is resumed. */
  readonly others: (made: Made) => readonly object[];
}

const listedRuns = z.object({ runs: z.array(z.looseObject({ runId: z.string(), status: z.string() })) });
const optionContents = z.looseObject({ contexts: z.array(z.string()) });
const planned = z.looseObject({ runId: z.string().optional(), undo: z.record(z.string(), z.number()) });
const listed = z.object({
  options: z.array(z.looseObject({ name: z.string(), contexts: z.array(z.string()).optional() })),
});

/** Makes a call that the service refuses with 403, changes something as another user, and then resumes the run. */
async function resumedAfter({ tool, args, nth = 1, others }: Refused) {
  const { client, sandbox, control } = await startSession({ env });
  const shop = await sandbox.targeting("Shop");
  const [one = "", two = "", group = ""] = await sandbox.options(shop, [
    { name: "One", contexts: ["kept"] },
    { name: "Two", contexts: ["br-17", "kept"] },
    { name: "Group", type: "collection", contexts: ["g"], exposeChildren: false },
  ]);
  const [inner = ""] = await sandbox.options(shop, [{ name: "Inner", parent: group, contexts: ["i"] }]);
  const made = { shop, one, two, group, inner };
  await control("/faults", { faults: [{ on: "write", nth, times: 1, kind: "status", status: 403 }] });
  const first = checkedReport(await client.callTool(tool, args(made)));
  expect(first.failures).toMatchObject([{ errorCode: expect.stringMatching(/FORBIDDEN|PARTLY_APPLIED/) }]);
  await sandbox.control("DELETE", "/faults");
  for (const item of others(made)) {
    await asOthers(sandbox.url, item, "_id" in item && item._id === shop ? "" : "/category");
  }
  const resumed = await client.callTool("resume_run", { runId: first.runId });
  const again = checkedReport(resumed);
  const contents = async () => {
    const given = await client.callTool("list_options", { targetingId: shop, all: true, detail: "detailed" });
    return JSON.stringify(given.structuredContent);
  };
  /** Plans and applies the undo of the run. Returns its labels, without those of no object. */
  const undo = async () => {
    const plan = await client.callTool("undo_run", { runId: first.runId });
    const { runId, undo: labels } = planned.parse(plan.structuredContent);
    if (runId !== undefined) await client.callTool("apply_plan", { runId });
    return { text: textOf(plan), labels: Object.fromEntries(Object.entries(labels).filter(([, count]) => count > 0)) };
  };
  return { again, text: textOf(resumed), contents, undo, made, client };
}

/** Returns the Context IDs of an option. */
async function heldBy({ contents }: Awaited<ReturnType<typeof resumedAfter>>, name: string) {
  const { options } = listed.parse(JSON.parse(await contents()));
  return options.find((option) => option.name === name)?.contexts?.toSorted();
}

const both = ({ one, two }: Made) => ({
  items: [
    { _id: one, add: ["dup-a"] },
    { _id: two, remove: ["br-17"] },
  ],
});

test("Context IDs that others added or removed meanwhile are not reported, and stay after an undo", async () => {
  const run = await resumedAfter({
    tool: "update_contexts",
    args: both,
    others: ({ one, two }) => [
      { _id: one, contexts: { add: ["dup-a"] } },
      { _id: two, contexts: { remove: ["br-17"] } },
    ],
  });
  expect(run.again).toMatchObject({ status: "succeeded" });
  expect(run.text).not.toMatch(/1 added|1 removed/);
  expect(run.text).toContain("(1 already there)");
  const { labels, text } = await run.undo();
  expect(labels, text).toEqual({});
  expect(await heldBy(run, "One")).toEqual(["dup-a", "kept"]);
  expect(await heldBy(run, "Two")).toEqual(["kept"]);
});

test("several Context IDs of which others have changed some, in one option", async () => {
  const run = await resumedAfter({
    tool: "update_contexts",
    args: ({ two }) => ({ items: [{ _id: two, add: ["a", "b", "c"], remove: ["br-17", "kept"] }] }),
    others: ({ two }) => [{ _id: two, contexts: { add: ["b"], remove: ["br-17"] } }],
  });
  // The option has as many Context IDs as before.
  expect(run.again).toMatchObject({ status: "succeeded" });
  expect(run.text).toContain("(2 added, 1 removed, 1 already there, 1 not there)");
  const { labels, text } = await run.undo();
  expect(labels, text).toEqual({ exact: 1 });
  expect(await heldBy(run, "Two")).toEqual(["b", "kept"]);
});

test("several items about one option", async () => {
  const args = ({ one }: Made) => ({
    items: [
      { _id: one, add: ["a", "b"] },
      { _id: one, add: ["c"] },
    ],
  });
  const some = await resumedAfter({
    tool: "update_contexts",
    args,
    others: ({ one }) => [{ _id: one, contexts: { add: ["a"] } }],
  });
  expect(some.text).not.toContain("added");
  expect((await some.undo()).labels).toEqual({ exact: 1 });
  expect(await heldBy(some, "One")).toEqual(["a", "kept"]);
  const all = await resumedAfter({
    tool: "update_contexts",
    args,
    others: ({ one }) => [{ _id: one, contexts: { add: ["a", "b", "c"] } }],
  });
  expect(all.text).toContain("already there");
  expect((await all.undo()).labels).toEqual({});
});

test("Context IDs that are replaced: others have changed as many as they removed", async () => {
  const run = await resumedAfter({
    tool: "update_contexts",
    args: ({ two }) => ({ items: [{ _id: two, set: ["s1", "s2"] }] }),
    others: ({ two }) => [{ _id: two, contexts: { add: ["theirs"], remove: ["br-17"] } }],
  });
  expect(run.again.failures).toMatchObject([
    { errorCode: "PLAN_STALE", message: expect.stringContaining("its Context IDs are no longer the same") },
  ]);
  expect(await heldBy(run, "Two")).toEqual(["kept", "theirs"]);
});

const NAMED = { name: "Other" };

test.each([
  { what: "a name", change: () => NAMED },
  { what: "a group", change: ({ group: parent }: Made) => ({ parent }) },
  { what: "a name and a group", change: ({ group: parent }: Made) => ({ ...NAMED, parent }) },
])("$what that others have already set", async ({ change }) => {
  const run = await resumedAfter({
    tool: "update_options",
    args: (made) => ({ items: [{ _id: made.one, ...change(made) }] }),
    others: (made) => [{ _id: made.one, ...change(made) }],
  });
  expect(run.again).toMatchObject({ status: "succeeded" });
  expect(run.again.results).toMatchObject([{ did: "same" }]);
  const before = await run.contents();
  const { labels, text } = await run.undo();
  expect(labels, text).toEqual({});
  expect(await run.contents()).toBe(before);
});

test("a name that others have already set, and a group that they have not", async () => {
  const run = await resumedAfter({
    tool: "update_options",
    args: ({ one, group }) => ({ items: [{ _id: one, ...NAMED, parent: group }] }),
    others: ({ one }) => [{ _id: one, ...NAMED }],
  });
  expect(run.again.results).toMatchObject([{ did: "changed", from: { name: "Other" }, to: { name: "Other" } }]);
  expect((await run.undo()).labels).toEqual({ exact: 1 });
  expect(await heldBy(run, "Other")).toEqual(["kept"]);
});

test("exposeChildren that others have already set", async () => {
  const run = await resumedAfter({
    tool: "update_options",
    args: ({ group }) => ({ items: [{ _id: group, exposeChildren: true }] }),
    others: ({ group }) => [{ _id: group, exposeChildren: true }],
  });
  expect(run.again.results).toMatchObject([{ did: "same" }]);
  expect((await run.undo()).labels).toEqual({});
  expect(await run.contents()).toContain('"exposeChildren":true');
});

test("exposeChildren that the run would not have changed, but others have", async () => {
  const run = await resumedAfter({
    tool: "update_options",
    args: ({ group }) => ({ items: [{ _id: group, exposeChildren: false }] }),
    others: ({ group }) => [{ _id: group, exposeChildren: true }],
  });
  expect(run.again.failures).toMatchObject([
    {
      errorCode: "PLAN_STALE",
      message: expect.stringContaining('its exposeChildren was expected to be "false", but is "true"'),
    },
  ]);
  expect(await run.contents()).toContain('"exposeChildren":true');
});

test("a targeting that others have already renamed", async () => {
  const run = await resumedAfter({
    tool: "rename_targetings",
    args: ({ shop: _id }) => ({ items: [{ _id, name: "Store" }] }),
    others: ({ shop: _id }) => [{ _id, name: "Store" }],
  });
  expect(run.again).toMatchObject({ status: "succeeded" });
  expect((await run.undo()).labels).toEqual({});
  const there = await run.client.callTool("get_targeting", { targetingId: run.made.shop });
  expect(there.structuredContent).toMatchObject({ targeting: { name: "Store" } });
});

test("a change of which the service applied the first part, and others made some of the rest", async () => {
  const add = ids(15_000, "c");
  const run = await resumedAfter({
    tool: "update_contexts",
    args: ({ one }) => ({ items: [{ _id: one, add }] }),
    nth: 2,
    others: ({ one }) => [{ _id: one, contexts: { add: ["c14999"], remove: ["c0"] } }],
  });
  expect(run.text).toContain("14,999 added");
  const { labels, text } = await run.undo();
  expect(labels, text).toEqual({ exact: 1 });
  expect(await heldBy(run, "One")).toEqual(["c14999", "kept"]);
});

test("a run of a killed process that another process continues", async () => {
  const service = await startService();
  const environment = cleanEnvironment({ ...service.live, ...env });
  const shop = await service.targeting("Shop");
  const [one = "", two = ""] = await service.options(shop, [{ name: "One", contexts: ["kept"] }, { name: "Two" }]);
  const release = await service.hold("updateOptions");
  const server = startCommand([], environment);
  for (const message of OPENING) server.send(message);
  const items = [
    { _id: one, add: ids(15_000, "c") },
    { _id: two, add: ["c0"] },
  ];
  server.send(toolCall(2, "update_contexts", { items }));
  await expect.poll(() => service.count("updateOptions")).toBe(1);
  server.child.kill("SIGKILL");
  await server.exited;
  await release();
  await asOthers(service.url, { _id: one, contexts: { add: ["c14999"] } });
  const client = await CLIENTS["2025 client"]({ args: [COMMAND], env: environment });
  const { runs } = listedRuns.parse((await client.callTool("get_run", {})).structuredContent);
  const runId = runs.find(({ status }) => status === "interrupted")?.runId;
  const resumed = await client.callTool("resume_run", { runId });
  expect(checkedReport(resumed)).toMatchObject({ status: "succeeded" });
  expect(textOf(resumed)).toContain("14,999 added, 1 already there");
  const undo = planned.parse((await client.callTool("undo_run", { runId })).structuredContent);
  expect(undo.undo).toMatchObject({ exact: 2 });
  await client.callTool("apply_plan", { runId: undo.runId });
  const { contexts } = optionContents.parse((await client.callTool("get_option", { optionId: one })).structuredContent);
  expect(contexts.toSorted()).toEqual(["c14999", "kept"]);
});

test("a run that waited for another one to write", async () => {
  const { client, sandbox, control } = await startSession({
    env: { TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_WAIT_MS: "200" },
  });
  const shop = await sandbox.targeting("Shop");
  const [one = ""] = await sandbox.options(shop, [{ name: "One", contexts: ["kept"] }]);
  await control("/faults", { faults: [{ kind: "busy", on: "addOptions", retryAfterMs: 2000 }] });
  const first = checkedReport(
    await client.callTool("bulk_add_options", { targetingId: shop, items: [{ name: "New" }] }),
  );
  await expect.poll(() => sandbox.count("addOptions")).toBe(2);
  const items = [{ _id: one, add: ["a", "b"], remove: ["kept"] }];
  const { runId } = checkedReport(await client.callTool("update_contexts", { items }));
  await expect.poll(async () => textOf(await client.callTool("get_run", { runId }))).toContain("2 to add");
  await asOthers(sandbox.url, { _id: one, contexts: { add: ["a"], remove: ["kept"] } });
  const ended = async () => checkedReport(await client.callTool("get_run", { runId, waitMs: 10_000 })).status;
  await expect.poll(ended).toBe("succeeded");
  expect(first.runId).not.toBe(runId);
  expect(textOf(await client.callTool("get_run", { runId }))).toContain("(1 added, 1 already there, 1 not there)");
});

test("a change that is sent at once reads nothing again", async () => {
  const { client, sandbox } = await startSession({ env });
  const shop = await sandbox.targeting("Shop");
  const [one = "", two = ""] = await sandbox.options(shop, [{ name: "One" }, { name: "Two", contexts: ["br-17"] }]);
  const before = await sandbox.count("getOption");
  const items = both({ shop, one, two, group: "", inner: "" }).items;
  expect(checkedReport(await client.callTool("update_contexts", { items })).status).toBe("succeeded");
  expect((await sandbox.count("getOption")) - before).toBe(2);
});
