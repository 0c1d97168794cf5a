import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { membersIn, valuesIn } from "../../src/mcp/read-arguments.ts";

/** Counts the values that JSON.parse creates. */
function made(value: unknown): number {
  if (typeof value !== "object" || value === null) return 1;
  return Object.values(value).reduce((count: number, inner) => count + made(inner), 1);
}

describe("values of a JSON text, counted in its bytes", () => {
  test.each([
    ["1", 1],
    ["[]", 1],
    ["{}", 1],
    ["[{},{}]", 3],
    ['{"a":[1,-2.5e3,true,null,"x"]}', 7],
    ['{ "a" : { "b" : "c:,[]{}\\"" } }', 3],
    ['"\\\\"', 1],
    ['["\\\\","\\"",":"]', 4],
  ])("%s", (text, count) => {
    expect(valuesIn(Buffer.from(text), 1000)).toBe(count);
  });

  test("whatever JSON it is, and however it is laid out", () => {
    const seed = 13;
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, "\t"), (value, space) => {
        // The parser counts each of several members with the same name.
        const text = JSON.stringify(value, undefined, space);
        expect(valuesIn(Buffer.from(text), 1_000_000)).toBe(made(JSON.parse(text)));
      }),
      { seed, numRuns: 500 },
    );
  });

  test("no further than a little above the most", () => {
    const members = JSON.stringify({ x: Array.from({ length: 98 }, (_, n) => ({ [`n${n}`]: undefined })) });
    expect(valuesIn(Buffer.from(members), 100)).toBe(100);
    expect(valuesIn(Buffer.from('{"a":{"b":{"c":1}}}'), 4)).toBe(4);
    expect(valuesIn(Buffer.from('{"a":{"b":{"c":1}}}'), 3)).toBe(4);
    const endless = Buffer.from(`[${"{},".repeat(1_000_000)}`);
    expect(valuesIn(endless, 100)).toBe(102);
  });

  test("and the members of the largest object", () => {
    for (const [text, members] of [
      ["[1,2]", 0],
      ['{"a":{"b":1,"c:,{}":[{"x":1},2]},"d":{}}', 2],
      ['[{"a":1},{"a":1,"b":1,"c":1},{"a":1}]', 3],
    ] as const) {
      expect(membersIn(Buffer.from(text), 100)).toBe(members);
      expect(membersIn(Buffer.from(text), 1)).toBe(Math.min(members, 2));
    }
  });

  test("a text that ends in the middle, or is none", () => {
    for (const text of ["", '"', '"\\', '{"a', "[1,", ":::", "tru", "]]]"]) {
      expect(valuesIn(Buffer.from(text), 100)).toBeLessThan(10);
      expect(membersIn(Buffer.from(text), 100)).toBeLessThan(10);
    }
  });
});
