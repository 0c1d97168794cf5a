import { expect, test } from "vitest";
import { linesOf } from "../../src/answers/plan-words.ts";
import { baseAt, idOf, option, planText, there, wordsOf } from "./sides.ts";

// How the columns Action and Context Action of a sheet change a plan.

const A = option("A", { name: "Football", contexts: ["a", "b"] });
const B = option("B", { name: "Running", contexts: ["c"] });

const deleted = (plan: Awaited<ReturnType<typeof planText>>) =>
  plan.items.flatMap((item) => (item.kind === "delete" ? [item.seen.name] : []));

test("Remove deletes the option of a row: by its ID, or by its name where there is a base", async () => {
  const byId = await planText("csv", `Action,Option ID,Option\nRemove,${idOf("A")},\n,,Running\n`, there(A, B));
  expect(deleted(byId)).toEqual(["Football"]);
  expect(byId.items).toMatchObject([{ kind: "delete", line: 2 }]);
  const byName = await planText("csv", "Action,Option\nDelete,Football\n", there(A, B));
  expect(deleted(byName)).toEqual([]);
  expect(wordsOf(byName)).toEqual([expect.stringContaining("2:1 Action is Remove, but the row has no Option ID")]);
  const state = there(A, B);
  expect(deleted(await planText("csv", "작업,옵션\n삭제,Football\n", state, { base: baseAt(state) }))).toEqual([
    "Football",
  ]);
  // The option does not exist, so there is nothing to remove.
  expect((await planText("csv", "Action,Option\nRemove,Golf\n", there(A, B))).items).toEqual([]);
});

test("a row that deletes an option by its ID must have the name of this option, or none", async () => {
  const sheet = `Action,Option ID,Option\nDelete,${idOf("A")},Running\nDelete,${idOf("B")},Running\n`;
  const plan = await planText("csv", sheet, there(A, B));
  expect(wordsOf(plan)).toEqual([
    expect.stringContaining(
      `2:1 Action is Remove, and the row names the option ${idOf("A")} "Running", but its name is`,
    ),
  ]);
  expect(deleted(plan)).toEqual(["Running"]);
  const renamed = there({ ...A, name: "Soccer" }, B);
  const old = `Action,Option ID,Option\nDelete,${idOf("A")},Football\n`;
  expect(wordsOf(await planText("csv", old, renamed))).toHaveLength(1);
  // The name in the base is this option's too: that others renamed it is a conflict.
  const { conflicts, problems } = await planText("csv", old, renamed, { base: baseAt(there(A, B)) });
  expect([conflicts.length, problems]).toEqual([1, []]);
});

test("an option that others changed since the base is a conflict, and not deleted", async () => {
  const changed = there({ ...A, name: "Soccer" }, B);
  const plan = await planText("csv", `Action,Option ID\nRemove,${idOf("A")}\n`, changed, { base: baseAt(there(A, B)) });
  expect(deleted(plan)).toEqual([]);
  expect(plan.conflicts).toEqual([
    expect.objectContaining({ _id: idOf("A"), field: "name", file: "deleted", line: 2 }),
  ]);
});

test("Remove counts for the limit of deletions", async () => {
  const sheet = `Action,Option ID\nRemove,${idOf("A")}\nRemove,${idOf("B")}\n`;
  const thresholds = { maxChangePercent: 100, maxDeletes: 1 };
  const plan = await planText("csv", sheet, there(A, B), { thresholds });
  expect(plan.limits).toEqual([expect.objectContaining({ wanted: 2 })]);
});

test("prune and a filled column Action say both what is deleted", async () => {
  const state = there(A, B);
  const plan = await planText("csv", "Action,Option\nEdit,Football\n", state, { base: baseAt(state), prune: true });
  expect(wordsOf(plan)).toEqual([expect.stringContaining("prune cannot be combined with a filled column Action")]);
  const empty = await planText("csv", "Action,Option\n,Football\n", state, { base: baseAt(state), prune: true });
  expect(deleted(empty)).toEqual(["Running"]);
});

test("Context Action says whether Context IDs are set, added or removed", async () => {
  const sheet = "Option,Context Action,Context IDs\nFootball,Remove,b;x\nRunning,Add,d\n";
  const plan = await planText("csv", sheet, there(A, B));
  expect(plan.items).toMatchObject([
    { _id: idOf("A"), contexts: { add: [], remove: ["b"] } },
    { _id: idOf("B"), contexts: { add: ["d"], remove: [] } },
  ]);
  const rows = "Option,Context Action,Context ID\nFootball,Add,e\n,Remove,a\nRunning,,z\n";
  expect((await planText("csv", rows, there(A, B))).items).toMatchObject([
    { _id: idOf("A"), contexts: { add: ["e"], remove: ["a"] } },
    { _id: idOf("B"), contexts: { add: ["z"], remove: ["c"] } },
  ]);
});

test("where file and service both only added Context IDs, the advice keeps both", async () => {
  const base = baseAt(there(A, B));
  const now = there(option("A", { name: "Football", contexts: ["a", "b", "coll-51"] }), B);
  const set = await planText("csv", "Option,Context IDs\nFootball,a;b;week-1\n", now, { base });
  expect(linesOf(set, "sheet.csv").conflicts).toEqual([expect.stringMatching(/; to keep what both added, .* Add /)]);
  const add = "Option,Context Action,Context IDs\nFootball,Add,a;b;week-1\n";
  const { items, conflicts } = await planText("csv", add, now, { base });
  expect([items.length, conflicts]).toEqual([1, []]);
  expect(items).toMatchObject([{ contexts: { add: ["week-1"], remove: [] } }]);
  const removed = await planText("csv", "Option,Context IDs\nFootball,a;week-1\n", now, { base });
  expect(linesOf(removed, "sheet.csv").conflicts).toEqual([expect.stringContaining('and remove "week-1"')]);
});

test("a Context ID that an option holds with a separator in it stays whole", async () => {
  const held = option("C", { name: "Golf", contexts: ["a|b", "c|d|e", "f"] });
  const sheet = "Option,Context IDs\nGolf,a|b|c|d|e|g\n";
  expect((await planText("csv", sheet, there(held))).items).toMatchObject([
    { _id: idOf("C"), contexts: { add: ["g"], remove: ["f"] } },
  ]);
  const removing = "Option,Context Action,Context IDs\nGolf,Remove,f|a|b\n";
  expect((await planText("csv", removing, there(held))).items).toMatchObject([
    { _id: idOf("C"), contexts: { add: [], remove: ["f", "a|b"] } },
  ]);
  expect((await planText("csv", "Option,Context IDs\nGolf,a|b| c|d|e |f\n", there(held))).items).toEqual([]);
});
