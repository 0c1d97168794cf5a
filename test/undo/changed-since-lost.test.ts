import { describe, expect, test } from "vitest";
import * as z from "zod";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const env = { TARGETING_MCP_CONFIRM: "off", TARGETING_MCP_RETRY_BUDGET_MS: "300" };
type Session = Awaited<ReturnType<typeof startSession>>;

/**
 * Makes the service apply the first request of an operation but lose the answer. Later requests are lost before they
 * are applied.
 */
async function loseAnswers({ control }: Session, on: string): Promise<void> {
  const reset = { on, kind: "reset" };
  await control("/faults", {
    faults: [
      { ...reset, nth: 1, applied: true },
      { ...reset, nth: 2, times: 1000, applied: false },
    ],
  });
}

async function asOthers({ sandbox }: Session, path: string, body: object): Promise<void> {
  const answer = await fetch(`${sandbox.url}/context-targeting/category/bulk/${path}`, {
    method: "POST",
    headers: { "x-api-key": "sandbox-key", "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  expect(answer.status).toBe(200);
}

const listedOptions = z.object({
  options: z.array(z.looseObject({ _id: z.string(), name: z.string(), contextCount: z.number().optional() })),
});

async function optionsOf({ client }: Session, targetingId: string) {
  const { structuredContent } = await client.callTool("list_options", { targetingId });
  return listedOptions.parse(structuredContent).options;
}

test("what was created without an answer, and then renamed or deleted by others, is not created again", async () => {
  const session = await startSession({ env });
  const { client, sandbox } = session;
  const targetingId = await sandbox.targeting("Shop");
  await loseAnswers(session, "addOptions");
  const items = Array.from({ length: 40 }, (_, at) => ({ name: `Option ${at}`, contexts: [`c${at}`] }));
  const first = checkedReport(await client.callTool("bulk_add_options", { targetingId, items }));
  expect(first.counts).toMatchObject({ unknown: 40 });
  await sandbox.control("DELETE", "/faults");
  const listed = await client.callTool("list_options", { targetingId, search: "Option 1" });
  const ids =
    JSON.stringify(listed.structuredContent).match(/[0-9A-HJKMNP-TV-Z]{26}(?=","name":"Option 1[0-9]?")/g) ?? [];
  expect(ids.length).toBe(11);
  await asOthers(session, "update", { items: [{ _id: ids[0], name: "Renamed" }] });
  await asOthers(session, "delete", { ids: [ids[1]] });
  for (let times = 0; times < 2; times += 1) {
    const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
    expect(again).toMatchObject({ status: "partial", counts: { succeeded: 38, unknown: 2 } });
    expect(again.failures).toMatchObject([
      { outcome: "unknown", count: 2, message: expect.stringContaining("this one was renamed or deleted later") },
    ]);
  }
  const there = await client.callTool("get_targeting", { targetingId });
  expect(there.structuredContent).toMatchObject({ targeting: { optionCount: 39 } });
});

describe("what was created without an answer, and of which others renamed all options, is not created again", () => {
  const group = (name: string) => ({ name, type: "collection", children: [{ name: "Kid D", contexts: ["d"] }] });
  test.each([
    { what: "a single option", items: [{ name: "New A", contexts: ["a"] }], unknown: 1 },
    { what: "an option without Context IDs", items: [{ name: "New A" }], unknown: 1 },
    { what: "an option and a group", items: [{ name: "New A", contexts: ["a"] }, group("New C")], unknown: 1 },
    { what: "a group with its sub-option", items: [group("New A")], unknown: 2 },
  ])("$what", async ({ items, unknown }) => {
    const session = await startSession({ env });
    const { client, sandbox } = session;
    const targetingId = await sandbox.targeting("Shop");
    await client.callTool("bulk_add_options", { targetingId, items: [{ name: "Older", contexts: ["a"] }] });
    await loseAnswers(session, "addOptions");
    const first = checkedReport(await client.callTool("bulk_add_options", { targetingId, items }));
    expect(first.status).toBe("unknown");
    await sandbox.control("DELETE", "/faults");
    const made = await optionsOf(session, targetingId);
    const renamed = made.find(({ name }) => name === "New A");
    await asOthers(session, "update", { items: [{ _id: renamed?._id, name: "Console name" }] });
    const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
    expect(again.counts.unknown).toBe(unknown);
    expect(again.failures).toMatchObject([{ outcome: "unknown", errorCode: "OWNER_UNCLEAR" }]);
    expect(JSON.stringify(again.nextSteps ?? [])).not.toContain("resume_run");
    expect(await optionsOf(session, targetingId)).toHaveLength(made.length);
  });
});

test("a group that was created without an answer, and that others renamed, is not failed", async () => {
  const session = await startSession({ env });
  const { client, sandbox } = session;
  const targetingId = await sandbox.targeting("Shop");
  await client.callTool("bulk_add_options", { targetingId, items: [{ name: "Older" }] });
  await loseAnswers(session, "addOptions");
  const children = [{ name: "Gloves", contexts: ["g"] }, { name: "Hats" }];
  const items = [{ name: "Winter", children }, { name: "Other" }];
  const call = { targetingId, items, onExisting: "skip" };
  const first = checkedReport(await client.callTool("bulk_add_options", call));
  expect(first.counts).toMatchObject({ unknown: 4 });
  await sandbox.control("DELETE", "/faults");
  const winter = (await optionsOf(session, targetingId)).find(({ name }) => name === "Winter");
  await asOthers(session, "update", { items: [{ _id: winter?._id, name: "Winter sale" }] });
  const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
  expect(again.counts).toMatchObject({ unknown: 3, failed: 0 });
});

test("an option that others created in the meantime does not keep a lost create from being sent again", async () => {
  const session = await startSession({ env });
  const { client, sandbox, control } = session;
  const targetingId = await sandbox.targeting("Shop");
  await control("/faults", { faults: [{ on: "addOptions", kind: "reset", times: 1000, applied: false }] });
  const items = [{ name: "New A", contexts: ["a"] }, { name: "New B" }];
  const first = checkedReport(await client.callTool("bulk_add_options", { targetingId, items }));
  expect(first.status).toBe("unknown");
  await sandbox.control("DELETE", "/faults");
  await asOthers(session, "create", {
    items: [
      { targeting: targetingId, name: "Theirs", type: "atomic", contexts: ["b"] },
      { targeting: targetingId, name: "Theirs 2", type: "atomic" },
    ],
  });
  const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
  expect(again).toMatchObject({ status: "succeeded", counts: { succeeded: 2 } });
});

describe("what was changed without an answer, and then changed by others, is unknown and not failed", () => {
  test("a list of Context IDs that was replaced, which undo_run brings back", async () => {
    const session = await startSession({ env });
    const { client, sandbox } = session;
    const targetingId = await sandbox.targeting("Shop");
    await client.callTool("bulk_add_options", { targetingId, items: [{ name: "Ctx", contexts: ["q1", "q2"] }] });
    const [option] = await optionsOf(session, targetingId);
    const _id = option?._id;
    await loseAnswers(session, "updateOptions");
    const first = checkedReport(await client.callTool("update_contexts", { items: [{ _id, set: ["s1", "s2"] }] }));
    expect(first.status).toBe("unknown");
    await sandbox.control("DELETE", "/faults");
    await asOthers(session, "update", { items: [{ _id, contexts: { add: ["theirs"] } }] });
    const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
    expect(again).toMatchObject({ status: "unknown", counts: { unknown: 1, failed: 0 } });
    expect(again.failures).toMatchObject([
      { errorCode: "PLAN_STALE", message: expect.stringContaining("it was expected to have 2 Context IDs, but has 3") },
    ]);
    expect(JSON.stringify(again.nextSteps ?? [])).not.toContain("resume_run");
    const undo = await client.callTool("undo_run", { runId: first.runId });
    expect(undo.structuredContent).toMatchObject({ undo: { unresolved: 1 } });
  });

  test("a name and a place", async () => {
    const session = await startSession({ env });
    const { client, sandbox } = session;
    const targetingId = await sandbox.targeting("Shop");
    const items = [{ name: "Two" }, { name: "Group", type: "collection", children: [{ name: "Inside" }] }];
    await client.callTool("bulk_add_options", { targetingId, items });
    const options = await optionsOf(session, targetingId);
    const [two, group] = ["Two", "Group"].map((name) => options.find((option) => option.name === name)?._id);
    await loseAnswers(session, "updateOptions");
    const changed = [{ _id: two, name: "Two B", parent: group }];
    const first = checkedReport(await client.callTool("update_options", { items: changed }));
    expect(first.status).toBe("unknown");
    await sandbox.control("DELETE", "/faults");
    await asOthers(session, "update", { items: [{ _id: two, name: "Third" }] });
    const again = checkedReport(await client.callTool("resume_run", { runId: first.runId }));
    expect(again).toMatchObject({ status: "unknown", counts: { unknown: 1, failed: 0 } });
  });
});
