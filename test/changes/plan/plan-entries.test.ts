import { expect, test } from "vitest";
import type { AddOptionInput } from "../../../src/changes/call.ts";
import { rowsIn } from "../../../src/changes/change-kinds.ts";
import { CHANGE_FORM, requestItems } from "../../../src/changes/change-run.ts";
import { RunState } from "../../../src/changes/change-state.ts";
import { planAddOptions } from "../../../src/changes/plan/add-options.ts";
import type { Plan } from "../../../src/changes/plan/plan.ts";
import { optionRows } from "../../../src/changes/rows/input-rows.ts";
import type { InputFile } from "../../../src/files/input-file.ts";
import { contentOf } from "../../files/content.ts";
import { objectResults } from "../../support/object-results.ts";
import { startService } from "../service.ts";

const targetingId = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

async function planOf(items: readonly AddOptionInput[], text?: string): Promise<Plan> {
  const { api } = await startService();
  const file: InputFile | undefined =
    text === undefined ? undefined : { format: "json", encoding: "utf-8", digest: "" };
  const input = { targetingId, items, file };
  const rows = rowsIn(input, optionRows, text === undefined ? undefined : contentOf(text));
  return planAddOptions(input, rows, { api, signal: new AbortController().signal });
}

/** Returns the plan that is read back from its journal. */
function readBack(plan: Plan): RunState {
  const state = new RunState();
  for (const entry of plan.entries()) {
    const line = Buffer.concat(CHANGE_FORM.line(entry).map((piece) => Buffer.from(piece)));
    state.apply(CHANGE_FORM.entry.parse(JSON.parse(line.toString())));
  }
  return state;
}

function requestOf(state: RunState, targetingInPath: boolean): string {
  const ids = Array.from({ length: state.steps.length }, (_, id) => id);
  return Buffer.from(requestItems(state, ids, targetingInPath).json).toString();
}

test.each([
  ["rows", [{ name: "One", contexts: ["a"] }, { name: "Two" }, { name: "Three", contexts: ["b", "c"] }]],
  [
    "a group that gets a later row",
    [
      { name: "Group", type: "collection" },
      { name: "One", contexts: ["a"] },
      { name: "Two" },
      { name: "Child", parentName: "Group", contexts: ["b"] },
    ],
  ],
  ["failing rows in between", [{ name: "One" }, { name: "bad_name" }, { name: "Two" }, { name: "One" }]],
] as const)("a plan that is read back is the same plan: %s", async (_, items) => {
  const plan = await planOf(items);
  const back = readBack(plan);
  const state = new RunState(plan);
  expect(objectResults(back)).toEqual(objectResults(state));
  for (const inPath of [false, true]) expect(requestOf(back, inPath)).toBe(requestOf(state, inPath));
  expect(requestOf(back, false).match(/"targeting"/g)).toHaveLength(back.steps.length);
  expect(requestOf(back, true)).not.toContain("targeting");
});

test("rows that share a line, or leave lines out, keep their lines", async () => {
  const plan = await planOf([], '[{"name":"One"},{"name":"Two"},\n\n{"name":"Three"},\n{"name":"Four"}]');
  expect(objectResults(readBack(plan)).map(({ index, line }) => [index, line])).toEqual([
    [0, 1],
    [1, 1],
    [2, 3],
    [3, 4],
  ]);
});

test("150,000 sub-options of 500 groups can be kept", async () => {
  const children = (group: number) => Array.from({ length: 300 }, (_, child) => ({ name: `Group ${group} ${child}` }));
  const items = Array.from({ length: 500 }, (_, group) => ({ name: `Group ${group}`, children: children(group) }));
  const plan = await planOf(items);
  const told = [...plan.entries()].reduce((sum, entry) => sum + (entry.t === "objects" ? entry.objects.length : 0), 0);
  expect(told).toBe(150_500);
});
