import { expect, test } from "vitest";
import * as z from "zod";
import { planContextChanges } from "../../../src/changes/plan/context-changes.ts";
import { Plan } from "../../../src/changes/plan/plan.ts";
import { ulidOf } from "../../support/tool-context.ts";

const list = z.array(z.string()).default([]);
const update = z.object({ contexts: z.object({ add: list, remove: list }) });

const ids = (count: number, prefix: string): string[] =>
  Array.from({ length: count }, (_, number) => `${prefix}-${number}`);

/** Returns how many Context IDs an option has after each step of a planned `set`. */
function held(before: readonly string[], set: readonly string[]) {
  const _id = ulidOf(1);
  const plan = new Plan();
  const wish = {
    optionId: _id,
    objects: [plan.object({ index: 0, _id })],
    asked: [],
    add: new Set<string>(),
    remove: new Set<string>(),
  };
  const contents = { option: { _id, name: "Option", type: "atomic" as const }, contexts: before };
  planContextChanges(plan, [{ ...wish, set: new Set(set) }], new Map([[_id, contents]]));
  const now = new Set(before);
  return Array.from({ length: plan.steps.length }, (_, step) => {
    const { add, remove } = update.parse(plan.steps.at(step)?.item).contexts;
    for (const id of add) now.add(id);
    for (const id of remove) now.delete(id);
    return now.size;
  });
}

// From management-api 8.1: a request has at most 10,000 Context IDs, an option at most 50,000.
test.each([
  ["12,000 become 12,000 others", 12_000, 12_000, [22_000, 16_000, 12_000]],
  ["11,000 become 50,000 others", 11_000, 50_000, [21_000, 31_000, 41_000, 50_000, 50_000, 50_000, 50_000]],
  ["50,000 become 15,000 others", 50_000, 15_000, [50_000, 50_000, 50_000, 40_000, 30_000, 20_000, 15_000]],
])("%s, and never far fewer in between", (_, before, after, sizes) => {
  expect(held(ids(before, "old"), ids(after, "new"))).toEqual(sizes);
});

test("a set that keeps most takes one request", () => {
  const before = ids(40_000, "old");
  expect(held(before, [...before.slice(5000), ...ids(5000, "new")])).toEqual([40_000]);
});
