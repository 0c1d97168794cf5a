import { describe, expect, test } from "vitest";
import type { WriteCall } from "../../src/changes/call.ts";
import { effectsOfRun } from "../../src/changes/done.ts";
import { readPresent } from "../../src/plans/planned-undo.ts";
import { undoPlan } from "../../src/plans/undo.ts";
import { countsOfRows } from "../../src/plans/undo-plan.ts";
import { startService } from "../changes/service.ts";

const { signal } = new AbortController();

/** A service, with a function that makes a change as one run and gives its ID, and one that plans the way back. */
async function started() {
  const service = await startService();
  const { changes, runs, api } = service;
  const made = async (call: WriteCall) => {
    const plan = await changes.plan(call, signal);
    const run = await changes.start(await changes.keep(call, "tester"), plan);
    if (run === undefined) throw new Error("the run was started before");
    await run.rest;
    expect(run.status()).toBe("succeeded");
    return run;
  };
  const back = async ({ header, state }: Awaited<ReturnType<typeof made>>) => {
    const done = await effectsOfRun(state, runs.part(header.runId, "former")());
    const back = undoPlan(done, await readPresent(api, done, signal));
    const { unresolved, ...counts } = countsOfRows(back.rows);
    expect(unresolved).toBe(0);
    return { ...back, counts };
  };
  const add = async (
    targetingId: string,
    items: Extract<WriteCall, { tool: "bulk_add_options" }>["input"]["items"],
  ) => {
    const run = await made({ tool: "bulk_add_options", input: { targetingId, items } });
    return Array.from({ length: run.state.objects.length }, (_, object) => run.state.idOf(object) ?? "");
  };
  return { ...service, made, back, add };
}

describe("the way back from created options", () => {
  test("leaves alone what others changed since, with both values", async () => {
    const { made, back, targeting, api, add } = await started();
    const targetingId = await targeting("News");
    const run = await made({
      tool: "bulk_add_options",
      input: {
        targetingId,
        items: [
          { name: "Renamed", contexts: ["a"] },
          { name: "Filled", contexts: ["b"] },
          { name: "Same", contexts: ["c"] },
          { name: "Group", type: "collection", contexts: ["d"] },
        ],
      },
    });
    const [renamed = "", filled = "", , group = ""] = [0, 1, 2, 3].map((object) => run.state.idOf(object));
    await made({ tool: "update_options", input: { items: [{ _id: renamed, name: "Other" }] } });
    await made({ tool: "update_contexts", input: { items: [{ _id: filled, add: ["e"] }] } });
    await add(targetingId, [{ name: "Theirs", parent: group }]);
    const { rows, targetings } = await back(run);
    expect(rows.filter(({ undo }) => undo === "notOurs")).toMatchObject([
      { _id: renamed, name: "Other", field: "name", left: "Renamed", now: "Other" },
      { _id: filled, name: "Filled", field: "contexts", left: 1, now: 2 },
      { _id: group, name: "Group", field: "subOptions", now: 1 },
    ]);
    expect(targetings[0]?.plan.items).toMatchObject([{ kind: "delete", seen: { name: "Same" } }]);
    expect((await api.getTargeting(targetingId)).optionCount).toBe(5);
  });
});

describe("the way back from changed options", () => {
  test("Context IDs that were not read before stay, with a caveat", async () => {
    const { made, back, targeting, add, faults } = await started();
    const targetingId = await targeting("News");
    const [one = ""] = await add(targetingId, [{ name: "One" }]);
    await faults([{ kind: "status", status: 500, on: "getOption", times: 1 }]);
    const run = await made({ tool: "update_contexts", input: { targetingId, items: [{ name: "One", add: ["a"] }] } });
    const { targetings, rows } = await back(run);
    expect(targetings).toEqual([]);
    expect(rows).toMatchObject([{ _id: one, undo: "impossible", reasons: ["notRead"], contextIds: 1 }]);
  });

  test("a group is not left with nothing", async () => {
    const { made, back, targeting, add } = await started();
    const targetingId = await targeting("News");
    const [group = ""] = await add(targetingId, [{ name: "Group", type: "collection", contexts: ["a"] }]);
    const run = await made({ tool: "update_contexts", input: { items: [{ _id: group, add: ["b"] }] } });
    await made({ tool: "update_contexts", input: { items: [{ _id: group, remove: ["a"] }] } });
    const { targetings, rows } = await back(run);
    expect(targetings).toEqual([]);
    expect(rows).toMatchObject([{ _id: group, undo: "impossible", reasons: ["emptyGroup"], contextIds: 1 }]);
  });
});

describe("the way back from deleted options", () => {
  test("what cannot come back says why", async () => {
    const { made, back, targeting, add } = await started();
    const targetingId = await targeting("News");
    const [taken = "", group = "", inside = "", other = ""] = await add(targetingId, [
      { name: "Taken" },
      { name: "Group", type: "collection", contexts: ["g"], children: [{ name: "Inside" }] },
      { name: "Other", type: "collection", contexts: ["o"] },
    ]);
    const run = await made({ tool: "delete_options", input: { ids: [taken, inside, other] } });
    await made({ tool: "delete_options", input: { ids: [group] } });
    await add(targetingId, [{ name: "Taken" }, { name: "Third", type: "collection", contexts: ["o", "p"] }]);
    const { rows, targetings } = await back(run);
    expect(rows.find(({ _id }) => _id === taken)).toMatchObject({ undo: "impossible", reasons: ["nameTaken"] });
    expect(rows.find(({ _id }) => _id === other)).toMatchObject({ undo: "impossible", reasons: ["emptyGroup"] });
    expect(rows.find(({ _id }) => _id === inside)).toMatchObject({ undo: "caveat", reasons: ["newId", "groupGone"] });
    expect(targetings[0]?.plan.items).toMatchObject([{ kind: "create", name: "Inside", parent: null }]);
  });

  test("an option or a targeting whose name the API refuses does not come back", () => {
    const targeting = "01J00000000000000000000001";
    const [group, inside, renamed] = [
      "01J00000000000000000000002",
      "01J00000000000000000000003",
      "01J00000000000000000000004",
    ];
    const former = { name: "Old_group", type: "collection", parent: null, contexts: [] } as const;
    const left = { ...former, _id: renamed, name: "New", type: "atomic", contextCount: 0 } as const;
    const plan = undoPlan(
      {
        targetings: [{ did: "changed", _id: targeting, name: { from: "Old_shop", to: "Shop" } }],
        options: [
          { did: "deleted", _id: group, targeting, before: former },
          {
            did: "deleted",
            _id: inside,
            targeting,
            before: { ...former, name: "Inside", type: "atomic", parent: group },
          },
          { did: "changed", _id: renamed, targeting, name: { from: "x", to: "New" } },
        ],
        ...{ unresolved: [], unknown: [] },
      },
      new Map([[targeting, { targeting: { _id: targeting, name: "Shop" }, options: new Map([[renamed, left]]) }]]),
    );
    const reasons = plan.rows.map(({ _id, undo, field, reasons = [] }) => [_id, undo, field, ...reasons]);
    expect(reasons.toSorted()).toEqual([
      [targeting, "impossible", "name", "nameInvalid"],
      [group, "impossible", "deleted", "nameInvalid"],
      [inside, "caveat", undefined, "newId", "groupGone"],
      [renamed, "impossible", "name", "nameInvalid"],
    ]);
    const gone = { did: "deleted", _id: targeting, name: "Old_shop" } as const;
    const all = undoPlan({ targetings: [gone], options: [], unresolved: [], unknown: [] }, new Map());
    expect(all).toMatchObject({
      targetings: [],
      rows: [{ _id: targeting, undo: "impossible", reasons: ["nameInvalid"] }],
    });
  });
});

describe("the way back from changed targetings", () => {
  test("a created one is deleted with its options, unless others added to it", async () => {
    const { made, back, add } = await started();
    const items = [{ name: "Spring", options: [{ name: "Shoes", contexts: ["a"] }] }, { name: "Summer" }];
    const run = await made({ tool: "create_targetings", input: { items } });
    const summer = run.state.idOf(2) ?? "";
    await add(summer, [{ name: "Theirs" }]);
    const { targetings, rows } = await back(run);
    expect(targetings.map(({ plan }) => plan.targeting)).toMatchObject([{ name: "Spring", delete: true }]);
    expect(rows).toMatchObject([
      { name: "Spring", undo: "exact" },
      { name: "Shoes", undo: "exact" },
      { name: "Summer", undo: "notOurs", field: "added", now: 1 },
    ]);
  });

  test("renamed ones get their names back, where others did not rename them since", async () => {
    const { made, back, targeting } = await started();
    const [first, second] = [await targeting("First"), await targeting("Second")];
    const items = [
      { _id: first, name: "1st" },
      { _id: second, name: "2nd" },
    ];
    const run = await made({ tool: "rename_targetings", input: { items } });
    await made({ tool: "rename_targetings", input: { items: [{ _id: second, name: "Theirs" }] } });
    const { targetings, rows } = await back(run);
    expect(targetings.map(({ plan }) => plan.targeting)).toEqual([{ _id: first, name: "1st", rename: "First" }]);
    expect(rows).toMatchObject([
      { _id: first, undo: "exact" },
      { _id: second, undo: "notOurs", left: "2nd", now: "Theirs" },
    ]);
  });
});
