import { expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../support/clients.ts";
import { checkedReport, inCallOrder, type Report, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const idOf = (report: Report, position = 0): string => inCallOrder(report)[position]?._id ?? "";

/** Creates the targeting "Footwear" with two options, and a group with one sub-option. */
async function footwear(given: { readonly fresh?: true } = {}) {
  const session = await startSession({ live: true, ...given });
  const targetingId = idOf(await session.write("create_targetings", { items: [{ name: "Footwear" }] }));
  const made = await session.write("bulk_add_options", {
    targetingId,
    items: [
      { name: "Running Shoes", contexts: ["a", "b", "c"] },
      { name: "Sandals", contexts: ["s"] },
      { name: "Winter", contexts: ["w"], children: [{ name: "Boots", contexts: ["x"] }] },
    ],
  });
  return {
    session,
    targetingId,
    running: idOf(made),
    sandals: idOf(made, 1),
    winter: idOf(made, 2),
    boots: idOf(made, 3),
  };
}

test("a set says what it added, took away and found, and the targeting's totals, without a read before", async () => {
  const { session, targetingId, running } = await footwear({ fresh: true });
  const given = await session.client.callTool("update_contexts", {
    targetingName: "Footwear",
    items: [{ name: "Running Shoes", set: ["b", "c", "d", "e"] }],
  });
  expect(given.structuredContent).toMatchObject({
    environment: "live",
    status: "succeeded",
    approval: { decision: "not_needed" },
    results: [{ _id: running, name: "Running Shoes", did: "changed", added: 2, removed: 1, alreadyThere: 2 }],
    totals: { targetingId, name: "Footwear", optionCount: 4 },
  });
  expect(textOf(given)).toMatch(/Changed \(item 1\): "Running Shoes" \w{26} \(2 added, 1 removed, 2 already there\)/);
  expect(textOf(given)).not.toContain("asked");
  expect(textOf(given)).not.toContain("0 ms waited");
});

test("an add and a remove by ID say the name, what was there already, and what was not there", async () => {
  const { session, running, sandals } = await footwear();
  const report = await session.write("update_contexts", {
    items: [
      { _id: running, add: ["c", "d"] },
      { _id: sandals, remove: ["s2", "s3"], add: ["t"] },
      { _id: running, add: ["d"] },
    ],
  });
  expect(report.results).toMatchObject([
    { index: 0, name: "Running Shoes", did: "changed", added: 1, alreadyThere: 1 },
    { index: 1, name: "Sandals", added: 1, alreadyThere: 0, removed: 0, absent: 2 },
    { index: 2, name: "Running Shoes", added: 0, alreadyThere: 1 },
  ]);
});

test("renames and moves say from what to what; what was deleted says its name", async () => {
  const { session, targetingId, running, boots, winter } = await footwear();
  const renamed = await session.write("rename_targetings", { items: [{ _id: targetingId, name: "Shoes 2026" }] });
  expect(renamed.results).toMatchObject([{ from: "Footwear", to: "Shoes 2026", did: "changed" }]);
  const moved = await session.write("update_options", {
    items: [
      { _id: boots, parent: null },
      { _id: running, name: "Runners" },
    ],
  });
  expect(moved.results).toMatchObject([
    { name: "Boots", from: { parent: winter, parentName: "Winter" }, to: { parent: null, parentName: null } },
    { name: "Runners", from: "Running Shoes", to: "Runners" },
  ]);
  const planned = await session.write("delete_options", { ids: [running] });
  expect(planned.confirmation?.effect).toContain('"Runners"');
  const done = await session.write("delete_options", { confirmation: planned.confirmation?.token });
  expect(done).toMatchObject({
    approval: { decision: "approved", channel: "token" },
    results: [{ name: "Runners", did: "deleted" }],
  });
  const kept = await session.client.callTool("get_run", { runId: done.runId });
  expect(kept.structuredContent).toMatchObject({ approval: { decision: "approved", channel: "token" } });
});

test("options created beside options extended are told apart", async () => {
  const { session, targetingId } = await footwear();
  const given = await session.client.callTool("bulk_add_options", {
    targetingId,
    onExisting: "addContexts",
    items: [
      { name: "Running Shoes", contexts: ["c", "z"] },
      { name: "Loafers", contexts: ["l"] },
    ],
  });
  expect(given.structuredContent).toMatchObject({
    results: [
      { name: "Running Shoes", did: "changed", added: 1, alreadyThere: 1 },
      { name: "Loafers", did: "created" },
    ],
    totals: { optionCount: 5 },
  });
  expect(textOf(given)).toContain("Created 1 option, added Context IDs to 1 that existed in");
});

test("where the read before fails, an add goes on without it", async () => {
  const { session, running } = await footwear();
  await session.control("/faults", { faults: [{ on: "getOption", kind: "status", status: 503, times: 2 }] });
  const report = await session.write("update_contexts", { items: [{ _id: running, add: ["d"] }] });
  expect(report).toMatchObject({ status: "succeeded", results: [{ _id: running }] });
  expect(report.results[0]).not.toHaveProperty("added");
});

test("failed rows come first, in numbers that people count by, as ranges", async () => {
  const { session, targetingId } = await footwear();
  const items = Array.from({ length: 60 }, (_, at) => ({ name: at >= 20 && at < 50 ? `bad_${at}` : `Option ${at}` }));
  const given = await session.client.callTool("bulk_add_options", { targetingId, items });
  const [first] = checkedReport(given).results;
  expect(first).toMatchObject({ index: 20, outcome: "failed", name: "bad_20" });
  expect(textOf(given)).toContain("INVALID_NAME, 30 items (21-50)");
});

test("an option that another writer changed meanwhile is told with the number that was expected", async () => {
  const { session, targetingId, running, sandals } = await footwear();
  const { sandbox, client, control, writesSent } = session;
  /**
   * Makes a call that finds the project locked at its first write. Before the retry, another writer adds a Context ID
   * to an option.
   */
  const besideAnother = async (name: string, args: Record<string, unknown>, option: string, contextId: string) => {
    await writesSent();
    await control("/faults", { faults: [{ kind: "busy", on: "updateOptions", retryAfterMs: 2000 }] });
    const answer = client.callTool(name, args);
    let sent: readonly (string | null)[] = [];
    while (!sent.includes("updateOptions")) sent = await writesSent();
    const written = await fetch(`${sandbox.url}/context-targeting/category/bulk/update`, {
      method: "POST",
      headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
      body: JSON.stringify({ items: [{ _id: option, contexts: { add: [contextId] } }] }),
    });
    expect(await written.json()).toMatchObject({ succeeded: 1 });
    return checkedReport(await answer);
  };
  const items = [
    { _id: running, add: ["d"], remove: ["a"] },
    { _id: sandals, add: ["t"] },
  ];
  const updated = await besideAnother("update_contexts", { items }, running, "another's");
  expect(updated).toMatchObject({ status: "succeeded" });
  expect(updated.notes.join("\n")).toContain(
    `"Running Shoes" (${running}) holds 4 Context IDs; 3 were expected: another writer may have changed this`,
  );
  const more = { targetingId, onExisting: "addContexts", items: [{ name: "Sandals", contexts: ["u", "v"] }] };
  const extended = await besideAnother("bulk_add_options", more, sandals, "another's too");
  expect(extended.notes.join("\n")).toContain(`"Sandals" (${sandals}) holds 5 Context IDs; 4 were expected`);
  const told = await client.callTool("get_run", { runId: extended.runId });
  expect(textOf(told)).toContain("5 Context IDs; 4 were expected");
  const alone = await session.write("update_contexts", { items: [{ _id: running, add: ["e"], remove: ["b"] }] });
  expect(alone.notes).toEqual([]);
});

test("an empty list changes nothing, and is told so", async () => {
  const { session, running } = await footwear();
  const report = await session.write("update_contexts", { items: [{ _id: running, add: [] }] });
  expect(report).toMatchObject({ status: "succeeded", results: [{ did: "same", added: 0, alreadyThere: 0 }] });
});

test("an item that fails for its group has the name of its option, or the one that was given", async () => {
  const { session, targetingId, sandals } = await footwear();
  const failed = await session.client.callTool("update_options", {
    targetingId,
    items: [
      { currentName: "sandals", parentName: "Wintr" },
      { currentName: "Sandls", parentName: "Winter" },
    ],
  });
  expect(failed.structuredContent).toMatchObject({
    status: "failed",
    results: [
      { index: 0, _id: sandals, name: "Sandals" },
      { index: 1, name: "Sandls" },
    ],
  });
});

test("runs that wait are listed with the time when they were made", async () => {
  const { session, targetingId, sandals } = await footwear();
  const asked = await session.client.callTool("delete_options", { ids: [sandals] });
  expect(asked.structuredContent).toMatchObject({ status: "needs_confirmation" });
  const desired = { version: 1, targeting: { _id: targetingId }, options: [{ name: "New" }] };
  const planned = await session.client.callTool("plan_targeting", { desired });
  expect(planned.structuredContent).toMatchObject({ status: "planned" });
  for (const { structuredContent } of [asked, planned]) {
    const { runs } = listed.parse(
      (await session.client.callTool("get_run", { status: structuredContent?.status })).structuredContent,
    );
    expect(runs).toMatchObject([{ runId: structuredContent?.runId }]);
    for (const { startedAt, updatedAt } of runs)
      expect(Date.parse(updatedAt)).toBeGreaterThanOrEqual(Date.parse(startedAt));
  }
});

const listed = z.looseObject({
  runs: z.array(z.looseObject({ runId: z.string(), startedAt: z.string(), updatedAt: z.string() })),
});

test("a name of one letter is counted as one", async () => {
  const { session, targetingId } = await footwear();
  const refused = await session.client.callTool("bulk_add_options", { targetingId, items: [{ name: "X" }] });
  expect(textOf(refused)).toContain("the name has 1 character (at least 2)");
});

test("a setting that is given with its value, a name or a group counts as changed only where it differs", async () => {
  const { session, targetingId, winter, boots, sandals } = await footwear();
  const items = [
    { _id: winter, name: "Winter", exposeChildren: false },
    { _id: boots, parent: winter },
    { _id: sandals, name: "Sandals", parent: null },
  ];
  const shown = await session.client.callTool("update_options", { targetingId, items, dryRun: true });
  expect(textOf(shown)).toContain("Would change 0 of 3 options, leave 3 unchanged.");
  expect(textOf(shown)).toMatch(/^Unchanged \(items 1-3\): /m);
  expect(textOf(shown)).not.toMatch(/swapped|Would (?:move|rename) /);
  const same = await session.write("update_options", { targetingId, items });
  expect(inCallOrder(same)).toMatchObject([{ did: "same" }, { did: "same" }, { did: "same" }]);

  const changed = await session.client.callTool("update_options", {
    targetingId,
    items: [{ _id: winter, name: "Winter", exposeChildren: true }],
  });
  expect(checkedReport(changed).results).toMatchObject([
    { did: "changed", from: "Winter", to: "Winter", exposeChildren: { from: false, to: true } },
  ]);
  expect(textOf(changed)).toMatch(/Changed \(item 1\): "Winter" \w{26} exposeChildren false → true/);
  const renamed = [
    { _id: winter, name: "Snow" },
    { _id: boots, parent: winter },
  ];
  expect(inCallOrder(await session.write("update_options", { items: renamed }))).toMatchObject([
    { did: "changed", to: "Snow" },
    { did: "same", to: { parent: winter, parentName: "Snow" } },
  ]);
  const again = await session.write("update_options", { items: [{ _id: winter, exposeChildren: true }] });
  expect(again.results).toMatchObject([{ did: "same" }]);
});
