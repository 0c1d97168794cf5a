import fc from "fast-check";
import { expect, test } from "vitest";
import { type RowBlock, RowWriter } from "../../../src/changes/rows/row-block.ts";

const targeting = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const other = "01BX5ZZKBKACTAV9WEVGEMMVRZ";

/** Returns blocks of consecutive rows. Each row has the next object, item and line. */
function blocksOf(rows: readonly { readonly name: string; readonly contexts: readonly string[] }[]): RowBlock[] {
  const writer = new RowWriter();
  const blocks = rows.map((row, at) => writer.add({ targeting, ...row }, { index: at, line: at + 2 }, at));
  return [...new Set(blocks)];
}

function oneBlock(rows: number): RowBlock {
  const [block] = blocksOf(Array.from({ length: rows }, (_, row) => ({ name: `Row ${row}`, contexts: [] })));
  if (block === undefined) throw new RangeError("there is no row");
  return block;
}

const text = fc.oneof(fc.string({ unit: "binary" }), fc.string({ unit: "grapheme" }), fc.constant('"\\\u2028\ud800'));
const anyRow = fc.record({ name: text, contexts: fc.array(text, { maxLength: 3 }) });

test("whatever rows hold, any range of them is sent as it was given, and weighs what is sent", () => {
  fc.assert(
    fc.property(fc.array(anyRow, { minLength: 1, maxLength: 20 }), fc.nat(19), fc.nat(19), (rows, one, two) => {
      const [block] = blocksOf(rows);
      if (block === undefined) throw new RangeError("there is no row");
      const from = Math.min(one, two) % rows.length;
      const to = Math.max(from, Math.max(one, two) % rows.length) + 1;
      const sent = Buffer.from(block.items(from, to));
      const given = rows
        .slice(from, to)
        .map(({ name, contexts }) => ({ targeting, name, ...(contexts.length > 0 && { contexts }) }));
      expect(JSON.parse(`[${sent.toString()}]`)).toEqual(given);
      const weights = given.map((_, at) => block.weightOf(from + at));
      expect(weights.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(sent.length + 1);
      expect(weights.map(({ contextIds }) => contextIds)).toEqual(given.map((row) => row.contexts?.length ?? 0));
    }),
    { seed: 14, numRuns: 500 },
  );
});

test("a row is opened as the step that sends it", () => {
  const block = oneBlock(5).planned(2, 5, 40);
  expect(block.length).toBe(3);
  expect(block.open(1)).toEqual({
    id: 41,
    operation: "addOptions",
    objects: [3],
    item: { name: "Row 3" },
    bindings: [{ field: "targeting", id: targeting }],
    weight: block.weightOf(1),
  });
  expect(block.objectOf(1)).toEqual({ index: 3, line: 5, name: "Row 3" });
  expect(() => oneBlock(2).open(0)).toThrow(RangeError);
});

test("rows that do not follow the last one begin a block of their own", () => {
  const place = { index: 1, line: 9 };
  const follows = [{ targeting, name: "b" }, place, 1, undefined] as const;
  const others = [
    [{ targeting: other, name: "b" }, place, 1, undefined],
    [{ targeting, name: "b" }, { index: 2, line: 9 }, 1, undefined],
    [{ targeting, name: "b" }, { index: 1 }, 1, undefined],
    [{ targeting, name: "b" }, place, 2, undefined],
    [{ targeting, name: "b" }, place, 1, 1],
  ] as const;
  for (const [item, at, object, step] of [follows, ...others]) {
    const writer = new RowWriter();
    const first = writer.add({ targeting, name: "a" }, { index: 0, line: 1 }, 0);
    expect(writer.add(item, at, object, step) === first).toBe(item === follows[0]);
  }
});

test("no block is cut by the end of a piece of memory: the rows after it are in another one", () => {
  const long = "한".repeat(100);
  const rows = Array.from({ length: 4000 }, (_, row) => ({ name: `${long} ${row}`, contexts: [long] }));
  const blocks = blocksOf(rows);
  expect(blocks.length).toBeGreaterThan(5);
  expect(blocks.flatMap((block) => Array.from({ length: block.length }, (_, row) => block.objectOf(row).name))).toEqual(
    rows.map(({ name }) => name),
  );
  expect(blocks.map(({ firstObject }) => firstObject)).toEqual(
    blocks.map((_, at) => blocks.slice(0, at).reduce((sum, { length }) => sum + length, 0)),
  );
});

test("a journal gets rows as they are sent: 500 at the most, and those together whose lines follow each other", () => {
  const many = [...oneBlock(1100).entries()].map(({ index, line }) => [index, line]);
  expect(many).toEqual([
    [0, 2],
    [500, 502],
    [1000, 1002],
  ]);
  const writer = new RowWriter();
  const lines = [1, 2, 2, 3, 7];
  const [block] = lines.map((line, index) => writer.add({ targeting, name: `Row ${index}` }, { index, line }, index));
  const entries = [...(block?.entries() ?? [])];
  expect(entries.map(({ index, line }) => [index, line])).toEqual([
    [0, 1],
    [2, 2],
    [4, 7],
  ]);
});
