import { expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../support/clients.ts";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();
const planOf = z.looseObject({ runId: z.string() });

const env = {
  TARGETING_MCP_CONFIRM: "off",
  TARGETING_MCP_RETRY_BUDGET_MS: "300",
  TARGETING_MCP_REQUEST_TIMEOUT_MS: "500",
};
const ids = (count: number, start = "c") => Array.from({ length: count }, (_, at) => `${start}${at}`);

/** Changes an option as another user of the API would. */
async function update(url: string, item: object): Promise<void> {
  const answer = await fetch(`${url}/context-targeting/category/bulk/update`, {
    method: "POST",
    headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
    body: JSON.stringify({ items: [item] }),
  });
  expect(await answer.json()).toMatchObject({ results: [{ success: true }] });
}

interface Made {
  readonly url: string;
  readonly shop: string;
  /** The IDs of an option with 2 Context IDs, one with 150, a group, and its sub-option. */
  readonly one: string;
  readonly two: string;
  readonly group: string;
  readonly inner: string;
}

interface Interrupted {
  readonly tool: string;
  readonly args: (made: Made) => Readonly<Record<string, unknown>>;
  /** What another user does before the run is resumed. */
  readonly change?: (made: Made) => Promise<unknown>;
  readonly fault?: object;
}

const BUSY = { kind: "status", status: 503, applied: false };
const LOST = { kind: "reset", applied: false };

/** Makes a call while the service refuses all writes, changes something as another user, and then resumes the run. */
async function resumedAfter({ tool, args, change, fault = BUSY }: Interrupted) {
  const { client, sandbox, control } = await startSession({ env });
  const shop = await sandbox.targeting("Shop");
  const [one = "", two = "", group = ""] = await sandbox.options(shop, [
    { name: "One", contexts: ids(2) },
    { name: "Two", contexts: ids(150) },
    { name: "Group", type: "collection", contexts: ["g"] },
  ]);
  const [inner = ""] = await sandbox.options(shop, [{ name: "Inner", parent: group, contexts: ["i"] }]);
  const made = { url: sandbox.url, ...{ shop, one, two, group, inner } };
  await control("/faults", { faults: [{ on: "write", nth: 1, times: 1000, ...fault }] });
  const first = checkedReport(await client.callTool(tool, args(made)));
  expect(first.counts.succeeded).toBe(0);
  await sandbox.control("DELETE", "/faults");
  await change?.(made);
  const resumed = await client.callTool("resume_run", { runId: first.runId });
  const again = checkedReport(resumed);
  const there = await client.callTool("list_options", { targetingId: shop });
  return { again, text: textOf(resumed), there: there.structuredContent, client, sandbox, made };
}

const add = (which: "one" | "two" | "inner", count: number) => (made: Made) =>
  update(made.url, { _id: made[which], contexts: { add: ids(count, "new") } });
const both = ({ one, two }: Made) => ({ ids: [one, two] });
const shop = ({ shop: targetingId }: Made) => ({ targetingId });
const replaced = ({ two: _id }: Made) => ({ items: [{ _id, set: ["c1", "s1", "s2"] }] });

test.each([BUSY, LOST])("a resumed deletion leaves what has changed since, and says so (%o)", async (fault) => {
  const { again, text, there, client, made } = await resumedAfter({
    tool: "delete_options",
    args: both,
    change: add("one", 200),
    fault,
  });
  expect(again).toMatchObject({ status: "partial", counts: { items: 2, succeeded: 1, unknown: 1 } });
  expect(again.failures).toMatchObject([
    {
      errorCode: "PLAN_STALE",
      message: expect.stringContaining("expected to have 2 Context IDs, but has 202"),
      remedy: expect.stringContaining("If the change is missing, make a new call"),
    },
  ]);
  expect(text).not.toContain("same call");
  const next = { ids: [made.one], dryRun: true };
  expect(again.nextSteps).toContainEqual(`delete_options ${JSON.stringify(next)} shows what would be deleted now`);
  expect(there).toMatchObject({ options: [{ name: "One", contextCount: 202 }, { name: "Group" }] });
  expect(textOf(await client.callTool("delete_options", next))).toContain("202 Context IDs");
  expect((await client.callTool("get_option", { optionId: made.one })).structuredContent).toMatchObject({ total: 202 });
});

test("a dry run of the advised call sends nothing, below the approval limit too", async () => {
  const { again, client, made } = await resumedAfter({
    tool: "update_contexts",
    args: ({ one, two }) => ({
      items: [
        { _id: one, set: ["b"] },
        { _id: two, add: ["d"] },
      ],
    }),
    change: add("one", 1),
  });
  expect(again.failures).toMatchObject([{ outcome: "unknown", errorCode: "PLAN_STALE", count: 1 }]);
  expect(again.nextSteps).toContainEqual(
    `update_contexts with only item 1 and "dryRun": true shows what would change now. Its input: get_run {"runId":"${again.runId}","outcome":"unknown","includeInput":true}`,
  );
  const dry = await client.callTool("update_contexts", { items: [{ _id: made.one, set: ["b"] }], dryRun: true });
  expect(textOf(dry)).toContain("loses 3 Context IDs");
  expect((await client.callTool("get_option", { optionId: made.one })).structuredContent).toMatchObject({ total: 3 });
});

test("the advice does not use a name that was changed", async () => {
  const change = ({ url, one }: Made) => update(url, { _id: one, name: "Other" });
  const named = ({ shop: targetingId }: Made) => ({ targetingId, names: ["One", "Two"] });
  const deleting = await resumedAfter({ tool: "delete_options", args: named, change });
  const next = { ids: [deleting.made.one], dryRun: true };
  expect(deleting.again.nextSteps).toContainEqual(
    `delete_options ${JSON.stringify(next)} shows what would be deleted now`,
  );
});

test.each([BUSY, LOST])(
  "applying a dry run leaves what has changed since, and the advice can be followed (%o)",
  async (fault) => {
    const { client, sandbox, control } = await startSession({ env });
    const targetingId = await sandbox.targeting("Shop");
    const [one = ""] = await sandbox.options(targetingId, [{ name: "One", contexts: ids(2) }, { name: "Two" }]);
    const planned = checkedReport(await client.callTool("delete_options", { ids: [one], dryRun: true }));
    await control("/faults", { faults: [{ on: "write", nth: 1, times: 1000, ...fault }] });
    const applied = checkedReport(await client.callTool("apply_plan", { runId: planned.runId }));
    await sandbox.control("DELETE", "/faults");
    await update(sandbox.url, { _id: one, contexts: { add: ["later"] } });
    const again = checkedReport(await client.callTool("resume_run", { runId: applied.runId }));
    expect(again.failures).toMatchObject([{ errorCode: "PLAN_STALE" }]);
    expect(again.nextSteps).toEqual([
      `delete_options ${JSON.stringify({ ids: [one], dryRun: true })} shows what would be deleted now`,
    ]);
  },
);

test("the advised deletion still deletes only what is empty", async () => {
  const { client, sandbox, control } = await startSession({ env });
  const targetingId = await sandbox.targeting("Shop");
  const [one = ""] = await sandbox.options(targetingId, [{ name: "One" }, { name: "Two" }]);
  await control("/faults", { faults: [{ on: "write", nth: 1, times: 1000, ...BUSY }] });
  const first = checkedReport(await client.callTool("delete_options", { ids: [one], onlyEmpty: true }));
  await sandbox.control("DELETE", "/faults");
  await update(sandbox.url, { _id: one, contexts: { add: ["later"] } });
  const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
  const next = { ids: [one], onlyEmpty: true, dryRun: true };
  expect(again.nextSteps).toEqual([`delete_options ${JSON.stringify(next)} shows what would be deleted now`]);
  expect(checkedReport(await client.callTool("delete_options", next)).failures).toMatchObject([
    { errorCode: "NOT_EMPTY", outcome: "skipped" },
  ]);
});

test("a plan of a desired state that is out of date leads to a new plan", async () => {
  const { client, sandbox } = await startSession({ env });
  const targetingId = await sandbox.targeting("Shop");
  const [one = ""] = await sandbox.options(targetingId, [{ name: "One", contexts: ids(2) }]);
  const options = [{ _id: one, name: "One", contexts: ["other"] }];
  const desired = { version: 1, targeting: { _id: targetingId }, options };
  const planned = z
    .object({ runId: z.string() })
    .parse((await client.callTool("plan_targeting", { desired })).structuredContent);
  await update(sandbox.url, { _id: one, contexts: { add: ["later"] } });
  const applied = await client.callTool("apply_plan", planned);
  expect(textOf(applied)).toContain("PLAN_STALE, item 1");
  expect(textOf(applied)).toContain("\nNext: plan_targeting with the same input plans the change again");
  expect(textOf(applied)).not.toContain("same call");
});

test.each([BUSY, LOST])("so does a resumed replacement of Context IDs (%o)", async (fault) => {
  const { again, there } = await resumedAfter({
    tool: "update_contexts",
    args: replaced,
    change: add("two", 400),
    fault,
  });
  expect(again).toMatchObject({ status: "unknown", failures: [{ errorCode: "PLAN_STALE" }] });
  expect(there).toMatchObject({ options: [{}, { name: "Two", contextCount: 550 }, {}] });
});

test("and a resumed deletion of a targeting with more options, or with other Context IDs", async () => {
  const more = ({ url, shop: targeting }: Made) =>
    fetch(`${url}/context-targeting/category`, {
      method: "POST",
      headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
      body: JSON.stringify({ targeting, name: "Three" }),
    });
  const grown = await resumedAfter({ tool: "delete_targeting", args: shop, change: more });
  expect(grown.again.failures).toMatchObject([{ message: expect.stringContaining("have 4 options, but has 5") }]);
  expect(grown.there).toMatchObject({ options: [{}, {}, {}, { name: "Three" }] });
  const changed = await resumedAfter({ tool: "delete_targeting", args: shop, change: add("inner", 3) });
  expect(changed.again.failures).toMatchObject([
    { message: expect.stringContaining("other options or Context IDs than expected") },
  ]);
});

test("a group stays with a sub-option that has changed", async () => {
  const args = ({ group, inner }: Made) => ({ ids: [group, inner] });
  const { again, there } = await resumedAfter({ tool: "delete_options", args, change: add("inner", 1) });
  expect(again).toMatchObject({ status: "unknown", counts: { unknown: 2 } });
  expect(again.failures).toMatchObject([{ count: 2, message: expect.stringContaining("its sub-options has changed") }]);
  expect(there).toMatchObject({ options: [{}, {}, { name: "Group" }] });
});

test("a deletion that waited for the service leaves what has changed meanwhile", async () => {
  const { client, sandbox, control } = await startSession({ env: { TARGETING_MCP_CONFIRM: "off" } });
  const targetingId = await sandbox.targeting("Shop");
  const [one = "", two = ""] = await sandbox.options(targetingId, [{ name: "One" }, { name: "Two" }]);
  await control("/faults", { faults: [{ kind: "busy", on: "deleteOptions", retryAfterMs: 2000 }] });
  const deletion = client.callTool("delete_options", { ids: [one, two] });
  await expect.poll(() => sandbox.count("deleteOptions")).toBe(1);
  await update(sandbox.url, { _id: one, contexts: { add: ["later"] } });
  const report = checkedReport(await deletion);
  expect(report).toMatchObject({ status: "partial", counts: { succeeded: 1, failed: 1 } });
  expect(report.failures).toMatchObject([{ errorCode: "PLAN_STALE" }]);
});

test("a deletion that the service applies after others changed its option is not reported as failed", async () => {
  const { client, sandbox } = await startSession({ env });
  const targetingId = await sandbox.targeting("Shop");
  const [one = ""] = await sandbox.options(targetingId, [{ name: "One", contexts: ["a"] }]);
  const release = await sandbox.hold("deleteOptions", { times: 1 });
  const first = checkedReport(await client.callTool("delete_options", { ids: [one] }));
  expect(first.counts).toMatchObject({ unknown: 1 });
  const inConsole = { _id: one, targeting: targetingId, name: "One", contexts: ["a", "b"] };
  await sandbox.control("POST", "/seed", { options: [inConsole] });
  const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
  expect(again).toMatchObject({ status: "unknown", counts: { unknown: 1, failed: 0 } });
  await release();
  const gone = () => client.callTool("get_option", { optionId: one });
  await expect.poll(async () => textOf(await gone())).toContain("no option");
  const undo = await client.callTool("undo_run", { runId: first.runId });
  expect(undo.structuredContent).toMatchObject({ undo: { unresolved: 1 } });
  const plan = planOf.parse(undo.structuredContent);
  await client.callTool("apply_plan", { runId: plan.runId });
  const there = await client.callTool("list_options", { targetingId });
  expect(there.structuredContent).toMatchObject({ options: [{ name: "One", contextCount: 1 }] });
});

const rename = ({ url, one }: Made) => update(url, { _id: one, name: "Other" });
const move = ({ url, one, group }: Made) => update(url, { _id: one, parent: group });
const renameShop = ({ url, shop: _id }: Made) =>
  fetch(`${url}/context-targeting/bulk/update`, {
    method: "POST",
    headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
    body: JSON.stringify({ items: [{ _id, name: "Other" }] }),
  });
const renamed = ({ one: _id }: Made) => ({ items: [{ _id, name: "Mine" }] });
const detached = ({ inner: _id }: Made) => ({ items: [{ _id, parent: null }] });
const renamedShop = ({ shop: _id }: Made) => ({ items: [{ _id, name: "Mine" }] });

test.each([
  { tool: "update_options", args: renamed, change: rename, told: 'name was expected to be "One", but is "Other"' },
  { tool: "rename_targetings", args: renamedShop, change: renameShop, told: 'to be "Shop", but is "Other"' },
])("a resumed change of names leaves the name that somebody else gave: $tool", async ({ told, ...given }) => {
  for (const fault of [BUSY, LOST]) {
    const { again } = await resumedAfter({ ...given, fault });
    expect(again).toMatchObject({ status: "unknown", counts: { unknown: 1 } });
    expect(again.failures).toMatchObject([{ errorCode: "PLAN_STALE", message: expect.stringContaining(told) }]);
    expect(again.nextSteps).toMatchObject([
      expect.stringContaining(`${given.tool} with only item 1 (by ID or current name) and "dryRun": true shows`),
    ]);
  }
});

test("a resumed move leaves an option where somebody else has moved it", async () => {
  const moved = ({ one: _id, two: parent }: Made) => ({ items: [{ _id, parent }] });
  const { again } = await resumedAfter({ tool: "update_options", args: moved, change: move });
  expect(again.failures).toMatchObject([{ errorCode: "PLAN_STALE", message: expect.stringContaining("its group") }]);
});

test.each([
  { tool: "update_options", args: renamed },
  { tool: "update_options", args: detached },
  { tool: "rename_targetings", args: renamedShop },
  { tool: "delete_options", args: both },
  { tool: "update_contexts", args: replaced },
  { tool: "delete_targeting", args: shop },
])("what has not changed is removed as it was approved: $tool", async ({ tool, args }) => {
  const { again } = await resumedAfter({ tool, args, fault: LOST });
  expect(again).toMatchObject({ status: "succeeded" });
});
