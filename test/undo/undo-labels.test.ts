import { expect, test } from "vitest";
import * as z from "zod";
import { ulidSource } from "../../src/spec/names-and-contexts.ts";
import { type TestClient, textOf } from "../support/clients.ts";
import { addFault } from "../support/hold.ts";
import { groupItems } from "../support/service.ts";
import { warmSessions } from "../support/writing.ts";

const startSession = warmSessions();

const answer = z.looseObject({
  runId: z.string().optional(),
  status: z.string().optional(),
  counts: z.looseObject({ succeeded: z.number() }).optional(),
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

/** Starts a session that needs no approval by default, with functions to make changes and to undo them. */
async function session(confirm = "off") {
  const { sandbox, client } = await startSession({ env: { TARGETING_MCP_CONFIRM: confirm } });
  const call = async (name: string, args: Readonly<Record<string, unknown>>) => {
    const given = await client.callTool(name, args);
    return { data: answer.parse(given.structuredContent), text: textOf(given) };
  };
  /**
   * Undoes a run. Returns how many objects have each label, without labels of no object, and the ID of the undo's run.
   */
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

function idsIn({ data }: { readonly data: z.infer<typeof answer> }): readonly unknown[] {
  return data.results?.map(({ _id }) => _id) ?? [];
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

/** For each kind of change: the change, the labels of its undo, and the labels when that undo is undone. */
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
  const { call, client, shop } = await session();
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
  expect(text).toContain('Changed since and will not be undone:\n- "Theirs"');
  expect(text).toContain('"Mine" after the run, "Theirs" now');
  expect((await call("apply_plan", { runId: data.runId })).data.status).toBe("succeeded");
  const names = (await holds(client, targetingId)).map(
    (row) => z.tuple([z.string()]).rest(z.unknown()).parse(JSON.parse(row))[0],
  );
  expect(names).toEqual(["Group", "In", "Mine too", "Other", "Theirs"]);
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
  expect(form).toMatch(/This deletes 1 option .*\. A further undo brings it back under a new ID, so/);
  expect((await call("undo_run", { runId: undo })).text).toContain("never started");

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
    "Impossible to undo (it was not read before the run, so it may have held these Context IDs already):",
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

test("a group with as many sub-options as after the run, but with others, says so", async () => {
  const { call } = await session();
  const options = [{ name: "Accessories", children: [{ name: "Belts" }, { name: "Hats" }] }];
  const made = await call("create_targetings", { items: [{ name: "Replaced", options }] });
  const targetingId = made.data.results?.[0]?._id;
  await call("bulk_add_options", { targetingId, items: [{ name: "Scarves", parentName: "Accessories" }] });
  await call("delete_options", { targetingName: "Replaced", names: ["Belts"] });
  const { text } = await call("undo_run", { runId: made.data.runId });
  expect(text).toMatch(
    /"Accessories" \(\w+\): sub-options: 2, as many as after the run, but some were replaced or changed/,
  );
});

test("what others changed since of new and renamed objects stays, with both values", async () => {
  const { call, sandbox, shop } = await session();
  const { targetingId } = await shop("Changed since");
  const items = [
    { name: "Renamed", contexts: ["a"] },
    { name: "Filled", contexts: ["b"] },
    { name: "Same", contexts: ["c"] },
    { name: "New group", type: "collection", contexts: ["d"] },
  ];
  const added = await call("bulk_add_options", { targetingId, items });
  const [renamed, filled, same, group] = idsIn(added);
  await call("update_options", { items: [{ _id: renamed, name: "Theirs" }] });
  await call("update_contexts", { items: [{ _id: filled, add: ["e"] }] });
  await call("bulk_add_options", { targetingId, items: [{ name: "Late", parent: group }] });
  expect((await call("undo_run", { runId: added.data.runId })).data.results).toMatchObject([
    { _id: renamed, undo: "notOurs", name: "Theirs", field: "name", left: "Renamed", now: "Theirs" },
    { _id: filled, undo: "notOurs", name: "Filled", field: "contexts", left: 1, now: 2 },
    { _id: group, undo: "notOurs", name: "New group", field: "subOptions", now: 1 },
    { _id: same, undo: "exact" },
  ]);
  const created = await call("create_targetings", {
    items: [{ name: "Spring", options: [{ name: "Shoes", contexts: ["a"] }] }, { name: "Summer" }],
  });
  await call("bulk_add_options", { targetingName: "Summer", items: [{ name: "Theirs" }] });
  expect((await call("undo_run", { runId: created.data.runId })).data.results).toMatchObject([
    { name: "Summer", undo: "notOurs", field: "added", now: 1 },
    { name: "Spring", undo: "exact" },
    { name: "Shoes", undo: "exact" },
  ]);
  const [first, second] = [await sandbox.targeting("First"), await sandbox.targeting("Second")];
  const names = await call("rename_targetings", {
    items: [
      { _id: first, name: "1st" },
      { _id: second, name: "2nd" },
    ],
  });
  await call("rename_targetings", { items: [{ _id: second, name: "Their 2nd" }] });
  expect((await call("undo_run", { runId: names.data.runId })).data.results).toMatchObject([
    { _id: second, undo: "notOurs", left: "2nd", now: "Their 2nd" },
    { _id: first, undo: "exact" },
  ]);
});

test("what cannot be restored, or not as it was, says why", async () => {
  const { call, client, sandbox } = await session();
  const reasonsOf = async (runId: string | undefined) => {
    const { data } = await call("undo_run", { runId });
    return { undo: data.runId, reasons: data.results?.map(({ _id, undo, reasons }) => [_id, undo, reasons]) };
  };
  const targetingId = await sandbox.targeting("Why");
  const there = [
    { name: "Taken" },
    { name: "Group", type: "collection", contexts: ["g"], children: [{ name: "Inside" }] },
    { name: "Other", type: "collection", contexts: ["o"] },
    { name: "Filled", type: "collection", contexts: ["a"] },
  ];
  const [taken, group, inside, other, filled] = idsIn(await call("bulk_add_options", { targetingId, items: there }));
  const deleted = await call("delete_options", { ids: [taken, inside, other] });
  await call("delete_options", { ids: [group] });
  const items = [
    { name: "Taken", contexts: ["t"] },
    { name: "Third", type: "collection", contexts: ["o", "p"] },
  ];
  await call("bulk_add_options", { targetingId, items });
  const back = await reasonsOf(deleted.data.runId);
  expect(back.reasons).toEqual([
    [taken, "impossible", ["nameTaken"]],
    [other, "impossible", ["emptyGroup"]],
    [inside, "caveat", ["newId", "groupGone"]],
  ]);
  const lost = 'the group "Other" would have neither sub-options nor own Context IDs';
  expect((await call("undo_run", { runId: deleted.data.runId })).text).toContain(lost);
  expect((await call("apply_plan", { runId: back.undo })).text).toContain(lost);
  expect(await holds(client, targetingId)).toContain(JSON.stringify(["Inside", "atomic", undefined, 0, []]));
  const more = await call("update_contexts", { items: [{ _id: filled, add: ["b"] }] });
  await call("update_contexts", { items: [{ _id: filled, remove: ["a"] }] });
  expect(await reasonsOf(more.data.runId)).toEqual({ reasons: [[filled, "impossible", ["emptyGroup"]]] });
  expect((await call("undo_run", { runId: more.data.runId })).text).toContain('the group "Filled" would have neither');
});

test("a deleted option that is back, with another ID, is as before", async () => {
  const { call, shop } = await session();
  const { targetingId, ids } = await shop("Back");
  const [plain, other] = ids;
  const { data } = await call("delete_options", { ids: [plain, other] });
  await call("bulk_add_options", { targetingId, items: [{ name: "Plain", contexts: ["b", "a"] }] });
  const planned = await call("undo_run", { runId: data.runId });
  expect(planned.data.results).toMatchObject([{ _id: other, undo: "caveat" }]);
  expect(planned.text).toContain("1 already undone; nothing was sent.");
  await call("bulk_add_options", { targetingId, items: [{ name: "Other", contexts: ["c"] }] });
  expect((await call("undo_run", { runId: data.runId })).text).toContain(
    "none of its changes is left; nothing was sent.",
  );
});

test("a created option that was deleted and created again since is named, and not undone", async () => {
  const { call, shop } = await session();
  const { targetingId } = await shop("Again");
  const items = ["New one", "New two", "New three"].map((name) => ({ name, contexts: ["n"] }));
  const { data } = await call("bulk_add_options", { targetingId, items });
  const [one, two] = (data.results ?? []).map(({ _id }) => _id);
  await call("delete_options", { ids: [one, two] });
  await call("bulk_add_options", { targetingId, items: [{ name: "New one", contexts: ["n"] }] });
  const planned = await call("undo_run", { runId: data.runId });
  expect(planned.text).toContain("1 will be undone exactly, 1 changed since and will not be undone, 1 already undone;");
  expect(planned.text).toContain(`"New one" (${one}): no longer exists: another option has its name now`);
});

test("names that the service refuses are not restored", async () => {
  const { call, sandbox } = await session();
  const seeded = z.object({ targetings: z.array(z.string()), options: z.array(z.string()) });
  const seed = async (body: object) => seeded.parse(await sandbox.control("POST", "/seed", body));
  const [shop, gone] = (await seed({ targetings: [{ name: "Old_shop" }, { name: "Old_gone" }] })).targetings;
  const { options } = await seed({
    options: [
      { targeting: shop, name: "Old_group", type: "collection", contexts: ["g"] },
      { targeting: shop, name: "x_y" },
    ],
  });
  const [group, option] = options;
  for (const [tool, args, _id] of [
    ["rename_targetings", { items: [{ _id: shop, name: "Shop" }] }, shop],
    ["delete_options", { ids: [group] }, group],
    ["update_options", { items: [{ _id: option, name: "New" }] }, option],
    ["delete_targeting", { ids: [gone] }, gone],
  ] as const) {
    const { data, text } = await call("undo_run", { runId: (await call(tool, args)).data.runId });
    expect(data.results, tool).toMatchObject([{ _id, undo: "impossible", reasons: ["nameInvalid"] }]);
    expect(text).toContain("the service does not accept its previous name");
    expect(text).not.toContain("since");
    expect(data.runId).toBeUndefined();
  }
});

test("the undo of a run that was cut short takes back what it did, and the run is not resumed then", async () => {
  const { call, client, sandbox, undone } = await session();
  const targetingId = await sandbox.targeting("Cut short");
  const release = await sandbox.hold("addOptions", { nth: 2 });
  const running = call("bulk_add_options", { targetingId, items: groupItems(450) });
  await expect.poll(() => sandbox.count("addOptions")).toBeGreaterThan(0);
  const listed = z.object({ runs: z.array(z.object({ runId: z.string() })) });
  const [{ runId = "" } = {}] = listed.parse((await client.callTool("get_run", {})).structuredContent).runs;
  await call("cancel_run", { runId });
  await release();
  const { data } = await running;
  expect(data).toMatchObject({ runId, status: "cancelled" });
  expect([150, 300]).toContain(data.counts?.succeeded);
  expect((await undone(runId)).labels).toEqual({ exact: data.counts?.succeeded });
  expect(await holds(client, targetingId)).toEqual([]);
  expect((await call("resume_run", { runId })).text).toContain("was undone");
});

test("an undo of a plan, of an old or an unknown run is refused, and one that others overtook or has nothing to do sends nothing", async () => {
  const { call, shop } = await session();
  const [plain] = (await shop("Refused")).ids;
  const items = [{ _id: plain, name: "Renamed" }];
  const dry = await call("update_options", { items, dryRun: true });
  const undo = await call("undo_run", { runId: (await call("update_options", { items })).data.runId });
  const began = Date.now() - 31 * 86_400_000;
  const idAt = (time: number) => ulidSource(() => time, Math.random)();
  for (const [runId, reason] of [
    [dry.data.runId, "never started"],
    [undo.data.runId, "never started"],
    ["01J0000000000000000000000X", "this run can no longer be undone"],
    [idAt(began), `it began on ${new Date(began).toISOString().slice(0, 10)}, and finished runs`],
    [idAt(Date.now()), "no run with this ID"],
  ]) {
    expect((await call("undo_run", { runId })).text).toContain(reason);
  }
  const same = await call("update_contexts", { items: [{ _id: plain, add: ["a"] }] });
  const { data, text } = await call("undo_run", { runId: same.data.runId });
  expect(data).toMatchObject({ status: "planned", counts: { items: 0 } });
  expect(data.runId).toBeUndefined();
  expect(text).toContain("the run changed nothing; nothing was sent.");
  await call("update_options", { items: [{ _id: plain, name: "Theirs" }] });
  const overtaken = await call("apply_plan", { runId: undo.data.runId });
  expect(overtaken.data).toMatchObject({ status: "failed", requests: { sent: 0 } });
});

test("renames by name can be undone, although the service does not answer reads of single options", async () => {
  const { sandbox, call, undone } = await session();
  const targetingId = await sandbox.targeting("Unread");
  await sandbox.options(targetingId, [{ name: "One" }, { name: "Two" }]);
  const clear = await addFault(sandbox.url, { kind: "status", status: 503, on: "getOption", probability: 1 });
  const items = ["One", "Two"].map((name) => ({ currentName: name, name: `${name} new` }));
  const renamed = await call("update_options", { targetingId, items });
  await clear();
  expect(renamed.data.results).toMatchObject([{ from: "One" }, { from: "Two" }]);
  expect((await undone(renamed.data.runId)).labels).toEqual({ exact: 2 });
});

test("what was not read before it was renamed by its ID is said at once to have no undo", async () => {
  const { sandbox, call } = await session();
  const targetingId = await sandbox.targeting("Unread too");
  const [one] = await sandbox.options(targetingId, [{ name: "One" }]);
  for (const [on, tool, _id] of [
    ["getOption", "update_options", one],
    ["getTargeting", "rename_targetings", targetingId],
  ]) {
    const clear = await addFault(sandbox.url, { kind: "status", status: 503, on, probability: 1 });
    const { text } = await call(String(tool), { items: [{ _id, name: "Other name" }] });
    await clear();
    expect(text).toMatch(
      /1 (?:option|targeting) was not read before the change, so an undo cannot restore its previous values/,
    );
  }
});
