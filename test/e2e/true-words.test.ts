import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

/** Starts a session with two groups: "Clothing" with two sub-options, and another one. */
async function clothing() {
  const session = await startSession({ env: { TARGETING_MCP_CONFIRM: "off" } });
  const targetingId = await session.sandbox.targeting("Shop");
  const ids = await session.sandbox.options(targetingId, [
    { name: "Clothing", contexts: ["c"], children: [{ name: "Shirts" }, { name: "Trousers" }] },
    { name: "Winter", contexts: ["w"], children: [{ name: "Boots" }] },
    { name: "Hats" },
  ]);
  const [group = "", winter = "", hats = ""] = ids;
  return { session, targetingId, group, winter, hats };
}

test("what goes back into a deleted group goes into the group, not to the top level", async () => {
  const { session, group } = await clothing();
  const { client } = session;
  const deleted = await client.callTool("delete_options", { ids: [group] });
  const plan = await client.callTool("undo_run", { runId: deleted.structuredContent?.runId });
  const undone = await client.callTool("apply_plan", { runId: plan.structuredContent?.runId });
  expect(undone.structuredContent).toMatchObject({ status: "succeeded" });
  expect(textOf(undone)).toMatch(/"Shirts" \w{26} from the top level to group "Clothing"/);
  const moves = JSON.stringify(undone.structuredContent?.results);
  expect(moves).toContain('"to":{"parentName":"Clothing"}');
  expect(moves).not.toContain('"parent":null,"parentName":"Clothing"');
});

test("an option that does not exist is not named as one that an undo leaves as it is", async () => {
  const { session, hats } = await clothing();
  const items = [hats, "01J8ZQ4N3V0000000000000099"].map((_id) => ({ _id, add: ["new"] }));
  const changed = await session.client.callTool("update_contexts", { items });
  expect(changed.structuredContent).toMatchObject({ status: "partial", counts: { succeeded: 1, failed: 1 } });
  expect(textOf(changed)).not.toContain("not read before the change");
});

test("a move into a group that the same plan renames names the new name; a setting says which it is", async () => {
  const { session, targetingId, winter, hats } = await clothing();
  const desired = {
    version: 1,
    targeting: { _id: targetingId },
    options: [{ _id: winter, name: "Winter 2026", exposeChildren: true, children: [{ _id: hats, name: "Hats" }] }],
  };
  const plan = await session.client.callTool("plan_targeting", { desired });
  const text = textOf(plan);
  expect(text).toMatch(/"Hats" \(\w+\): top level → "Winter 2026"/);
  expect(text).toMatch(/"Winter" \(\w+\): exposeChildren false → true/);
  const applied = await session.client.callTool("apply_plan", { runId: plan.structuredContent?.runId });
  expect(textOf(applied)).toMatch(/"Hats" \w{26} from the top level to group "Winter 2026"/);
  const renamed = await session.client.callTool("update_options", {
    items: [
      { _id: winter, name: "Winter 2027" },
      { _id: hats, parent: null },
    ],
  });
  expect(textOf(renamed)).toMatch(/"Hats" \w{26} from group "Winter 2026" to the top level/);
  const together = await session.client.callTool("update_options", {
    items: [
      { _id: winter, name: "Winter 2028" },
      { _id: hats, parent: winter },
    ],
  });
  expect(textOf(together)).toMatch(/"Hats" \w{26} from the top level to group "Winter 2028"/);
});

test("an event that is under way is not told as no request sent", async () => {
  const session = await startSession({ env: { TARGETING_MCP_WAIT_MS: "4000" } });
  // The first event loads the code. The request of the second event is then sent well before the call answers.
  await session.client.callTool("track_event", { uid: "u", eventName: "app_open" });
  await session.control("/faults", { faults: [{ on: "trackEvent", kind: "hold" }] });
  const given = await session.client.callTool("track_event", { uid: "u", eventName: "app_open" });
  expect(given.structuredContent).toMatchObject({
    status: "running",
    notes: expect.arrayContaining([expect.stringContaining("up to 1 more request has no answer yet")]),
  });
  expect(textOf(given)).not.toMatch(/0 requests|Requests sent: 0/);
});

test("what was sent and refused each time is not applied, not notApplied", async () => {
  const { session, hats } = await clothing();
  const env = { ...session.environment, TARGETING_MCP_RETRY_BUDGET_MS: "1000" };
  const other = await startSession({ env: { ...env, TARGETING_MCP_SANDBOX_URL: session.sandbox.url } });
  await session.control("/faults", { faults: [{ on: "write", kind: "busy", retryAfterMs: 100, times: 1000 }] });
  const given = await other.client.callTool("update_options", { items: [{ _id: hats, name: "Caps" }] });
  expect(textOf(given)).toContain("No option was changed: 1 not applied.");
  expect(textOf(given)).not.toMatch(/not attempted|\d ms waited/);
  expect(textOf(given)).toMatch(/locked by other writes for \d+ s \(\d+ tries/);
});

test("a plan without changes of its own says how many changes in the service it keeps", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_ALLOWED_DIRS: folder } });
  const targetingId = await sandbox.targeting("Shop");
  const names = Array.from({ length: 7 }, (_, number) => `Option ${number}`);
  const ids = await sandbox.options(
    targetingId,
    names.map((name) => ({ name })),
  );
  const file = join(folder, "shop.yaml");
  await client.callTool("list_options", { targetingId, saveTo: file });
  await client.callTool("update_options", { items: ids.map((_id, number) => ({ _id, name: `Other ${number}` })) });
  const plan = await client.callTool("plan_targeting", { file });
  const [first] = textOf(plan).split("\n");
  expect(first).toContain("no changes of its own; 7 changes in the service since the base are kept");
  expect(textOf(plan)).not.toContain("nothing to do");
  expect(textOf(plan)).not.toContain("others");
  expect(textOf(plan)).toContain("Changed in the service since the base, and kept:");
});

test("what did not change is not reported as a change", async () => {
  const { session, targetingId, hats, group } = await clothing();
  const { client } = session;
  const same = await client.callTool("rename_targetings", { items: [{ _id: targetingId, name: "Shop" }] });
  expect(textOf(same)).toContain(`Unchanged (item 1): "Shop" ${targetingId}`);
  const items = [
    { _id: hats, parent: null },
    { _id: group, name: "Clothing" },
  ];
  const changed = await client.callTool("update_options", { items });
  expect(textOf(changed)).toContain(`Unchanged (items 1-2): "Hats" ${hats}, "Clothing" ${group}`);
  const moved = await client.callTool("update_options", { items: [{ _id: hats, name: "Caps", parent: null }] });
  expect(textOf(moved)).toMatch(/^Renamed \(item 1\): "Hats" → "Caps" \w{26}$/m);
});

test("a deletion whose answer was lost is neither claimed nor denied, and its undo is offered", async () => {
  const { session, hats, winter } = await clothing();
  const { client } = session;
  await session.control("/faults", { faults: [{ on: "deleteOptions", kind: "reset", applied: true, times: 1 }] });
  const gone = await client.callTool("delete_options", { ids: [hats, winter] });
  const { counts, runId } = checkedReport(gone);
  expect(counts).toMatchObject({ items: 2, succeeded: 0, alreadyDone: 2 });
  expect(textOf(gone)).toMatch(/^2 options: all 2 found deleted when the deletion was sent again\. /);
  expect(textOf(gone)).toContain(`Found deleted (items 1-2): "Hats" ${hats}, "Winter" ${winter}`);
  expect(textOf(gone)).toContain(`Next: undo_run {"runId":"${runId}"} plans the undo`);
  const shown = await client.callTool("get_run", { runId });
  expect(textOf(shown)).not.toContain("nothing to undo");
  expect(textOf(await client.callTool("undo_run", { runId }))).toContain('create "Hats"');
});

test("an option that is not empty says what it holds, each with its noun", async () => {
  const { session, targetingId } = await clothing();
  const [one = "", group = ""] = await session.sandbox.options(targetingId, [
    { name: "Single", contexts: ["s"] },
    { name: "Double", contexts: ["d", "e"], children: [{ name: "Inner" }] },
  ]);
  const kept = await session.client.callTool("delete_options", { ids: [one], onlyEmpty: true });
  expect(textOf(kept)).toContain("since it still holds 1 Context ID.");
  const both = await session.client.callTool("delete_options", { ids: [one, group], onlyEmpty: true });
  expect(textOf(both)).toContain("Each: item 1: 1 Context ID; item 2: 2 Context IDs and 1 sub-option");
});
