import * as fc from "fast-check";
import { expect, test } from "vitest";
import { jsonPieces } from "../../src/platform/json.ts";

test("data in pieces is the JSON of the whole", () => {
  const long = fc.array(fc.record({ name: fc.string(), at: fc.option(fc.integer(), { nil: undefined }) }), {
    size: "max",
    maxLength: 900,
  });
  const value = fc.record({
    kind: fc.string(),
    none: fc.constant(undefined),
    empty: fc.constant({}),
    list: long,
    plan: fc.record({ items: long, nothing: fc.constant([]), one: fc.oneof(fc.string(), fc.constant(null)) }),
  });
  fc.assert(
    fc.property(fc.oneof(value, fc.jsonValue()), (one) => {
      expect([...jsonPieces(one)].join("")).toBe(JSON.stringify(one));
    }),
    { numRuns: 60 },
  );
});

test("a long list is not one piece", () => {
  const items = Array.from({ length: 1000 }, (_, at) => ({ at }));
  const pieces = [...jsonPieces({ plan: { items } })];
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(JSON.stringify(items).length / 4);
});
