import { expect, test } from "vitest";
import type { ServiceTargeting } from "../../src/plans/base.ts";
import { baseAt, idOf, option, plan, planText, there, wordsOf } from "./sides.ts";

const A = idOf("A");
const GROUPS = there(
  option("G", { type: "collection", name: "Group" }),
  option("S", { name: "Sub", parent: idOf("G") }),
  option("P", { name: "Plain" }),
);
const TWO_GROUPS = there(
  option("A", { type: "collection", contexts: ["a"] }),
  option("C", { type: "collection", contexts: ["c"] }),
);
/** Two groups with the same name, which edits in the web console can lead to. */
const TWO_SALES = there(
  option("A", { type: "collection", name: "Sale" }),
  option("B", { name: "Boots", parent: A, contexts: ["b"] }),
  option("C", { type: "collection", name: "Sale" }),
  option("D", { name: "Dresses", parent: idOf("C") }),
);
const TWINS = there(option("A", { name: "Shoes" }), option("B", { name: "Shoes" }));

/** Options of a YAML or CSV file, each with the problems that the plan must find before it sends anything. */
test.each<readonly [string, string, ServiceTargeting, readonly RegExp[]]>([
  [
    "an _id that neither side knows",
    `  - _id: ${idOf("X")}\n    name: Shoes\n`,
    there(option("A")),
    [/^3:5 neither the targeting nor the base has an option 01J0000000000000000000000X/],
  ],
  ["a name of several options", "  - name: Shoes\n", TWINS, [/^3:5 several options have the name "Shoes"/]],
  [
    "a new sub-option of one of two groups with the same name",
    `_id,name,parentName\n${A},Sale,\n${idOf("C")},Sale,\n,New,Sale\n`,
    TWO_SALES,
    [/^4:6 several options have the name "Sale"/],
  ],
  [
    "a name that an option outside of the file keeps",
    `  - {_id: ${A}, name: Option B}\n`,
    there(option("A"), option("B")),
    [/^3:39 the name "Option B" is already used by option 01J0000000000000000000000B, which keeps it$/],
  ],
  [
    "a Context ID that two groups would hold",
    `  - {_id: ${A}, contexts: [a, c]}\n`,
    TWO_GROUPS,
    [/^3:39 the groups "Option A" and "Option C" would both have the Context ID "c"$/],
  ],
  ["a group that is left empty", "  - name: Sub\n", GROUPS, [/^3:5 the group "Group" would have neither/]],
  [
    "an empty new group",
    "  - {name: New Group, children: []}\n",
    GROUPS,
    [/^3:5 the group "New Group" would have neither/],
  ],
  [
    "a plain option as a group",
    "  - {name: Plain, children: [{name: New}]}\n",
    GROUPS,
    [
      /^3:5 "Plain" is not a group, but the file describes it as one/,
      /^3:30 "New" would go into an option that is not/,
    ],
  ],
  ["a setting of groups", "  - {name: Plain, exposeChildren: true}\n", GROUPS, [/^3:19 "Plain" has exposeChildren/]],
  [
    "parents of a CSV file",
    "name,parentName\nNew,Plain\nGroup,New Group\nAlso,Nowhere\n",
    GROUPS,
    [
      /^2:5 "New" would go into an option that is not a group/,
      /^3:7 no option has the name "New Group"/,
      /^4:6 no option has the name "Nowhere"/,
    ],
  ],
])("%s is a problem with its place", async (_, text, state, words) => {
  const made = text.startsWith(" ") ? await plan(text, state) : await planText("csv", text, state);
  expect(wordsOf(made)).toEqual(words.map((one) => expect.stringMatching(one)));
});

test("a row without _id adopts the option of its name and moves it to where the file has it", async () => {
  const group = option("G", { name: "Group", type: "collection", contexts: ["g"] });
  const made = await plan("  - name: Shoes\n", there(group, option("A", { name: "Shoes", parent: group._id })));
  expect(made.adopted).toEqual([{ _id: idOf("A"), name: "Shoes", line: 3 }]);
  expect(made.items).toMatchObject([{ kind: "change", _id: idOf("A"), parent: null }]);
});

test("CSV: blank cells keep, and a parent is a name of the file first", async () => {
  const state = there(
    option("G", { type: "collection", name: "Old Group", contexts: ["g"] }),
    option("S", { name: "Sub", parent: idOf("G"), contexts: ["s"] }),
  );
  const kept = await planText("csv", "name,parentName,contexts\nSub,,\n", state);
  expect(kept.items).toEqual([]);
  const text = `_id,name,parentName,contexts\n${idOf("G")},New Group,,\n,Other,New Group,[]\n`;
  const made = await planText("csv", text, state);
  expect(made.problems).toEqual([]);
  expect(made.items).toMatchObject([
    { kind: "create", name: "Other", parent: { _id: idOf("G") } },
    { kind: "change", name: "New Group" },
  ]);
});

test("a file with two groups of one name is planned by the IDs of its rows", async () => {
  const rows = (name: string, boots: string) =>
    `_id,name,parentName,contexts\n${A},Sale,,\n${idOf("B")},Boots,Sale,${boots}\n${idOf("C")},${name},,\n${idOf("D")},Dresses,Sale,\n`;
  const unchanged = await planText("csv", rows("Sale", "b"), TWO_SALES);
  expect([unchanged.problems, unchanged.items]).toEqual([[], []]);
  // The sub-options of a renamed group stay in it, even if their rows have the old name of the group.
  const made = await planText("csv", rows("Outlet", "b|b2"), TWO_SALES);
  expect(made.problems).toEqual([]);
  expect(made.items).toEqual([
    expect.objectContaining({
      _id: idOf("B"),
      parent: undefined,
      contexts: expect.objectContaining({ add: ["b2"], remove: [] }),
    }),
    expect.objectContaining({ _id: idOf("C"), name: "Outlet", parent: undefined }),
  ]);
});

test("two rows of one name are a problem where rows are matched by name, with or without IDs", async () => {
  const made = await planText("csv", `_id,name\n${A},Sale\n${idOf("C")},Sale\n`, TWO_SALES, { byName: true });
  expect(wordsOf(made)).toContainEqual(
    expect.stringMatching(/the name "Sale" occurs twice in the file: on line 2 and/),
  );
});

test("what a spreadsheet may have damaged is a problem unless service or base has exactly that", async () => {
  const text = "name,contexts\nTRUE,1.23E+15\n";
  expect(wordsOf(await planText("csv", text, there(option("A"))))).toEqual([
    expect.stringMatching(/^2:1 "TRUE" in name/),
    expect.stringMatching(/^2:6 "1.23E\+15" in contexts/),
  ]);
  const held = await planText("csv", text, there(option("A", { name: "TRUE", contexts: ["1.23E+15"] })));
  expect(held.problems).toEqual([]);
  expect(held.items).toEqual([]);
});

test("prune deletes what stood in the base alone, and nothing that others changed or gave sub-options", async () => {
  const before = there(option("A"), option("B"), option("G", { type: "collection", contexts: ["g"] }));
  const now = there(
    option("A"),
    option("B", { contexts: ["theirs"] }),
    option("G", { type: "collection", contexts: ["g"] }),
    option("N", { parent: idOf("G") }),
    option("O"),
  );
  const made = await plan("  []\n", now, { base: baseAt(before), prune: true });
  expect(made.items).toMatchObject([{ kind: "delete", _id: idOf("A") }]);
  expect(made.conflicts.map(({ _id, field }) => [_id, field])).toEqual([
    [idOf("B"), "contexts"],
    [idOf("G"), "subOptions"],
  ]);
  expect(made.drift.map(({ _id, field }) => [_id, field])).toEqual([
    [idOf("N"), "added"],
    [idOf("O"), "added"],
  ]);
});

test("CSV: an option whose group prune would delete has to say where it goes", async () => {
  const state = there(
    option("G", { type: "collection", name: "Group", contexts: ["g"] }),
    option("S", { name: "Sub", parent: idOf("G") }),
  );
  const made = await planText("csv", "name\nSub\n", state, { base: baseAt(state), prune: true });
  expect(wordsOf(made)).toEqual([expect.stringMatching(/^2:1 the group of "Sub" would be deleted/)]);
  const told = await planText("csv", "name,parentName\nSub,[]\n", state, { base: baseAt(state), prune: true });
  expect(told.problems).toEqual([]);
  expect(told.items.map(({ kind }) => kind)).toEqual(["change", "delete"]);
});

test("by names, the file of one targeting is planned onto another", async () => {
  const target = there(option("A", { name: "Shoes", contexts: ["a"] }), option("B", { name: "Extra" }));
  const rows = `  - {_id: ${idOf("Z")}, name: Shoes, contexts: [a, b]}\n  - {_id: ${idOf("Y")}, name: New}\n`;
  const made = await plan(rows, target, { byName: true });
  expect(made.problems).toEqual([]);
  expect(made.items).toMatchObject([
    { kind: "create", name: "New" },
    { kind: "change", _id: idOf("A"), contexts: { add: ["b"], remove: [] } },
  ]);
  expect(made.adopted).toEqual([]);
  expect(made.onlyThere).toEqual([{ _id: idOf("B"), name: "Extra" }]);
  const pruned = await plan(rows, target, { byName: true, prune: true, base: baseAt(target) });
  expect(pruned.items.at(-1)).toMatchObject({ kind: "delete", _id: idOf("B") });
});

test("thresholds count what changes and what is deleted by themselves, from ten options up", async () => {
  const letters = "ABCDEFGHJK".split("");
  const state = there(...letters.map((letter) => option(letter)));
  const renamed = (count: number) =>
    letters
      .slice(0, count)
      .map((letter) => `  - {_id: ${idOf(letter)}, name: New ${letter}}\n`)
      .join("");
  const thresholds = { maxChangePercent: 30, maxDeletes: 2 };
  expect((await plan(renamed(3), state, { thresholds })).limits).toEqual([]);
  expect((await plan(renamed(4), state, { thresholds })).limits).toEqual([
    { limit: "TARGETING_MCP_MAX_CHANGE_PERCENT", of: "changed options", there: 10, wanted: 4, fits: 3 },
  ]);
  const nine = there(...state.options.slice(0, 9));
  expect((await plan(renamed(9), nine, { thresholds })).limits).toEqual([]);
  const created = Array.from({ length: 50 }, (_, at) => `  - {name: Created ${at}}\n`).join("");
  expect((await plan(created, state, { thresholds })).limits).toEqual([]);
  const pruned = await plan("  []\n", state, { thresholds, prune: true, base: baseAt(state) });
  expect(pruned.limits.map(({ limit, wanted, fits }) => [limit, wanted, fits])).toEqual([
    ["TARGETING_MCP_MAX_DELETES", 10, 2],
    ["TARGETING_MCP_MAX_CHANGE_PERCENT", 10, 3],
  ]);
});

test("limits of the service are told with what is there and what fits", async () => {
  const ids = (count: number, sign: string) => Array.from({ length: count }, (_, at) => `${sign}${at}`);
  const line = JSON.stringify({ _id: idOf("A"), contexts: ids(50_001, "a") });
  const more = ["B", "C", "D", "E"].map((letter) => option(letter, { contexts: ids(40_000, letter) }));
  const made = await planText("ndjson", line, there(option("A", { contexts: ["x"] }), ...more));
  expect(made.limits).toEqual([
    { limit: "Context IDs of an option", of: "Option A", there: 1, wanted: 50_001, fits: 50_000 },
    { limit: expect.stringContaining("targeting"), of: "the project", there: 160_001, wanted: 210_001, fits: 200_000 },
  ]);
});
