import fc from "fast-check";
import { expect, test } from "vitest";
import { csvLine, DelimitedReader, recordsIn, type SheetRecord } from "../../src/files/delimited.ts";
import { DELIMITERS } from "../../src/files/input-file.ts";

function inPieces(text: string, size: number, delimiter: string, maxBytes?: number): readonly SheetRecord[] {
  const reader = new DelimitedReader({ delimiter, maxBytes });
  const records: SheetRecord[] = [];
  for (let at = 0; at < text.length; at += size) records.push(...reader.take(text.slice(at, at + size)));
  return [...records, ...reader.end()];
}

const cell = fc.string({ unit: fc.constantFrom("a", "한", '"', ",", ";", "\t", "|", "\n", "\r\n", " "), maxLength: 8 });

test("what is written is read, whatever separates the cells, in pieces of any size", () => {
  fc.assert(
    fc.property(
      fc.constantFrom(...DELIMITERS),
      fc.array(fc.array(cell, { minLength: 1, maxLength: 4 }), { minLength: 1, maxLength: 6 }),
      fc.integer({ min: 1, max: 40 }),
      (delimiter, rows, size) => {
        const text = rows.map((row) => csvLine(row, delimiter)).join("");
        const read = inPieces(text, size, delimiter);
        expect(read.map(({ cells }) => cells)).toEqual(rows);
        expect(read).toEqual(recordsIn(text, { delimiter }));
      },
    ),
  );
});

test("each cell says where it stands", () => {
  const text = 'a,"b\nc",d\n\n"e"\r\nf';
  const records = recordsIn(text, { delimiter: ",", withPlaces: true });
  const places = records.map(({ places: all = [] }) => all.map(({ line, column }) => `${line}:${column}`).join(" "));
  expect(places).toEqual(["1:1 1:3 2:4", "3:1", "4:1", "5:1"]);
  for (const { cells, places: all = [] } of records) {
    const texts = all.map(({ start, end }) => text.slice(start, end).replaceAll('"', ""));
    expect(texts).toEqual(cells);
  }
});

test("a quote counts only at the beginning of a cell", () => {
  expect(recordsIn('5" TV;7" TV\n', { delimiter: ";" })).toEqual([{ line: 1, cells: ['5" TV', '7" TV'] }]);
});

test.each([
  ['a,"1\n2\n3\n4\n5\n6\n7"\n', "line 1 "],
  ['a\n"b\n1\n2\n3\n4\n5\n6', "line 2 "],
  ["a\n가나다라마바\n", "line 2 "],
])("a record of more than ten bytes is refused: %j", (text, line) => {
  for (const size of [1, 3, 100]) expect(() => inPieces(text, size, ",", 10)).toThrow(line);
});

test("records that are short enough are read", () => {
  expect(inPieces('"a""b"\n"c"\n"d"\n"e"\n', 2, ",", 10)).toHaveLength(4);
});
