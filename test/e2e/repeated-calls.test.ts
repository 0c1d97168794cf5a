import { expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const ITEMS = [
  { name: "One", contexts: ["a"] },
  { name: "Group", type: "collection", children: [{ name: "Inside", contexts: ["x"] }] },
];

const GIVES_UP_SOON = {
  TARGETING_MCP_CONFIRM: "off",
  TARGETING_MCP_RETRY_BUDGET_MS: "300",
  TARGETING_MCP_REQUEST_TIMEOUT_MS: "500",
};

async function shop() {
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_CONFIRM: "off" } });
  const targetingId = await sandbox.targeting("Shop");
  const add = async (items: readonly object[], more: object = {}) => {
    const answer = await client.callTool("bulk_add_options", { targetingId, items, ...more });
    return { report: checkedReport(answer), text: textOf(answer) };
  };
  return { client, sandbox, targetingId, add };
}

test("what the same call created before is already done, however often it is made again", async () => {
  const { add } = await shop();
  const first = await add(ITEMS);
  expect(first.report).toMatchObject({ status: "succeeded", counts: { items: 3, succeeded: 3 } });
  const ids = first.report.results.map(({ _id }) => _id);
  for (let time = 0; time < 2; time += 1) {
    const { report, text } = await add(ITEMS);
    expect(report).toMatchObject({
      status: "succeeded",
      counts: { items: 3, succeeded: 0, alreadyDone: 3, failed: 0 },
    });
    expect(report.runId).not.toBe(first.report.runId);
    expect(report.results.map(({ _id }) => _id)).toEqual(ids);
    expect(text).toContain("No option was created: all 3 already there");
    const before = time === 0 ? first.report.runId : "";
    expect(text).toMatch(new RegExp(`The same call was already applied at [-0-9]+ [0-9:]+ UTC, run ${before}`));
  }
});

test("a token or a plan that was used before is answered as used", async () => {
  const { client, sandbox } = await startSession({ env: { TARGETING_MCP_CONFIRM: "ask" } });
  const targetingId = await sandbox.targeting("Used");
  const [one = ""] = await sandbox.options(targetingId, [{ name: "One" }, { name: "Two" }]);
  const asked = checkedReport(await client.callTool("delete_options", { ids: [one] }));
  const confirmation = asked.confirmation?.token;
  const first = textOf(await client.callTool("delete_options", { confirmation }));
  const second = textOf(await client.callTool("delete_options", { confirmation }));
  expect(first).not.toContain("already applied");
  expect(second).toMatch(/^Deleted 1 option .*\n.*\nAlready applied at [-0-9]+ [0-9:]+ UTC; this call sent nothing\./);
  const items = [{ name: "Three" }];
  const planned = checkedReport(await client.callTool("bulk_add_options", { targetingId, items, dryRun: true }));
  const applied = textOf(await client.callTool("apply_plan", { runId: planned.runId }));
  const again = textOf(await client.callTool("apply_plan", { runId: planned.runId }));
  expect(applied).not.toContain("already applied");
  expect(again).toMatch(/Already applied at .* UTC; this call sent nothing\./);
  const sent = await client.callTool("track_events", { items: [{ uid: "u", eventName: "app_open" }] });
  for (const { runId } of [planned, checkedReport(sent)]) {
    const resumed = textOf(await client.callTool("resume_run", { runId }));
    expect(resumed).toMatch(/Already applied at .* UTC; this call sent nothing\./);
  }
});

test("a dry run of the same call says so too, and so does applying it", async () => {
  const { client, sandbox, targetingId, add } = await shop();
  await add(ITEMS);
  const more = [...ITEMS, { name: "New" }];
  const alreadyDone = { items: 3, alreadyDone: 3, failed: 0, pending: 0 };
  const shown = await add(ITEMS, { dryRun: true });
  expect(shown.report).toMatchObject({ status: "planned", counts: alreadyDone, failures: [] });
  expect(shown.text).not.toContain("TARGETING_CATEGORY_NAME_DUPLICATE");
  const applied = await client.callTool("apply_plan", { runId: shown.report.runId });
  expect(checkedReport(applied)).toMatchObject({ status: "succeeded", counts: alreadyDone });
  expect((await add(more, { dryRun: true })).report.counts).toMatchObject({ alreadyDone: 0, failed: 2, pending: 1 });
  await sandbox.options(targetingId, [{ name: "Theirs" }]);
  const theirs = await add([{ name: "Theirs" }], { dryRun: true });
  expect(theirs.report.failures).toMatchObject([{ errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE" }]);
  const items = [{ name: "Winter", options: [{ name: "Snow" }] }];
  await client.callTool("create_targetings", { items });
  const again = checkedReport(await client.callTool("create_targetings", { items, dryRun: true }));
  expect(again).toMatchObject({ status: "planned", counts: { items: 2, alreadyDone: 2, failed: 0 } });
});

test("a call whose run ended without the answers is made again: its run goes on, and finds what it created", async () => {
  const { client, sandbox, control } = await startSession({ env: GIVES_UP_SOON });
  const targetingId = await sandbox.targeting("Shop");
  const call = { targetingId, items: ITEMS };
  await control("/faults", {
    faults: [
      { on: "write", nth: 1, times: 1, kind: "reset", applied: true },
      { on: "any", nth: 2, times: 1000, kind: "status", status: 502, applied: false },
    ],
  });
  const first = checkedReport(await client.callTool("bulk_add_options", call));
  expect(first).toMatchObject({ status: "unknown", counts: { items: 3, unknown: 3 } });
  await fetch(`${sandbox.url}/_sandbox/faults`, { method: "DELETE" });
  const again = checkedReport(await client.callTool("bulk_add_options", call));
  expect(again).toMatchObject({ runId: first.runId, status: "succeeded", counts: { items: 3, succeeded: 3 } });
});

test("what the same call deleted before is already done, with its answer or without, by ID and by name", async () => {
  const { client, sandbox, control } = await startSession({ env: GIVES_UP_SOON });
  const targetingId = await sandbox.targeting("Shop");
  const [one, two] = await sandbox.options(targetingId, [{ name: "One" }, { name: "Two" }, { name: "Three" }]);
  const report = async (tool: string, args: object) => checkedReport(await client.callTool(tool, { ...args }));
  const byId = { ids: [one, two] };
  await control("/faults", {
    faults: [
      { on: "write", nth: 1, times: 1, kind: "reset", applied: true },
      { on: "write", nth: 2, times: 1000, kind: "status", status: 502, applied: false },
    ],
  });
  const lost = await report("delete_options", byId);
  expect(lost).toMatchObject({ status: "unknown", counts: { items: 2, unknown: 2 } });
  await fetch(`${sandbox.url}/_sandbox/faults`, { method: "DELETE" });
  const shown = await report("delete_options", { ...byId, dryRun: true });
  expect(shown).toMatchObject({ counts: { items: 2, alreadyDone: 2, failed: 0 } });
  for (let time = 0; time < 2; time += 1) {
    const again = await report("delete_options", byId);
    expect(again).toMatchObject({ status: "succeeded", counts: { items: 2, alreadyDone: 2, failed: 0 } });
  }
  const byName = { targetingId, names: ["Three"] };
  expect(await report("delete_options", byName)).toMatchObject({ status: "succeeded", counts: { succeeded: 1 } });
  expect(await report("delete_options", byName)).toMatchObject({ status: "succeeded", counts: { alreadyDone: 1 } });
  await sandbox.options(targetingId, [{ name: "Three" }]);
  expect(await report("delete_options", byName)).toMatchObject({ status: "succeeded", counts: { succeeded: 1 } });
  // The call has other arguments, and nobody deleted its option through this server, so it fails.
  expect(await report("delete_options", { ids: [one] })).toMatchObject({ status: "failed", counts: { failed: 1 } });
  expect(await report("delete_targeting", { ids: [targetingId] })).toMatchObject({ status: "succeeded" });
  const gone = await report("delete_targeting", { ids: [targetingId] });
  expect(gone).toMatchObject({ status: "succeeded", counts: { items: 1, alreadyDone: 1 } });
});

test("so is a targeting", async () => {
  const { client } = await shop();
  const items = [{ name: "Autumn", options: [{ name: "Leaves", contexts: ["l"] }] }];
  const first = checkedReport(await client.callTool("create_targetings", { items }));
  const again = checkedReport(await client.callTool("create_targetings", { items }));
  expect(again).toMatchObject({ status: "succeeded", counts: { items: 2, succeeded: 0, alreadyDone: 2 } });
  expect(again.results[0]?._id).toBe(first.results[0]?._id);
});

test("what another call or somebody else created is a taken name, and what is gone is created again", async () => {
  const { client, sandbox, targetingId, add } = await shop();
  await add([{ name: "One", contexts: ["a"] }]);
  const other = [{ name: "One", contexts: ["b"] }, { name: "Two" }];
  expect((await add(other)).report.counts).toMatchObject({ succeeded: 1, failed: 1 });
  const { report } = await add(other);
  expect(report).toMatchObject({ status: "partial", counts: { alreadyDone: 1, failed: 1 } });
  expect(report.failures).toMatchObject([{ errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE", count: 1 }]);

  const three = await add([{ name: "Three" }]);
  await client.callTool("delete_options", { ids: [three.report.results[0]?._id] });
  expect((await add([{ name: "Three" }])).report.counts).toMatchObject({ succeeded: 1, alreadyDone: 0 });
  const last = await add([{ name: "Three" }]);
  await client.callTool("delete_options", { ids: [last.report.results[0]?._id] });
  await sandbox.options(targetingId, [{ name: "Three" }]);
  expect((await add([{ name: "Three" }])).report).toMatchObject({ status: "failed", counts: { failed: 1 } });
});

test("undoing such a run takes nothing back, and onExisting decides as it always does", async () => {
  const { client, add } = await shop();
  await add(ITEMS);
  const again = await add(ITEMS);
  const undone = await client.callTool("undo_run", { runId: again.report.runId });
  expect(undone.structuredContent).toMatchObject({ counts: { items: 0 } });
  await add(ITEMS, { onExisting: "skip" });
  expect((await add(ITEMS, { onExisting: "skip" })).report.counts).toMatchObject({ skipped: 3, alreadyDone: 0 });
});
