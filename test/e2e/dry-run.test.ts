import { describe, expect, test } from "vitest";
import * as z from "zod";
import { textOf } from "../support/clients.ts";
import { checkedReport, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

type Session = Awaited<ReturnType<typeof startSession>>;

const MISSING = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

/** Creates an empty targeting, and one with a group of two sub-options and three regular options. */
async function service() {
  const session = await startSession({ env: { TARGETING_MCP_WAIT_MS: "120000" } });
  const news = await session.sandbox.targeting("News");
  const sports = await session.sandbox.targeting("Sports");
  const options = [
    { name: "Ball games", children: [{ name: "Football" }, { name: "Rugby" }] },
    { name: "One", contexts: ["a"] },
    { name: "Two", contexts: ["b"] },
    { name: "Three", contexts: ["c"] },
  ];
  const [group = "", one = "", two = "", three = ""] = await session.sandbox.options(news, options);
  // The server knows the name of a targeting only after it has read the targeting.
  await session.client.callTool("get_targeting", { targetingId: news });
  await session.client.callTool("get_targeting", { targetingId: sports });
  await session.writesSent();
  return { session, news, sports, group, one, two, three };
}

/** Returns each failed item of an answer as one line: its index, outcome, code and conflicting IDs. */
function failing({ failures }: ReturnType<typeof checkedReport>): readonly string[] {
  return failures
    .flatMap(({ indexes, errorCode, outcome, detail, details }) =>
      indexes.map((index, at) => {
        const { existingIds, existingId } = details?.[at] ?? detail ?? {};
        return `${index} ${outcome} ${errorCode} ${JSON.stringify(existingIds ?? existingId ?? "")}`;
      }),
    )
    .sort();
}

/** Makes a call as a dry run and then for real. Both must report the same failures. */
async function bothWays({ client, writesSent }: Session, tool: string, args: Record<string, unknown>) {
  const dry = checkedReport(await client.callTool(tool, { ...args, dryRun: true }));
  expect(dry.status).toBe("planned");
  expect(await writesSent()).toEqual([]);
  const real = checkedReport(await client.callTool(tool, args));
  await writesSent();
  expect(failing(dry)).toEqual(failing(real));
  expect({ ...dry.counts, pending: 0, succeeded: dry.counts.pending }).toEqual(real.counts);
  return failing(dry);
}

test("a dry run that would change nothing offers no call that applies it", async () => {
  const { session, news } = await service();
  const { client } = session;
  const taken = await client.callTool("bulk_add_options", {
    targetingId: news,
    items: [{ name: "One" }],
    dryRun: true,
  });
  expect(textOf(taken)).toContain("Would create no option; 1 would fail.");
  expect(textOf(taken)).toContain("Next: fix the items that would fail, and make the call again");
  expect(textOf(taken)).not.toContain("apply_plan");
  expect(textOf(taken)).not.toContain("A request to");
  expect(taken.structuredContent).not.toHaveProperty("plan");
  const { runId } = z.object({ runId: z.string() }).parse(taken.structuredContent);
  expect(textOf(await client.callTool("get_run", { runId }))).not.toContain("A request to");
  const items = [{ name: "One", contexts: ["n"] }, { name: "New" }, { name: "bad_name" }];
  const some = await client.callTool("bulk_add_options", {
    targetingId: news,
    items,
    onExisting: "addContexts",
    dryRun: true,
  });
  expect(textOf(some)).toContain("Would create 1 of 3 options, add Context IDs to 1 that exists; 1 would fail.");
});

describe("a dry run meets what the real call meets", () => {
  test("names that exist, and groups that do not", async () => {
    const { session, news, group, one } = await service();
    const items = [
      { name: "One" },
      { name: "New" },
      { name: "Football" },
      { name: "New group", children: [{ name: "Two" }, { name: "Fresh" }] },
      { name: "Ball games", children: [{ name: "Handball" }] },
      { name: "Cricket", parent: group },
      { name: "Hockey", parent: one },
      { name: "Chess", parent: MISSING },
    ];
    const met = await bothWays(session, "bulk_add_options", { targetingId: news, items });
    expect(met).toHaveLength(7);
    expect(met).toContain(`0 failed TARGETING_CATEGORY_NAME_DUPLICATE ["${one}"]`);
  });

  test("a targeting that does not exist", async () => {
    const { session } = await service();
    const met = await bothWays(session, "bulk_add_options", { targetingId: MISSING, items: [{ name: "One" }] });
    expect(met).toEqual(['0 failed TARGETING_NOT_FOUND ""']);
  });

  test("new names and places of options", async () => {
    const { session, group, one, two, three } = await service();
    const items = [
      { _id: one, name: "Two" },
      { _id: two, name: "Four" },
      { _id: three, name: "Ball games" },
      { _id: MISSING, name: "Five" },
    ];
    expect(await bothWays(session, "update_options", { items })).toHaveLength(2);
    const moves = [
      { _id: one, parent: two },
      { _id: group, parent: null },
      { _id: three, parent: group },
      { _id: two, exposeChildren: true },
    ];
    expect(await bothWays(session, "update_options", { items: moves })).toHaveLength(3);
  });

  test("Context IDs of options that do not exist, or would hold too many", async () => {
    const { session, news, one, two } = await service();
    const full = "01JABCDEFGHJKMNPQRSTVWXYZ9";
    const contexts = Array.from({ length: 49_999 }, (_, number) => `id${number}`);
    await session.control("/seed", { options: [{ _id: full, targeting: news, name: "Full", contexts }] });
    const items = [
      { _id: one, add: ["x"] },
      { _id: full, add: ["y", "z"] },
      { _id: MISSING, add: ["x"] },
      { _id: two, add: ["w"] },
    ];
    expect(await bothWays(session, "update_contexts", { items })).toHaveLength(2);
    const within = { items: [{ _id: full, add: ["id1", "id2", "y"] }] };
    expect(await bothWays(session, "update_contexts", within)).toEqual([]);
    const told = await session.client.callTool("update_contexts", { items: [{ _id: full, add: ["z"] }], dryRun: true });
    expect(textOf(told)).toContain("the option has 50,000");
  });

  test("names of targetings that were seen", async () => {
    const { session, news, sports } = await service();
    const items = [{ name: "News", options: [{ name: "One" }] }, { name: "Weather" }];
    const met = await bothWays(session, "create_targetings", { items });
    expect(met).toContain(`0 failed TARGETING_NAME_DUPLICATE "${news}"`);
    const renames = [
      { _id: sports, name: "News" },
      { _id: MISSING, name: "Travel" },
    ];
    expect(await bothWays(session, "rename_targetings", { items: renames })).toHaveLength(2);
    const swap = [
      { _id: sports, name: "News" },
      { _id: news, name: "Sports" },
    ];
    expect(await bothWays(session, "rename_targetings", { items: swap })).toEqual([]);
  });

  test("the options that a targeting may still get", async () => {
    const { session } = await service();
    const targetingId = await session.sandbox.targeting("Crowded");
    const there = Array.from({ length: 99_998 }, (_, number) => ({
      _id: `01JABCDEFGHJKMNPQRSTV${String(number).padStart(5, "0")}`,
      targeting: targetingId,
      name: `Option ${number}`,
    }));
    for (let from = 0; from < there.length; from += 20_000) {
      await session.control("/seed", { options: there.slice(from, from + 20_000) });
    }
    const items = ["Aa", "Bb", "Cc", "Dd"].map((name) => ({ name }));
    const dry = await session.client.callTool("bulk_add_options", { targetingId, items, dryRun: true });
    expect(failing(checkedReport(dry))).toEqual([
      '2 failed TARGETING_CATEGORY_LIMIT_EXCEEDED ""',
      '3 failed TARGETING_CATEGORY_LIMIT_EXCEEDED ""',
    ]);
    expect(textOf(dry)).toContain("it has 99,998");
  });
});

test("a dry run that cannot read what is there plans all the same, and says so", async () => {
  const { session, news } = await service();
  await session.control("/faults", { faults: [{ kind: "status", on: "read", status: 403, times: 100 }] });
  const args = { targetingId: news, items: [{ name: "One" }], dryRun: true };
  const report = checkedReport(await session.client.callTool("bulk_add_options", args));
  expect(report).toMatchObject({ status: "planned", counts: { items: 1, pending: 1, failed: 0 } });
  expect(JSON.stringify(report.notes)).toContain("were not checked against the current state");
});
