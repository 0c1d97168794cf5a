import { expect, test } from "vitest";
import { requestItems } from "../../../src/changes/change-run.ts";
import type { JournalEntry } from "../../../src/changes/rows/entries.ts";
import { StepMaker } from "../../../src/changes/rows/steps.ts";
import { RunState } from "../../../src/changes/state/change-state.ts";
import { idAt } from "../fake-driver.ts";

const [T, O, MADE] = [idAt(0), idAt(1), idAt(2)];

function stateOf(entries: readonly JournalEntry[]): RunState {
  const state = new RunState();
  for (const entry of entries) state.apply(entry);
  return state;
}

function bodyOf(state: RunState, ids: readonly number[], targetingInPath = false): unknown {
  const { count, json } = requestItems(state, ids, targetingInPath);
  expect(count).toBe(ids.length);
  return JSON.parse(Buffer.from(json).toString("utf8"));
}

const rows: JournalEntry = {
  t: "rows",
  index: 0,
  items: [
    { targeting: T, name: "One" },
    { targeting: T, name: "신발", contexts: ["a", 'b"'] },
    { targeting: T, name: "Three" },
    { targeting: T, name: "Four" },
  ],
};

test("rows travel as they were written down, in any selection and order", () => {
  const state = stateOf([rows]);
  const [one, two, three, four] = [
    { targeting: T, name: "One" },
    { targeting: T, name: "신발", contexts: ["a", 'b"'] },
    { targeting: T, name: "Three" },
    { targeting: T, name: "Four" },
  ];
  expect(bodyOf(state, [0, 1, 2, 3])).toEqual([one, two, three, four]);
  expect(bodyOf(state, [0, 1])).toEqual([one, two]);
  expect(bodyOf(state, [2, 0])).toEqual([three, one]);
  expect(bodyOf(state, [1])).toEqual([two]);
});

test("a targeting that the route names is left out of every item", () => {
  expect(bodyOf(stateOf([rows]), [0, 2], true)).toEqual([{ name: "One" }, { name: "Three" }]);
});

test("a delete is its ID, an update has its ID beside the changes, and what the run made is bound by its ID", () => {
  const make = StepMaker.after({ length: 0 });
  const steps = [
    make.deleteOption({ id: O }, false, { objects: [0] }),
    make.updateOption({ id: O }, { name: "New" }, { objects: [1] }),
    make.addOption({ name: "Child" }, { targeting: { id: T }, parent: { object: 3 } }, { objects: [2] }),
  ];
  const objects = [{ index: 0 }, { index: 1 }, { index: 2 }, { index: 3 }];
  const state = stateOf([
    { t: "objects", objects },
    { t: "steps", steps },
    { t: "settled", settlements: [{ object: 3, outcome: "succeeded", _id: MADE }] },
  ]);
  expect(bodyOf(state, [0])).toEqual([O]);
  expect(bodyOf(state, [1])).toEqual([{ _id: O, name: "New" }]);
  expect(bodyOf(state, [2])).toEqual([{ targeting: T, parent: MADE, name: "Child" }]);
});

test("a step may not leave without the ID of what it needs", () => {
  const step = StepMaker.after({ length: 0 }).updateOption({ object: 0 }, { name: "New" }, { objects: [0] });
  const state = stateOf([
    { t: "objects", objects: [{ index: 0 }] },
    { t: "steps", steps: [step] },
  ]);
  expect(() => requestItems(state, [0], false)).toThrow(RangeError);
});
