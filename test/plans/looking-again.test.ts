import { expect, test } from "vitest";
import { baseText, readBase, type ServiceTargeting } from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import { readDesired } from "../../src/plans/file/read-desired.ts";
import { driftFromFile, driftSince, lookAgain } from "../../src/plans/match.ts";
import type { StatePlan } from "../../src/plans/plan.ts";
import { baseAt, idOf, option, plan, planText, there } from "./sides.ts";

/** Returns what prevents a plan from being applied, each with the option to change or the name to create. */
function differencesByItem(made: StatePlan, now: ServiceTargeting) {
  return lookAgain(made, now).stale.map(({ at, difference }) => {
    const item = made.items[at];
    return [item?.kind === "create" ? item.name : item?._id, difference];
  });
}

test("a base is read as it was written, and one that was damaged names its line", () => {
  const base = baseAt(there(option("G", { type: "collection", contexts: ["g"] }), option("A", { parent: idOf("G") })));
  const text = [...baseText(base)].join("");
  expect(readBase(text, "spring.base.ndjson")).toEqual(base);
  expect(() => readBase(text.replace('"atomic"', '"other"'), "x")).toThrow(/line 3/);
  expect(() => readBase("", "x")).toThrow(/line 1/);
});

test("a plan that removes single Context IDs is done only where none of them is left", async () => {
  const state = there(option("A", { contexts: ["a", "b"] }), option("B", { contexts: ["c"] }));
  const sheet = "Option,Context Action,Context ID\nOption A,Remove,a\nOption B,Add,c\n,Remove,d\n";
  const made = await planText("csv", sheet, state);
  expect(made.items).toMatchObject([{ _id: idOf("A"), contexts: { add: [], remove: ["a"] } }]);
  expect(lookAgain(made, state)).toEqual({ stale: [], alreadyDone: new Set() });
  const done = there(option("A", { contexts: ["b", "z"] }), option("B", { contexts: ["c"] }));
  expect(lookAgain(made, done)).toEqual({ stale: [], alreadyDone: new Set([0]) });
});

test("a plan is stale where a field that it writes has changed, and only there", async () => {
  const state = there(
    option("G", { type: "collection", name: "Group", contexts: ["g"] }),
    option("A", { contexts: ["a"] }),
    option("B"),
    option("C"),
  );
  const rows = `  - {_id: ${idOf("G")}, children: [{_id: ${idOf("B")}}]}\n  - {_id: ${idOf("A")}, contexts: [b]}\n  - {name: New}\n  - {_id: ${idOf("C")}, contextsAtLeast: [x]}\n`;
  const made = await plan(rows, state);
  expect(made.items).toHaveLength(4);
  expect(lookAgain(made, state)).toEqual({ stale: [], alreadyDone: new Set() });
  const [group, a, b, c] = state.options;
  if (group === undefined || a === undefined || b === undefined || c === undefined) throw new Error("four options");
  const harmless = there(
    group,
    { ...a, name: "Renamed" },
    { ...b, contexts: ["q"], digest: "q" },
    { ...c, contexts: ["y"], digest: "y" },
  );
  expect(lookAgain(made, harmless)).toEqual({ stale: [], alreadyDone: new Set() });
  const changed = there(
    { ...group, type: "atomic" },
    option("A", { contexts: ["a", "z"] }),
    option("N", { name: "New", contexts: ["other"] }),
  );
  expect(differencesByItem(made, changed)).toEqual([
    ["New", { _id: idOf("N"), name: "New", field: "name", service: "New" }],
    [idOf("B"), { _id: idOf("B"), name: "Option B", field: "deleted" }],
    [idOf("A"), { _id: idOf("A"), name: "Option A", field: "contexts", planned: 1, service: 2 }],
    [idOf("C"), { _id: idOf("C"), name: "Option C", field: "deleted" }],
  ]);
  const done = there(
    group,
    option("A", { contexts: ["b"] }),
    { ...b, parent: group._id },
    option("C", { contexts: ["x", "y"] }),
    option("N", { name: "New" }),
  );
  expect(lookAgain(made, done)).toEqual({ stale: [], alreadyDone: new Set([0, 1, 2, 3]) });
});

test("a plan that found an option by its name is stale if that option now has another name", async () => {
  const state = there(option("A", { contexts: ["a"] }), option("B", { contexts: ["b"] }));
  const made = await plan(`  - {name: Option A, contexts: [x]}\n  - {_id: ${idOf("B")}, contexts: [x]}\n`, state);
  const renamed = there(...state.options.map((one) => ({ ...one, name: `${one.name} new` })));
  expect(differencesByItem(made, renamed)).toEqual([
    [idOf("A"), { _id: idOf("A"), name: "Option A", field: "name", planned: "Option A", service: "Option A new" }],
  ]);
});

test("a deletion is stale where anything of the option has changed", async () => {
  const state = there(option("A", { contexts: ["a"] }));
  const made = await plan("  []\n", state, { base: baseAt(state), prune: true });
  expect(differencesByItem(made, there(option("A", { name: "Renamed", contexts: ["b"] })))).toEqual([
    [idOf("A"), { _id: idOf("A"), name: "Renamed", field: "name", planned: "Option A", service: "Renamed" }],
    [idOf("A"), { _id: idOf("A"), name: "Renamed", field: "contexts", planned: 1, service: 1 }],
  ]);
  expect(lookAgain(made, there())).toEqual({ stale: [], alreadyDone: new Set([0]) });
});

test("drift is told against the base, or without one against the file", async () => {
  const before = there(option("A", { contexts: ["a"] }), option("B"));
  const now = there(option("A", { name: "Renamed", contexts: ["a", "b"] }), option("C"));
  expect(driftSince(baseAt(before), now)).toEqual([
    { _id: idOf("A"), name: "Renamed", field: "name", base: "Option A", service: "Renamed" },
    { _id: idOf("A"), name: "Renamed", field: "contexts", base: 1, service: 2 },
    { _id: idOf("B"), name: "Option B", field: "deleted" },
    { _id: idOf("C"), name: "Option C", field: "added", service: "Option C" },
  ]);
  const text = `version: 1\noptions:\n  - {_id: ${idOf("A")}, name: Option A, contexts: [a]}\n  - {_id: ${idOf("B")}, name: Option B}\n`;
  const { desired } = await readDesired({ bytes: Buffer.from(text), format: "yaml", folder: undefined });
  const made = planOf({
    desired,
    there: now,
    prune: false,
    byName: false,
    thresholds: { maxChangePercent: 100, maxDeletes: 0 },
  });
  expect(driftFromFile(made, desired, now)).toEqual({
    differences: [
      { _id: idOf("B"), name: "Option B", field: "deleted", file: "Option B", line: 4 },
      { _id: idOf("A"), name: "Renamed", line: 3, field: "name", file: "Option A", service: "Renamed" },
      { _id: idOf("A"), name: "Renamed", line: 3, field: "contexts", file: 1, service: 2 },
    ],
    problems: [],
  });
});

test("drift from a file with a lost option keeps another problem at the position of its ID", async () => {
  const state = there(option("A"));
  const text = `_id,name\n${idOf("B")},Option B\n`;
  const { desired } = await readDesired({ bytes: Buffer.from(text), format: "csv", folder: undefined });
  const made = await planText("csv", text, state);
  expect(made.problems).toMatchObject([{ line: 2, column: 1 }]);
  const other = { line: 2, column: 1, message: "another problem", remedy: "Fix it." };
  const { differences, problems } = driftFromFile({ ...made, problems: [...made.problems, other] }, desired, state);
  expect(differences).toMatchObject([{ _id: idOf("B"), field: "deleted", line: 2 }]);
  expect(problems).toEqual([other]);
});

test("what is to be created is not done already by an option that the plan itself renames", async () => {
  const state = there(option("A", { name: "Shoes", contexts: ["a"] }));
  const made = await plan(`  - {_id: ${idOf("A")}, name: Old Shoes}\n  - {name: Shoes, contexts: [a]}\n`, state);
  expect(made.items.map(({ kind }) => kind)).toEqual(["create", "change"]);
  expect(lookAgain(made, state)).toEqual({ stale: [], alreadyDone: new Set() });
});
