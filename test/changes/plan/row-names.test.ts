import { expect, test } from "vitest";
import { RowNames } from "../../../src/changes/plan/option-drafts.ts";

/** Pairs of names that have one hash. */
const PAIRS = [
  ["Option 7wqci 9n5cc", "Option 5wfzl t9ak"],
  ["Option 4b1kb 7gm4h", "Option 61kv0 4hil2"],
  ["Option 6dw9t 9ft2o", "Option 5jum7 3bdy0"],
] as const;

test("each name is found, and no other, also where two have one hash", () => {
  const known = [...PAIRS.flat(), ...Array.from({ length: 10_000 }, (_, row) => `이름 ${row}`)];
  const names = new RowNames((object) => known[object]);
  const early = known.flatMap((name, object) => {
    const found = names.get(name);
    names.add(name, object);
    return found ?? [];
  });
  expect(early).toEqual([]);
  expect(known.map((name) => names.get(name))).toEqual([...known.keys()]);
  expect(names.get("이름 10000")).toBeUndefined();
});
