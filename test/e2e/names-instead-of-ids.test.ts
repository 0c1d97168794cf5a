import { expect, test } from "vitest";
import * as z from "zod";
import { CLIENTS, call as callOf } from "../support/clients.ts";
import { perFile } from "../support/ends.ts";
import { COMMAND, cleanEnvironment } from "../support/server-process.ts";
import { startService } from "../support/service.ts";

const started = perFile(async () => {
  const sandbox = await startService();
  const env = cleanEnvironment({ TARGETING_MCP_SANDBOX_URL: sandbox.url });
  const connect = () => CLIENTS["2026 client, modern"]({ args: [COMMAND], env });
  const client = await connect();
  const call = (name: string, args: Readonly<Record<string, unknown>>, by = client) => callOf(by, name, args);
  return { sandbox, call, connect };
});

/** Returns the server that tests share, with an empty sandbox. */
async function connected() {
  const server = await started();
  await server.sandbox.control("POST", "/reset", {});
  return server;
}

test("a move into a group that is gone does not deny the option", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Streaming");
  const [one = "", group = ""] = await sandbox.options(targetingId, [
    { name: "One" },
    { name: "Group", type: "collection", contexts: ["g"] },
  ]);
  const deleted = await call("delete_options", { ids: [group] });
  await call("delete_options", { confirmation: deleted.confirmation?.token });
  const moving = { items: [{ _id: one, parent: group }] };
  const dry = await call("update_options", { ...moving, dryRun: true });
  expect(dry.text).toContain("the group that it was to be moved to is not an option of this targeting");
  const moved = await call("update_options", moving);
  expect(moved.failures).toMatchObject([
    {
      errorCode: "TARGETING_CATEGORY_NOT_FOUND",
      message: expect.stringContaining("or the option was to be moved to a group that does not exist"),
    },
  ]);
});

test("a name that fits whatever its case is taken, and said; one that fits several fails its item alone", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Streaming");
  await sandbox.options(targetingId, [{ name: "Viewers Web" }, { name: "Sale" }, { name: "SALE" }, { name: "News" }]);
  const added = await call("update_contexts", {
    targetingId,
    items: [
      { name: " viewers web", add: ["one"] },
      { name: "sale", add: ["two"] },
      { name: "News", add: ["three"] },
      { name: "Nowhere", add: ["four"] },
    ],
  });
  expect(added).toMatchObject({ status: "partial", counts: { succeeded: 2, failed: 2 } });
  expect(added.notes).toEqual(['" viewers web" matched "Viewers Web", which differs in case or outer spaces']);
  expect(added.text).toContain('" viewers web" matched "Viewers Web"');
  expect(added.failures).toMatchObject([
    { errorCode: "NAME_AMBIGUOUS", indexes: [1] },
    { errorCode: "NAME_NOT_FOUND", indexes: [3] },
  ]);
  const renamed = await call("update_options", {
    targetingId,
    items: [
      { currentName: "NEWS", name: "News Daily" },
      { currentName: "SALE", name: "Sale Days" },
    ],
  });
  expect(renamed).toMatchObject({ status: "succeeded" });
  expect(renamed.notes).toEqual(['"NEWS" matched "News", which differs in case or outer spaces']);
  await sandbox.options(targetingId, [{ name: "가방" }]);
  const composed = await call("get_option", { targetingId, name: "가방".normalize("NFD") });
  expect(composed.text).toContain("differs only in Unicode composition");
  // An exact match of the name adds no note.
  const exact = await call("update_contexts", { targetingId, items: [{ name: "Sale Days", add: ["five"] }] });
  expect(exact.notes).toEqual([]);
});

test("a new option whose name differs from another one in case is noted, and ambiguous names are told apart", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Streaming");
  await sandbox.options(targetingId, [
    { name: "Sub 01", contexts: ["a"] },
    { name: "Rest", type: "collection", children: [{ name: "Test A" }] },
  ]);
  const items = [{ name: "test a", parentName: "Rest" }, { name: "sub 01" }];
  const made = await call("bulk_add_options", { targetingId, onExisting: "addContexts", items });
  expect(made.text).toContain(
    '"test a" was not matched to "Test A", "sub 01" was not matched to "Sub 01", which differs in case or outer spaces: ' +
      "the option with the given name is a new one.",
  );
  const unclear = await call("update_contexts", { targetingId, items: [{ name: "TEST A", add: ["b"] }] });
  expect(unclear.text).toMatch(/"TEST A": \w{26} \("Test A" in "Rest"\), \w{26} \("test a" in "Rest"\)/);
});

test("onlyEmpty keeps what holds anything, and tells it", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Streaming");
  await sandbox.options(targetingId, [{ name: "Full", contexts: ["one"] }, { name: "Empty" }]);
  const asked = await call("delete_options", { targetingId, names: ["Full", "Empty"], onlyEmpty: true });
  expect(asked).toMatchObject({ status: "needs_confirmation" });
  expect(asked.text).not.toMatch(/"Full".*Context ID.*is deleted/);
  const done = await call("delete_options", { confirmation: asked.confirmation?.token });
  expect(done.counts).toMatchObject({ items: 2, succeeded: 1 });
  const left = await call("list_options", { targetingId });
  expect(left.text).toMatch(/:1 Full$/m);
  expect(left.text).not.toContain('"Empty"');
});

test("onlyEmpty keeps the last sub-option of a group, as its preview says, and has nothing to fix", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Streaming");
  const group = { name: "Rest", type: "collection", children: [{ name: "Leer" }, { name: "Last" }] };
  await sandbox.options(targetingId, [{ name: "Empty" }, group]);
  const names = ["Empty", "Leer", "Last"];
  const asked = await call("delete_options", { targetingId, names, onlyEmpty: true });
  expect(asked.confirmation?.effect).toContain("This deletes 2 options with no Context IDs. 1 option stays");
  const done = await call("delete_options", { confirmation: asked.confirmation?.token });
  expect(done.counts).toMatchObject({ items: 3, succeeded: 2, failed: 0, skipped: 1 });
  expect(done.text).not.toContain("send only");
  const again = await call("delete_options", { targetingId, names: ["Last"], onlyEmpty: true });
  expect(again.counts).toMatchObject({ failed: 0, skipped: 1 });
  expect(again.text).toContain('"Rest"');
});

test("a deletion says which name was taken for which other, before a person agrees and after", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Streaming");
  await sandbox.options(targetingId, [{ name: "Old Sale" }, { name: "Older Sale" }]);
  const note = ['"old sale " matched "Old Sale", which differs in case or outer spaces'];
  const asked = await call("delete_options", { targetingId, names: ["old sale ", "Older Sale"] });
  expect(asked).toMatchObject({ status: "needs_confirmation", notes: note });
  const done = await call("delete_options", { confirmation: asked.confirmation?.token });
  expect(done).toMatchObject({ status: "succeeded", notes: note });
});

test("a targeting's name that is no longer its own renames nothing", async () => {
  const { call, connect } = await connected();
  const other = await connect();
  await call("create_targetings", { items: [{ name: "Spring" }] });
  const found = await call("get_targeting", { targetingName: "Spring" });
  const { _id } = z.object({ targeting: z.looseObject({ _id: z.string() }) }).parse(found).targeting;
  // The first server does not notice this rename, because the other server has its own state folder.
  const renamed = await call("rename_targetings", { items: [{ _id, name: "Autumn" }] }, other);
  expect(renamed.status).toBe("succeeded");
  const stale = await call("rename_targetings", { items: [{ currentName: "Spring", name: "Winter" }] });
  expect(stale.status).toBe("failed");
  const now = await call("get_targeting", { targetingId: _id });
  expect(now.text).toContain("name=Autumn");
});

test("onlyEmpty alone deletes every empty option of a targeting, sub-options included, and nothing else", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Clearance");
  const children = [{ name: "Caps" }, { name: "Hats", contexts: ["h-1"] }];
  await sandbox.options(targetingId, [
    { name: "Old One" },
    { name: "Kept", contexts: ["k-1"] },
    { name: "Headwear", type: "collection", children },
  ]);
  const asked = await call("delete_options", { targetingId, onlyEmpty: true });
  expect(asked).toMatchObject({ status: "needs_confirmation", counts: { items: 2 } });
  for (const name of ['"Old One"', '"Caps"']) expect(asked.text).toContain(name);
  expect(asked.text).not.toMatch(/"Kept"|"Headwear"/);
  const done = await call("delete_options", { confirmation: asked.confirmation?.token });
  expect(done).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
  const again = await call("delete_options", { targetingId, onlyEmpty: true });
  expect(again).toMatchObject({ status: "succeeded", counts: { items: 0 }, isError: false });
  expect(again.text).toMatch(
    /^None of the 3 options is empty \(no Context IDs; groups: no sub-options either\); nothing was deleted\. Environment: sandbox\.$/,
  );
});

test("onlyEmpty names each group that it keeps, and what the group still holds", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Shelves");
  const ids = await sandbox.options(targetingId, [
    { name: "Half Full", type: "collection", children: [{ name: "One" }, { name: "Two", contexts: ["t-1"] }] },
    { name: "With Own", contexts: ["o-1"], type: "collection", children: [{ name: "Three" }] },
  ]);
  const asked = await call("delete_options", { targetingId, ids, names: ["One", "Three"], onlyEmpty: true });
  const { text } = await call("delete_options", { confirmation: asked.confirmation?.token });
  expect(text).toMatch(/^NOT_EMPTY, 2 items \(1-2\) "Half Full".*, "With Own".*, skipped: /m);
  expect(text).toContain("item 1: the option was not deleted, since it still holds 1 sub-option.");
  expect(text).toContain("Each: item 1: 1 sub-option; item 2: 1 Context ID");
});

test("onlyEmpty also deletes a group whose sub-options are all empty, in the two calls of any deletion", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Shelves");
  await sandbox.options(targetingId, [
    { name: "All Empty", type: "collection", children: [{ name: "One" }, { name: "Two" }] },
    { name: "With Own", contexts: ["o-1"], type: "collection", children: [{ name: "Three" }] },
    { name: "Half Full", type: "collection", children: [{ name: "Four" }, { name: "Five", contexts: ["f-1"] }] },
  ]);
  const summary = await call("get_targeting", { targetingId, summary: true });
  expect(summary.text).toContain("Empty (no Context IDs; groups: no sub-options either): 4.");
  const listed = await call("list_options", { targetingId, empty: true });
  expect(listed.text).toMatch(/^4 options/);
  expect(listed.text).toContain("Empty: no Context IDs; groups: no sub-options either. delete_options with onlyEmpty");
  const asked = await call("delete_options", { targetingId, onlyEmpty: true });
  expect(asked.text).toContain(
    "Found 4 empty options (no Context IDs; groups: no sub-options either), and 1 group with only empty sub-options.",
  );
  expect(asked.text).toContain(
    "This deletes 1 option group with no own Context IDs, and deletes 4 options with no Context IDs.",
  );
  const done = await call("delete_options", { confirmation: asked.confirmation?.token });
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 5, succeeded: 5 } });
  expect((await call("list_options", { targetingId, all: true })).text).toMatch(/^3 options/);
});

test("removeEverywhere removes Context IDs from every option of a targeting that holds them", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Outlet");
  const children = [{ name: "Boots", contexts: ["sku-1", "sku-2"] }];
  await sandbox.options(targetingId, [
    { name: "Shoes", contexts: ["sku-1", "sku-3"] },
    { name: "Bags", contexts: ["sku-4"] },
    { name: "Winter", type: "collection", children },
  ]);
  const done = await call("update_contexts", { targetingId, removeEverywhere: ["sku-1", "sku-9"] });
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 2, succeeded: 2 } });
  expect(done.text).toMatch(/"Shoes" \w{26} \(.*1 removed.*"Boots" \w{26} \(.*1 removed/);
  expect(done.text).toContain('No option of the targeting holds "sku-9".');
  const again = await call("update_contexts", { targetingId, removeEverywhere: ["sku-1"] });
  expect(again.text).toContain("no option of the targeting holds any of these Context IDs");
  const alone = await call("update_contexts", { removeEverywhere: ["sku-3"] });
  expect(alone.text).toContain("Give targetingId");
});

test("removeEverywhere shows again what it removes if more options hold the Context IDs by now", async () => {
  const { sandbox, call } = await connected();
  const targetingId = await sandbox.targeting("Outlet");
  await sandbox.options(targetingId, [{ name: "Shoes", contexts: ["sku-1"] }]);
  const [bags] = await sandbox.options(targetingId, [{ name: "Bags", contexts: ["sku-4"] }]);
  const gone = { targetingId, removeEverywhere: ["sku-1"] };
  const asked = await call("update_contexts", gone);
  const dry = await call("update_contexts", { ...gone, dryRun: true });
  expect(asked.confirmation?.effect).toContain("removes 1 Context ID from 1 option");
  await call("update_contexts", { items: [{ _id: bags, add: ["sku-1"] }] });
  const again = await call("update_contexts", { confirmation: asked.confirmation?.token });
  expect(again.text).toContain("has changed since the person approved it");
  expect(again.confirmation?.effect).toMatch(/removes 2 Context IDs from 2 options.*"Bags"/s);
  const applied = await call("apply_plan", { runId: dry.runId });
  expect(applied.text).toContain("has changed since it was shown, so nothing was sent");
  expect(applied.text).toContain('"Bags"');
  const done = await call("update_contexts", { confirmation: again.confirmation?.token });
  expect(done).toMatchObject({ status: "succeeded", counts: { items: 2, succeeded: 2 } });
  expect((await call("list_options", { targetingId, contextIds: ["sku-1"] })).text).toMatch(/^0 options|^No options/);
});

test("one targeting is deleted by its name, and a name that others contain says so", async () => {
  const { call } = await connected();
  await call("create_targetings", { items: [{ name: "Gifts" }, { name: "Gifts for Him" }] });
  const found = await call("get_targeting", { targetingName: "Gifts" });
  expect(found).toMatchObject({ targeting: { name: "Gifts" }, others: [{ name: "Gifts for Him" }] });
  expect(found.text).toContain('"Gifts for Him"');
  const asked = await call("delete_targeting", { targetingName: "Gifts for Him" });
  expect(asked).toMatchObject({ status: "needs_confirmation", counts: { items: 1 } });
  expect(asked.text).toContain('"Gifts for Him"');
});
