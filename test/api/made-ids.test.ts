import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bulkResults } from "../../src/api/answers.ts";
import { madeIds } from "../../src/api/made-ids.ts";

const ID = "01M7ZSB48HW78KRF1V3DDHE5JH";

function item(index: number, data: object = {}): object {
  return { index, success: true, data: { _id: `${ID.slice(0, -2)}${10 + index}`, ...data } };
}

function bytes(value: unknown): Buffer {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
}

describe("an answer in the form that the document shows", () => {
  test("is read without parsing it: IDs in order", () => {
    const record = { targeting: ID, name: '관심사 }] "q" \\ {', contextCount: 1, exposeChildren: false, parent: null };
    const answer = { results: [item(0, record), item(1, record)], succeeded: 2, failed: 0 };
    expect(madeIds(bytes(answer), 2)).toEqual([`${ID.slice(0, -2)}10`, `${ID.slice(0, -2)}11`]);
    expect(madeIds(bytes(`${JSON.stringify(answer)}\n`), 2)).toHaveLength(2);
  });

  test.each([
    ["one is missing", { results: [item(0)], succeeded: 1 }],
    ["one is too many", { results: [item(0), item(1), item(2)] }],
    ["an index is repeated", { results: [item(0), item(0)] }],
    ["indexes are out of order", { results: [item(1), item(0)] }],
    ["one failed", { results: [item(0), { index: 1, success: false, error: { statusCode: 400 } }] }],
    ["a success has an error, too", { results: [item(0), { ...item(1), error: { statusCode: 500 } }] }],
    ["one has no ID", { results: [item(0), { index: 1, success: true, data: {} }] }],
    ["one has sub-options", { results: [item(0), item(1, { children: [ID] })] }],
    ["the list stands elsewhere", { items: [item(0), item(1)] }],
    ["it is cut off", JSON.stringify({ results: [item(0), item(1)] }).slice(0, -1)],
    ["something follows", `${JSON.stringify({ results: [item(0), item(1)] })}{}`],
    [
      "a field comes twice",
      '{"results":[{"index":0,"success":true,"data":{"_id":"A"}},{"index":1,"success":true,"data":{"_id":"B","_id":"C"}}]}',
    ],
  ])("is left to others where %s", (_, answer) => {
    expect(madeIds(bytes(answer), 2)).toBeUndefined();
  });
});

test("whatever an answer holds, reading it by its form says what parsing it says", () => {
  const field = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.string(),
    fc.double({ noNaN: true }),
    fc.boolean(),
    fc.constant(null),
  );
  const name = fc.constantFrom("name", "type", "_id", "children", "success", "index", "error", "x y", "이름");
  const record = fc.dictionary(name, fc.oneof({ weight: 9, arbitrary: field }, fc.array(field)), { maxKeys: 3 });
  const results = fc.array(
    fc.tuple(fc.nat(3), fc.oneof({ weight: 9, arbitrary: fc.constant(true) }, fc.boolean()), record),
    {
      maxLength: 4,
    },
  );
  fc.assert(
    fc.property(results, fc.boolean(), fc.nat(4), (given, inOrder, count) => {
      const list = given.map(([index, success, data], at) => ({
        index: inOrder ? at : index,
        success,
        data: { _id: ID, ...data },
      }));
      const body = bytes({ results: list, succeeded: list.length });
      const ids = madeIds(body, count);
      if (ids === undefined) return;
      expect(list.every(({ success, index }, at) => success && index === at)).toBe(true);
      expect(ids).toEqual(list.map(({ data }) => data._id));
      expect(ids).toHaveLength(count);
      expect(bulkResults(body, count)?.map(({ data }) => data?._id)).toEqual(ids);
    }),
    { seed: 4, numRuns: 5000 },
  );
});

test("names come back as they were sent where an answer has refusals in it", () => {
  const refused = { index: 1, success: false, error: { statusCode: 400, detail: { name: "관심사 é" } } };
  const results = bulkResults(bytes({ results: [item(0, { name: "관심사" }), refused] }), 2);
  expect(results?.[0]?.data?.name).toBe("관심사");
  expect(results?.[1]?.error?.detail?.name).toBe("관심사 é");
});
