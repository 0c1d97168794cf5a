import { expect, test } from "vitest";
import * as z from "zod";
import { type TestClient, textOf } from "../support/clients.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const answer = z.looseObject({
  runId: z.string().optional(),
  status: z.string().optional(),
  undo: z.record(z.string(), z.number()).optional(),
  results: z.array(z.looseObject({})).optional(),
});

const listed = z.object({
  options: z.array(
    z.looseObject({
      ...{ name: z.string(), type: z.string(), contextCount: z.number(), parentName: z.string().optional() },
      contexts: z.array(z.string()).optional(),
    }),
  ),
});

/** A session whose person is not asked, with what a change and its undo need. */
async function session(confirm = "off") {
  const { sandbox, client } = await startSession({ env: { TARGETING_MCP_CONFIRM: confirm } });
  const call = async (name: string, args: Readonly<Record<string, unknown>>) => {
    const given = await client.callTool(name, args);
    return { data: answer.parse(given.structuredContent), text: textOf(given) };
  };
  /** Undoes a run; gives the labels, without those that no object has, and the undo's own run. */
  const undone = async (runId: string | undefined) => {
    const planned = await call("undo_run", { runId });
    const applied = await call("apply_plan", { runId: planned.data.runId });
    expect(applied.data.status, `${planned.text}\n${applied.text}`).toBe("succeeded");
    const labels = Object.entries(planned.data.undo ?? {}).filter(([, count]) => count > 0);
    return { labels: Object.fromEntries(labels), runId: planned.data.runId };
  };
  const shop = async (name: string) => {
    const targetingId = await sandbox.targeting(name);
    const ids = await sandbox.options(targetingId, [
      { name: "Plain", contexts: ["a", "b"] },
      { name: "Other", contexts: ["c"] },
      { name: "Group", type: "collection", contexts: [`${name} own`], children: [{ name: "In", contexts: ["i"] }] },
    ]);
    return { targetingId, ids };
  };
  return { sandbox, client, call, undone, shop };
}

async function holds(client: TestClient, targetingId: string): Promise<readonly string[]> {
  const given = await client.callTool("list_options", { targetingId, all: true, detail: "detailed" });
  const { options } = listed.parse(given.structuredContent);
  return options
    .map(({ name, type, contextCount, parentName, contexts }) =>
      JSON.stringify([name, type, parentName, contextCount, contexts?.toSorted()]),
    )
    .sort();
}

const NEW = [
  { name: "New", contexts: ["n"] },
  { name: "New group", children: [{ name: "First" }, { name: "Second", contexts: ["s"] }] },
];

type Change = (targetingId: string, ids: readonly string[]) => readonly [string, Readonly<Record<string, unknown>>];

/** By kind of change: the change, the labels of its undo, and those of the undo of that. */
const CHANGES: Readonly<
  Record<string, readonly [Change, Readonly<Record<string, number>>, Readonly<Record<string, number>>]>
> = {
  "new options and sub-options": [
    (targetingId) => ["bulk_add_options", { targetingId, items: NEW }],
    { exact: 4 },
    { caveat: 4 },
  ],
  "options that get Context IDs, and a sub-option of a group that was there": [
    (targetingId) => {
      const items = [
        { name: "Plain", contexts: ["b", "more"] },
        { name: "Late", parentName: "Group" },
      ];
      return ["bulk_add_options", { targetingId, items, onExisting: "addContexts" }];
    },
    { exact: 2 },
    { exact: 1, caveat: 1 },
  ],
  "names in a ring, and a move": [
    (_, [plain, other, group]) => {
      const items = [
        { _id: plain, name: "Other" },
        { _id: other, name: "Plain", parent: group },
      ];
      return ["update_options", { items }];
    },
    { exact: 2 },
    { exact: 2 },
  ],
  "Context IDs added, taken away, set, and added from another option": [
    (targetingId, [plain, other, group]) => {
      const items = [
        { _id: plain, add: ["x"], remove: ["a"] },
        { _id: other, set: ["y", "z"] },
        { _id: group, add: ["g2"] },
        { name: "In", targetingId, addFrom: [plain] },
      ];
      return ["update_contexts", { targetingId, items: items.map(({ targetingId: _, ...item }) => item) }];
    },
    { exact: 4 },
    { exact: 4 },
  ],
  "deleted options, one a group whose sub-option stays": [
    (_, [plain, , group]) => ["delete_options", { ids: [plain, group] }],
    { exact: 1, caveat: 2 },
    { exact: 3 },
  ],
};

test("each kind of change of options is undone with its labels, and so is the undo", async () => {
  const { client, call, undone, shop } = await session();
  for (const [at, [what, [change, first, second]]] of Object.entries(CHANGES).entries()) {
    const { targetingId, ids } = await shop(`Shop ${at}`);
    const before = await holds(client, targetingId);
    const { data } = await call(...change(targetingId, ids));
    expect(data.status, what).toBe("succeeded");
    const after = await holds(client, targetingId);
    expect(after, what).not.toEqual(before);
    const back = await undone(data.runId);
    expect(back.labels, what).toEqual(first);
    expect(await holds(client, targetingId), what).toEqual(before);
    const forth = await undone(back.runId);
    expect(forth.labels, what).toEqual(second);
    expect(await holds(client, targetingId), what).toEqual(after);
  }
});

test("targetings that were created, renamed or deleted, and a plan, go back with their labels", async () => {
  const { client, call, undone, shop, sandbox } = await session();
  const created = await call("create_targetings", { items: [{ name: "Made", options: NEW }, { name: "Bare" }] });
  const gone = await undone(created.data.runId);
  expect(gone.labels).toEqual({ exact: 6 });
  expect((await undone(gone.runId)).labels).toEqual({ caveat: 6 });

  const [one, two] = [await sandbox.targeting("One"), await sandbox.targeting("Two")];
  const items = [
    { _id: one, name: "Two" },
    { _id: two, name: "One" },
  ];
  const renamed = await call("rename_targetings", { items });
  const back = await undone(renamed.data.runId);
  expect(back.labels).toEqual({ exact: 2 });
  expect((await undone(back.runId)).labels).toEqual({ exact: 2 });

  const { targetingId } = await shop("Doomed");
  const deleted = await call("delete_targeting", { ids: [targetingId] });
  const again = await undone(deleted.data.runId);
  expect(again.labels).toEqual({ caveat: 5 });
  expect((await undone(again.runId)).labels).toEqual({ exact: 5 });

  const planned = await shop("Planned");
  const [plain, other, group] = planned.ids;
  const before = await holds(client, planned.targetingId);
  const desired = {
    version: 1,
    targeting: { _id: planned.targetingId },
    options: [
      { _id: plain, name: "Other", contexts: ["b", "z"] },
      { _id: group, name: "Group", exposeChildren: true, children: [{ _id: other, name: "Plain" }, { name: "New" }] },
    ],
  };
  const { runId } = (await call("plan_targeting", { desired })).data;
  expect((await call("apply_plan", { runId })).data.status).toBe("succeeded");
  const after = await holds(client, planned.targetingId);
  const undo = await undone(runId);
  expect(undo.labels).toEqual({ exact: 4 });
  expect(await holds(client, planned.targetingId)).toEqual(before);
  expect((await undone(undo.runId)).labels).toEqual({ exact: 3, caveat: 1 });
  expect(await holds(client, planned.targetingId)).toEqual(after);
});

test("what others changed since, and what cannot go back, say so, and stay", async () => {
  const { call, shop } = await session();
  const { targetingId, ids } = await shop("Shared");
  const [plain, other, group] = ids;
  const made = await call("update_options", {
    items: [
      { _id: plain, name: "Mine" },
      { _id: other, name: "Mine too" },
      { _id: group, exposeChildren: true },
    ],
  });
  await call("update_options", { items: [{ _id: plain, name: "Theirs" }] });
  await call("bulk_add_options", { targetingId, items: [{ name: "Other" }] });
  const { data, text } = await call("undo_run", { runId: made.data.runId });
  expect(data.undo).toEqual({ exact: 1, caveat: 0, notOurs: 1, impossible: 1 });
  expect(data.results).toMatchObject([
    { _id: other, undo: "impossible", reasons: ["nameTaken"] },
    { _id: plain, undo: "notOurs", left: "Mine", now: "Theirs" },
    { _id: group, undo: "exact" },
  ]);
  expect(text).toContain("another option has the name now");
});

test("the undo of a renamed targeting says what it does, and that another targeting has the name by now", async () => {
  const { call, sandbox } = await session("ask");
  const targetingId = await sandbox.targeting("Shop Campaigns");
  const items = [{ _id: targetingId, name: "Shop Promotions" }];
  const renamed = await call("rename_targetings", { items });
  const planned = await call("undo_run", { runId: renamed.data.runId });
  const change = `rename the targeting "Shop Promotions" (${targetingId}) → "Shop Campaigns"`;
  expect(planned.text).toContain(`1 will be undone exactly; nothing was sent`);
  expect(planned.text).toContain(`Will be undone exactly:\n- ${change}`);

  const state = { version: 1, targeting: { _id: targetingId, name: "Shop" }, options: [{ name: "New" }] };
  const applied = (await call("plan_targeting", { desired: state })).data.runId;
  await call("apply_plan", { runId: applied });
  const undo = (await call("undo_run", { runId: applied })).data.runId;
  const form = (await call("apply_plan", { runId: undo })).text;
  expect(form).toContain(`Undoes run ${applied} (apply_plan: 1 created, 1 changed)`);
  expect(form).toContain(`"Shop" (${targetingId}): becomes "Shop Promotions"`);

  const overtaken = await call("undo_run", { runId: renamed.data.runId });
  expect(overtaken.text).toContain("Changed since");
  await call("rename_targetings", { items });
  const late = await call("undo_run", { runId: renamed.data.runId });
  const other = await call("create_targetings", { items: [{ name: "Shop Campaigns" }] });
  const failed = await call("apply_plan", { runId: late.data.runId });
  expect(failed.data.status).toBe("failed");
  expect(failed.text).not.toContain("desired state");
  expect(failed.text).toContain(`undo_run {"runId":"${renamed.data.runId}"}`);
  const taken = await call("undo_run", { runId: renamed.data.runId });
  expect(taken.data).toMatchObject({ undo: { exact: 0, impossible: 1 }, results: [{ reasons: ["nameTaken"] }] });
  expect(taken.data.runId).toBeUndefined();
  expect(taken.text).toContain("another targeting has the name now");
  await call("rename_targetings", { items: [{ _id: other.data.results?.[0]?._id, name: "Elsewhere" }] });
  expect((await call("undo_run", { runId: renamed.data.runId })).data).toMatchObject({ undo: { exact: 1 } });
});

test("added Context IDs that stay because the option was not read are said by name, before and after", async () => {
  const { call, sandbox } = await session();
  const targetingId = await sandbox.targeting("Large");
  const items = Array.from({ length: 501 }, (_, at) => ({ name: `Model ${at}`, contexts: [`m ${at}`] }));
  await sandbox.options(targetingId, items);
  const added = await call("bulk_add_options", {
    targetingId,
    items: [{ name: "New" }, ...items.map(({ name }) => ({ name, contexts: ["extra"] }))],
    onExisting: "addContexts",
  });
  const planned = await call("undo_run", { runId: added.data.runId });
  expect(planned.data.undo).toEqual({ exact: 1, caveat: 0, notOurs: 0, impossible: 501 });
  expect(planned.text).toContain(
    "Impossible to undo (it was not read before the run, so it may have held them already):",
  );
  const kept = /"Model 0" \(\w+\): keeps 1 Context ID/;
  expect(planned.text).toMatch(kept);
  const applied = await call("apply_plan", { runId: planned.data.runId });
  expect(applied.text).toMatch(kept);
  expect(applied.text).toMatch(/not undone: .* and 496 more/i);
});

test("what others added to a new group or targeting is counted with what the run created", async () => {
  const { call } = await session();
  const made = await call("create_targetings", {
    items: [{ name: "Counted", options: [{ name: "Accessories", children: [{ name: "Belts" }] }, { name: "Bags" }] }],
  });
  const targetingId = made.data.results?.[0]?._id;
  await call("bulk_add_options", {
    targetingId,
    items: [{ name: "Scarves", parentName: "Accessories" }, { name: "Theirs" }],
  });
  const { text } = await call("undo_run", { runId: made.data.runId });
  expect(text).toMatch(/"Accessories" \(\w+\): sub-options: 1 after the run, 2 now/);
  expect(text).toMatch(/the targeting "Counted" \(\w+\): options: 3 after the run, 5 now/);
  expect(text).not.toContain("added by others");
});
