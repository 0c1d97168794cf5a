import { describe, expect, test } from "vitest";
import { textOf } from "../support/clients.ts";
import { checkedReport, inCallOrder, type Report, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const idOf = (report: Report, position = 0): string => inCallOrder(report)[position]?._id ?? "";
const stepsOf = (given: { readonly structuredContent?: Readonly<Record<string, unknown>> | undefined }): string =>
  JSON.stringify(given.structuredContent?.nextSteps ?? []);

/** Starts a session with a targeting that has some options. */
async function shop(
  more: Parameters<typeof startSession>[0] = {},
  options: readonly object[] = [{ name: "Full", contexts: ["a"] }, { name: "Empty" }],
) {
  const session = await startSession(more);
  const targetingId = idOf(await session.write("create_targetings", { items: [{ name: "Shop" }] }));
  const made = await session.write("bulk_add_options", { targetingId, items: options });
  return { session, targetingId, idAt: (position: number) => idOf(made, position) };
}

describe("resume_run is named only where it would do something", () => {
  test("not after a declined deletion", async () => {
    const { session, idAt } = await shop({ answer: () => ({ action: "decline" }) });
    const declined = await session.client.callTool("delete_options", { ids: [idAt(0)] });
    expect(declined.structuredContent).toMatchObject({
      status: "cancelled",
      failures: [{ errorCode: "DECLINED", remedy: expect.stringContaining("Do not try again unless the person asks") }],
      notes: [expect.stringContaining("the question was")],
    });
    expect(declined.structuredContent).not.toHaveProperty("nextSteps");
    const { client } = session;
    const list = await client.callTool("get_run", { status: "cancelled" });
    for (const { runId } of Array.isArray(list.structuredContent?.runs) ? list.structuredContent.runs : []) {
      expect(stepsOf(await client.callTool("get_run", { runId }))).not.toContain("resume_run");
    }
  });

  test("not for options that onlyEmpty kept on purpose", async () => {
    const { session, idAt } = await shop({ env: { TARGETING_MCP_CONFIRM: "off" } });
    const given = await session.client.callTool("delete_options", { ids: [idAt(0), idAt(1)], onlyEmpty: true });
    expect(given.structuredContent).toMatchObject({
      status: "succeeded",
      counts: { items: 2, succeeded: 1, skipped: 1, notApplied: 0 },
      failures: [{ errorCode: "NOT_EMPTY" }],
    });
    expect(textOf(given)).toMatch(/Deleted 1 of 2 options from "Shop" \(\w{26}\), which now has 1; 1 skipped\./);
    expect(textOf(given)).toMatch(/^NOT_EMPTY, item \d .*skipped: /m);
    expect(stepsOf(given)).not.toMatch(/resume_run|mend/);
    const { runId } = given.structuredContent ?? {};
    const shown = await session.client.callTool("get_run", { runId, outcome: "skipped" });
    expect(shown.structuredContent).toMatchObject({ results: [{ outcome: "skipped" }] });
    expect(stepsOf(shown)).not.toMatch(/resume_run|mend/);
    const resumed = await session.client.callTool("resume_run", { runId });
    expect(resumed.structuredContent).toMatchObject({ counts: { succeeded: 1, skipped: 1 } });
  });

  test("not for a key without scope: what a person has to set is in the remedy", async () => {
    const { session, targetingId } = await shop();
    await session.control("/seed", { keys: [{ key: "sandbox-key", scopes: ["context-targeting:read"] }] });
    const given = await session.client.callTool("bulk_add_options", {
      targetingId,
      items: [{ name: "New" }, { name: "Newer" }],
    });
    const report = checkedReport(given);
    expect(report.failures).toMatchObject([
      {
        errorCode: "FORBIDDEN",
        count: 2,
        statusCode: 403,
        remedy: expect.stringMatching(/create a new one in the console.*resume_run/),
      },
    ]);
    expect(report.nextSteps).toEqual([]);
  });

  test("not for a planned run, which is applied", async () => {
    const { session, targetingId } = await shop();
    const desired = { version: 1, targeting: { _id: targetingId, name: "Shop" }, options: [{ name: "New" }] };
    const plan = await session.client.callTool("plan_targeting", { desired });
    const { runId } = plan.structuredContent ?? {};
    for (const args of [{ runId }, { runId, outcome: "pending" }]) {
      const steps = stepsOf(await session.client.callTool("get_run", args));
      expect(steps).toContain(`apply_plan {\\"runId\\":\\"${String(runId)}\\"}`);
      expect(steps).not.toContain("resume_run");
    }
  });

  test("not for a purchase whose answer was lost, which is looked up", async () => {
    const session = await startSession();
    await session.control("/faults", { faults: [{ on: "trackEvent", nth: 1, kind: "reset", applied: true }] });
    const purchase = { uid: "u", eventName: "purchase", tx_id: "T-1", items: [{ item_id: "i" }] };
    const given = await session.client.callTool("track_event", purchase);
    expect(given.structuredContent).toMatchObject({ status: "unknown" });
    const { runId } = given.structuredContent ?? {};
    const shown = await session.client.callTool("get_run", { runId });
    for (const steps of [stepsOf(given), stepsOf(shown)]) expect(steps).not.toMatch(/resume_run|onUnknown/);
    expect(stepsOf(given)).toContain("look for the event with inspect_events before you send it again");
    expect(stepsOf(shown)).toContain(
      `get_run {\\"runId\\":\\"${String(runId)}\\",\\"outcome\\":\\"unknown\\",\\"includeInput\\":true}`,
    );
  });
});

test("a plan over a limit says what a person can do, and nothing of what is not said above", async () => {
  const options = Array.from({ length: 20 }, (_, number) => ({ name: `Option ${number}`, contexts: ["a"] }));
  const { session, targetingId } = await shop({}, options);
  const desired = {
    version: 1,
    targeting: { _id: targetingId, name: "Shop" },
    options: options.map(({ name }) => ({ name, contexts: ["b"] })),
  };
  const given = await session.client.callTool("plan_targeting", { desired });
  expect(given.structuredContent).toMatchObject({ limits: [{ limit: "TARGETING_MCP_MAX_CHANGE_PERCENT" }] });
  expect(textOf(given)).toMatch(
    /^The plan for "Shop" \(\w+\) cannot be applied: it has 20 changed options, and TARGETING_MCP_MAX_CHANGE_PERCENT allows 6 of 20; nothing was sent/,
  );
  expect(textOf(given)).toContain(
    "plan at most 6 of them at a time, or ask a person to set TARGETING_MCP_MAX_CHANGE_PERCENT to 100 or more in this server's settings",
  );
  expect(stepsOf(given)).toBe("[]");
});

test("history is told as a note: a call that was made before, and an answer that was lost", async () => {
  const { session, targetingId } = await shop();
  const items = [{ name: "New" }, { name: "Worse_" }];
  await session.write("bulk_add_options", { targetingId, items });
  const again = await session.write("bulk_add_options", { targetingId, items });
  for (const step of again.nextSteps) expect(step).not.toMatch(/was made before|would have/);
});

test("no reason is cut below 25, nor in a dry run", async () => {
  const names = (
    "Anchor Basket Candle Dragon Engine Forest Garden Helmet Island Jacket Kettle Ladder Mirror Needle Orange Pencil " +
    "Quartz Rocket Saddle Temple Urchin Velvet Walnut Xylose Yogurt Zipper Bridge Cactus Fabric Hammer"
  ).split(" ");
  const { session, targetingId, idAt } = await shop(
    {},
    names.map((name) => ({ name })),
  );
  const _id = idAt(0);
  const misspelt = names.map((name) => ({ currentName: `${name}x`, name: "Other" }));
  const others = [
    { _id: "no ulid", name: "Other" },
    { _id, name: "a_b" },
    { _id: idAt(1), currentName: "Basket", name: "Other" },
    { _id: idAt(2) },
    { _id: idAt(3), parent: _id, parentName: "Anchor" },
    { name: "Other" },
    { _id: idAt(4), parent: idAt(4) },
  ];
  for (const dryRun of [true, false]) {
    const items = [...others, ...misspelt];
    const report = checkedReport(await session.client.callTool("update_options", { targetingId, items, dryRun }));
    // Only the first failures get suggestions of similar names. The other failures share a remedy.
    expect(report.failures).toHaveLength(25);
    expect(report.failures.length + (report.failuresOmitted ?? 0)).toBe(others.length + 21);
    expect(new Set(report.failures.map(({ message, remedy }) => `${message} ${remedy}`)).size).toBe(25);
  }
});
