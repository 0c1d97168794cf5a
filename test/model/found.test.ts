import { describe, expect, test } from "vitest";
import { changesBetween, randomOf, type Tree, type TreeOption } from "./cases.ts";
import { tryCase } from "./orders.ts";

const option = (name: string, more: Partial<Omit<TreeOption, "contexts">> & { contexts?: readonly string[] } = {}) => {
  const { contexts = [], ...fields } = more;
  return { name, group: false, parent: null, expose: false, ...fields, contexts: new Set(contexts) };
};
const group = (name: string, ...contexts: readonly string[]) => option(name, { group: true, contexts });
const inside = (name: string, parent: string, ...contexts: readonly string[]) => option(name, { parent, contexts });

/** Changes that an earlier version left half applied, with the state that they should lead to. */
const FOUND: Readonly<Record<string, { readonly before: Tree; readonly after: Tree }>> = {
  "a group loses its last Context ID for an option that enters under a name which another one has to leave": {
    before: new Map([
      ["g0", group("group 0")],
      ["g1", group("group 1", "c1")],
      ["g2", group("group 2", "c2")],
      ["g3", group("group 3")],
      ["g4", group("group 4", "c4")],
      ["a0", inside("atom 0", "g0")],
      ["a3", inside("atom 3", "g3")],
      ["t1", option("top 1")],
    ]),
    after: new Map([
      ["g0", group("group 1")],
      ["g2", group("group 2")],
      ["g3", group("group 3")],
      ["g4", group("group 0", "c1")],
      ["a0", inside("atom 0", "g0")],
      ["a3", inside("top 1", "g2")],
      ["t1", option("group 4")],
      ["na1", inside("atom 3", "g3")],
    ]),
  },
  "a group takes the name of its neighbour's only option, which is deleted": {
    before: new Map([
      ["g0", group("group 0")],
      ["g1", group("group 1", "c1")],
      ["a0", inside("atom 0", "g0")],
      ["t2", option("top 2", { contexts: ["c2"] })],
      ["t1", option("top 1", { contexts: ["c0"] })],
    ]),
    after: new Map([
      ["g0", group("group 0")],
      ["g1", group("atom 0")],
      ["t2", inside("top 1", "g1", "c2")],
      ["t1", inside("group 1", "g0", "c0")],
    ]),
  },
};

describe("what was left half applied once", () => {
  test.each(Object.entries(FOUND))("%s", (_, { before, after }) => {
    const changes = changesBetween(before, after);
    for (const some of [changes, changes.toReversed()]) {
      for (const most of [1, 2, 1000]) tryCase({ before, after, changes: some }, randomOf(1), most);
    }
  });
});

describe("a targeting that is full", () => {
  const before: Tree = new Map([
    ["g0", group("group 0")],
    ["a0", inside("atom 0", "g0")],
    ["t0", option("top 0")],
  ]);

  test("can be changed where no free place is needed", () => {
    const after: Tree = new Map([
      ["g0", group("group 0")],
      ["a0", inside("top 0", "g0")],
      ["n0", option("new 0")],
    ]);
    expect(tryCase({ before, after, changes: changesBetween(before, after) }, randomOf(1), 1000, 3)).toBeGreaterThan(1);
  });

  test("is not begun to be changed where a free place would be needed", () => {
    // The group needs the new option so that it is not empty. But the new option cannot come before the other one
    // leaves.
    const after: Tree = new Map([
      ["g0", group("group 0")],
      ["n0", inside("new 0", "g0")],
      ["a0", option("atom 0")],
      ["t0", option("top 0")],
    ]);
    const changes = changesBetween(before, after);
    expect(() => tryCase({ before, after, changes }, randomOf(1), 1000, 3)).toThrow("it is stuck");
  });
});
