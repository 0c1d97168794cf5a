import { describe, expect, test } from "vitest";
import * as z from "zod";
import { LIMITS } from "../../src/spec/limits.ts";
import { CLIENTS } from "../support/clients.ts";
import { inCallOrder, type Report, warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const MISSING = "01JABCDEFGHJKMNPQRSTVWXYZ0";

const idOf = (report: Report, position = 0): string => inCallOrder(report)[position]?._id ?? "";
const outcomes = (report: Report) =>
  inCallOrder(report).map(({ index, child, grandchild, outcome }) => [index, child, grandchild, outcome]);

const optionPage = z.object({ options: z.array(z.looseObject({ _id: z.string(), name: z.string() })) });
const optionAnswer = z.object({ contexts: z.array(z.string()) });

type Session = Awaited<ReturnType<typeof startSession>>;

async function namesIn({ client }: Session, targetingId: string, parent?: string): Promise<readonly string[]> {
  const { structuredContent } = await client.callTool("list_options", { targetingId, ...(parent && { parent }) });
  return optionPage.parse(structuredContent).options.map(({ name }) => name);
}

async function contextsOf({ client }: Session, optionId: string): Promise<readonly string[]> {
  return optionAnswer.parse((await client.callTool("get_option", { optionId })).structuredContent).contexts;
}

describe("tools that write", () => {
  const connect = CLIENTS["2026 client, modern"];

  test("create_targetings: targetings, options and sub-options are each reported; bad ones fail alone", async () => {
    const session = await startSession({ connect });
    const report = await session.write("create_targetings", {
      items: [
        {
          name: "Sports fans",
          options: [
            { name: "Ball games", children: [{ name: "Football", contexts: ["goal"] }, { name: "bad_name" }] },
            { name: "Running", contexts: ["shoe"] },
          ],
        },
        { name: "x" },
      ],
    });
    expect(outcomes(report)).toEqual([
      [0, undefined, undefined, "succeeded"],
      [0, 0, undefined, "succeeded"],
      [0, 0, 0, "succeeded"],
      [0, 0, 1, "failed"],
      [0, 1, undefined, "succeeded"],
      [1, undefined, undefined, "failed"],
    ]);
    expect(report).toMatchObject({ status: "partial", counts: { items: 6, succeeded: 4, failed: 2 } });
    expect(report.failures.map(({ errorCode, ref }) => [errorCode, ref])).toEqual([
      ["INVALID_NAME", "bad_name"],
      ["INVALID_NAME", "x"],
    ]);
    expect(await namesIn(session, idOf(report))).toEqual(["Ball games", "Running"]);
    expect(await session.writesSent()).toEqual(["createTargetings"]);
  });

  test("rename_targetings: two swap their names, a missing one fails alone, and the new name is known", async () => {
    const session = await startSession({ connect });
    const made = await session.write("create_targetings", { items: [{ name: "One" }, { name: "Two" }] });
    const report = await session.write("rename_targetings", {
      items: [
        { _id: idOf(made), name: "Two" },
        { _id: idOf(made, 1), name: "One" },
        { _id: MISSING, name: "Three" },
      ],
    });
    expect(report).toMatchObject({ status: "partial", counts: { items: 3, succeeded: 2, failed: 1 } });
    expect(report.failures).toMatchObject([{ errorCode: "TARGETING_NOT_FOUND", statusCode: 404, indexes: [2] }]);
    expect(inCallOrder(report)).toMatchObject([{ from: "One", to: "Two" }, { from: "Two", to: "One" }, {}]);
    expect(report.notes.join()).toContain("swapped");
    const { structuredContent } = await session.client.callTool("get_targeting", { targetingName: "Two" });
    expect(structuredContent).toMatchObject({ targeting: { _id: idOf(made) } });
  });

  test("update_options: two swap their names, and a third that wants one of them fails alone", async () => {
    const session = await startSession({ connect, fresh: true });
    // So many that the third one travels in a later request, and all three again in one.
    const others = Array.from({ length: LIMITS.optionItems.value }, (_, at) => ({ name: `Other ${at}` }));
    const options = [{ name: "One" }, { name: "Two" }, { name: "Three" }, ...others];
    await session.write("create_targetings", { items: [{ name: "Letters", options }] });
    const report = await session.write("update_options", {
      targetingName: "Letters",
      items: [
        { currentName: "One", name: "Two" },
        { currentName: "Two", name: "One" },
        ...others.map(({ name }) => ({ currentName: name, name: `${name} new` })),
        { currentName: "Three", name: "Two" },
      ],
    });
    expect(report).toMatchObject({ status: "partial", counts: { failed: 1, unknown: 0 } });
    expect(report.failures).toMatchObject([
      { errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE", indexes: [others.length + 2] },
    ]);
    const { structuredContent } = await session.client.callTool("list_options", { targetingName: "Letters", limit: 3 });
    expect(optionPage.parse(structuredContent).options.map(({ name }) => name)).toEqual(["Two", "One", "Three"]);
  });

  test("bulk_add_options: every sub-option is reported, onExisting decides about those that exist", async () => {
    const session = await startSession({ connect, fresh: true });
    await session.write("create_targetings", { items: [{ name: "Sports fans" }] });
    const add = (items: readonly object[], more: object = {}) =>
      session.write("bulk_add_options", { targetingName: "Sports fans", items, ...more });
    const first = await add([
      { name: "Ball games", contexts: ["ball"], children: [{ name: "Football" }, { name: "Football" }] },
      { name: "Tennis", parentName: "Ball games" },
      { name: "Chess", parentName: "Board games" },
    ]);
    expect(first).toMatchObject({ status: "partial", counts: { items: 5, succeeded: 3, failed: 2 } });
    expect(first.failures.map(({ errorCode }) => errorCode).sort()).toEqual(["DUPLICATE_IN_INPUT", "NAME_NOT_FOUND"]);
    const targetingId = z
      .object({ targetings: z.array(z.object({ _id: z.string() })).min(1) })
      .parse((await session.client.callTool("get_targeting", {})).structuredContent).targetings[0]?._id;
    expect(await namesIn(session, targetingId ?? "", idOf(first))).toEqual(["Football", "Tennis"]);

    const again = [{ name: "Ball games", contexts: ["more"], children: [{ name: "Football" }, { name: "Rugby" }] }];
    const failed = await add([{ name: "Ball games", contexts: ["other"] }]);
    expect(failed).toMatchObject({ status: "failed", failures: [{ errorCode: "TARGETING_CATEGORY_NAME_DUPLICATE" }] });
    const skipped = await add(again, { onExisting: "skip" });
    expect(skipped).toMatchObject({ status: "succeeded", counts: { succeeded: 1, alreadyDone: 0, skipped: 2 } });
    expect(skipped.failures).toMatchObject([{ errorCode: "EXISTS", count: 2 }]);
    const added = await add(again, { onExisting: "addContexts" });
    expect(added).toMatchObject({ status: "succeeded", counts: { succeeded: 1, alreadyDone: 2 } });
    expect(await contextsOf(session, idOf(first))).toEqual(["ball", "more"]);
  });

  test("update_options: renames, moves and settings at once, each with its own answer", async () => {
    const session = await startSession({ connect });
    const targetingId = idOf(await session.write("create_targetings", { items: [{ name: "Sports fans" }] }));
    const made = await session.write("bulk_add_options", {
      targetingId,
      items: [{ name: "Group", contexts: ["g"], children: [{ name: "Child" }] }, { name: "Alone" }],
    });
    const [group, child, alone] = [idOf(made), idOf(made, 1), idOf(made, 2)];
    const report = await session.write("update_options", {
      items: [
        { _id: group, exposeChildren: true },
        { _id: child, parent: null, name: "Freed" },
        { _id: alone, exposeChildren: true },
        { _id: "no ulid", name: "Other" },
        { _id: alone },
      ],
    });
    expect(report).toMatchObject({ status: "partial", counts: { items: 5, succeeded: 2, failed: 3 } });
    expect(report.failures.map(({ errorCode, indexes }) => [errorCode, indexes])).toEqual(
      expect.arrayContaining([
        ["TARGETING_CATEGORY_NOT_SUPPORTED", [2]],
        ["INVALID_ID", [3]],
        ["INVALID_ITEM", [4]],
      ]),
    );
    expect(await namesIn(session, targetingId)).toEqual(["Group", "Freed", "Alone"]);
  });

  test("update_contexts: by ID, by name, and from another option; each option of _ids is reported", async () => {
    const session = await startSession({ connect });
    const targetingId = idOf(await session.write("create_targetings", { items: [{ name: "Sports fans" }] }));
    const made = await session.write("bulk_add_options", {
      targetingId,
      items: [{ name: "One", contexts: ["a"] }, { name: "Two", contexts: ["b"] }, { name: "Three" }],
    });
    const [one, two, three] = [idOf(made), idOf(made, 1), idOf(made, 2)];
    const report = await session.write("update_contexts", {
      targetingId,
      items: [
        { _ids: [one, MISSING, two], add: ["x"] },
        { names: ["Three", "Nobody"], addFrom: [one] },
        { _id: one, add: ["y".repeat(257)] },
      ],
    });
    expect(report).toMatchObject({ status: "partial", counts: { items: 6, succeeded: 3, failed: 3 } });
    const rows = inCallOrder(report).map(({ index, _id, name }) => [index, _id ?? name]);
    expect(rows.toSorted()).toEqual(
      [
        [0, one],
        [0, MISSING],
        [0, two],
        [1, three],
        [1, "Nobody"],
        [2, one],
      ].toSorted(),
    );
    expect(report.failures.map(({ errorCode }) => errorCode).sort()).toEqual([
      "INVALID_CONTEXT_ID",
      "NAME_NOT_FOUND",
      "TARGETING_CATEGORY_NOT_FOUND",
    ]);
    expect(await contextsOf(session, two)).toEqual(["b", "x"]);
    expect(await contextsOf(session, three)).toEqual(["a"]);
  });

  test("track_event: what is recorded, what is refused before it is sent, and why", async () => {
    const session = await startSession({ connect });
    const sent = await session.write("track_event", { uid: "u", eventName: "sign_up", method: "mail" });
    expect(sent).toMatchObject({ status: "succeeded", verdicts: [{ predicted: "recorded", basis: "documented" }] });
    expect(await session.writesSent()).toEqual(["trackEvent"]);
    const ignored = await session.write("track_event", { uid: "u", eventName: "sign_up" });
    expect(ignored).toMatchObject({ status: "failed", failures: [{ errorCode: "EVENT_IGNORED", ref: "sign_up" }] });
    const rejected = await session.write("track_event", { uid: "u", eventName: "x".repeat(65) });
    expect(rejected).toMatchObject({ status: "failed", failures: [{ errorCode: "EVENT_REJECTED" }] });
    const planned = await session.write("track_event", { uid: "u", eventName: "app_open", dryRun: true });
    expect(planned).toMatchObject({ status: "planned", verdicts: [{ predicted: "recorded" }] });
    expect(await session.writesSent()).toEqual([]);
  });

  test("dryRun names the requests that go out then, with their bytes", async () => {
    const session = await startSession();
    const targetingId = idOf(await session.write("create_targetings", { items: [{ name: "Sports fans" }] }));
    const items = Array.from({ length: 5001 }, (_, number) => ({ name: `축구 ${number}`, contexts: [`c${number}`] }));
    await session.writesSent();
    const { plan = [] } = await session.write("bulk_add_options", { targetingId, items, dryRun: true });
    await session.write("bulk_add_options", { targetingId, items });
    const arrived = z
      .object({ requests: z.array(z.object({ operation: z.string().nullable(), bytes: z.number() })) })
      .parse(await session.control("/requests"))
      .requests.filter(({ operation }) => operation === "addOptions");
    expect(plan.map(({ items: count }) => count)).toEqual([5000, 1]);
    // The plan counts only the bytes of the items. The body around them adds a few bytes.
    plan.forEach(({ bytes }, position) => {
      expect((arrived[position]?.bytes ?? 0) - bytes).toBeGreaterThanOrEqual(0);
      expect((arrived[position]?.bytes ?? 0) - bytes).toBeLessThan(32);
    });
  });
});

describe("the same size of answer for 12 and for 12,000 items", () => {
  const named = (count: number, more: object = {}) =>
    Array.from({ length: count }, (_, number) => ({
      name: `스포츠 팬 여러 가지 운동 ${String(number).padStart(5, "0")}`,
      ...more,
    }));

  test("created, failing for one reason, and failing for many", async () => {
    for (const count of [12, 12_000]) {
      const session = await startSession();
      const targetingId = idOf(await session.write("create_targetings", { items: [{ name: "Sports fans" }] }));
      const made = await session.write("bulk_add_options", { targetingId, items: named(count, { contexts: ["c"] }) });
      expect(made).toMatchObject({ status: "succeeded", counts: { items: count } });
      expect(made.results.length + (made.resultsOmitted ?? 0)).toBe(count);
      expect(made.results.length).toBeGreaterThanOrEqual(10);
      const again = await session.write("bulk_add_options", { targetingId, items: named(count) });
      expect(again).toMatchObject({
        status: "failed",
        failures: [{ count, indexes: { length: Math.min(count, 20) } }],
      });
      const faults = [
        { name: "a" },
        { name: "a_b" },
        { name: " ab" },
        { name: "x".repeat(37) },
        { contexts: [""] },
        { contexts: ["x".repeat(257)] },
        { type: "collection" },
        { exposeChildren: true },
        { parent: "no ulid" },
        { parentName: "Nobody" },
        { parent: MISSING, parentName: "Nobody" },
        { type: "atomic", children: [] },
      ];
      const items = named(count).map((item, index) => ({ ...item, ...faults[index % faults.length] }));
      const report = await session.write("bulk_add_options", { targetingId, items });
      expect(report).toMatchObject({ status: "failed", counts: { items: count, failed: count } });
      expect(report.failures.length + (report.failuresOmitted ?? 0)).toBeGreaterThanOrEqual(10);
      expect(report.failures.length).toBeGreaterThanOrEqual(5);
    }
  });
});

test("items about one option that together do not fit the project fail together, and nothing of them stays", async () => {
  const session = await startSession();
  const targetingId = idOf(await session.write("create_targetings", { items: [{ name: "Sports fans" }] }));
  const contextIds = (count: number) => Array.from({ length: count }, (_, number) => `c${number}`);
  const full = Array.from({ length: 4 }, (_, number) => ({ name: `Full ${number}`, contexts: contextIds(45_000) }));
  const made = await session.write("bulk_add_options", { targetingId, items: [{ name: "Empty" }, ...full] });
  const report = await session.write("update_contexts", {
    items: [
      { _id: idOf(made), add: contextIds(25_000) },
      { _id: idOf(made), add: ["one more"] },
    ],
  });
  expect(report).toMatchObject({
    status: "failed",
    counts: { items: 2, failed: 2 },
    failures: [{ errorCode: "TARGETING_CONTEXT_LIMIT_EXCEEDED", count: 2 }],
  });
  expect(await contextsOf(session, idOf(made))).toEqual([]);
});
