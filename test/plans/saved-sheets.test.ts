import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { contextRows, optionRows } from "../../src/changes/rows/input-rows.ts";
import { openBytes } from "../../src/files/open-file.ts";
import { itemsIn, type RowShape } from "../../src/files/rows.ts";
import { writtenSheet } from "../../src/files/save-file.ts";
import { contextCells, inertCell, type SheetFormat } from "../../src/files/written-rows.ts";
import type { ServiceTargeting } from "../../src/plans/base.ts";
import { planOf } from "../../src/plans/diff.ts";
import { readDesired } from "../../src/plans/file/read-desired.ts";
import { desiredText, sheetOf } from "../../src/plans/file/write-desired.ts";
import { trimContextId } from "../../src/spec/names-and-contexts.ts";
import { idOf, option, there } from "./sides.ts";

// Every tool must read a sheet that another tool has saved as the same data.

const FORMS: Readonly<Record<string, SheetFormat>> = {
  "workbook.xlsx": { format: "xlsx" },
  "commas.csv": { format: "csv", delimiter: "," },
  "semicolons.csv": { format: "csv", delimiter: ";" },
  "tabs.tsv": { format: "csv", delimiter: "\t" },
};

async function saved(state: ServiceTargeting, form: SheetFormat): Promise<Uint8Array> {
  const rows = async function* () {
    yield* sheetOf(state, form);
  };
  const pieces: Uint8Array[] = [];
  for await (const piece of writtenSheet({ name: "Options", above: 0, rows: rows() }, form)) {
    pieces.push(Buffer.from(piece));
  }
  return Buffer.concat(pieces);
}

async function planOfSaved(state: ServiceTargeting, path: string, form: SheetFormat) {
  const bytes = await saved(state, form);
  const { desired, problems } = await readDesired({ bytes, path, format: form.format, folder: undefined });
  expect(problems).toEqual([]);
  const thresholds = { maxChangePercent: 100, maxDeletes: 500 };
  return planOf({ desired, there: state, prune: false, byName: false, thresholds, base: undefined });
}

/** Returns the items of a file as a tool reads them. */
async function itemsOf<Item>(
  bytes: Uint8Array,
  path: string,
  format: SheetFormat["format"] | "ndjson",
  shape: RowShape<Item>,
) {
  const source = async function* () {
    yield bytes;
  };
  const { file } = await openBytes(source, { path, format, maxLineBytes: undefined }, {}, shape);
  return (await itemsIn(source, file, shape)).map((one) => ("item" in one ? one.item : one));
}

const HARD = [
  ...["=1+1", "+82 10", "-5", "@home", "'=x", "''=x", "'plain", "[]", '["a"]', "a|b", "a;b", "a,b", "a\nb", 'say "x"'],
  ...["TRUE", "1.23E+15", "#N/A", '="00123"', "00123", "_x0041_", "a\tb", "\u1112\u1161\u11ab", "é", "e\u0301"],
  ...["러닝화", "\u00e4", "x\u00a0y", "zero\u200bwidth", "\u0007bell", "👩‍👩‍👧", "<b>&amp;", "total", "sep=;"],
  ...["\uff1d1+1", "'\uff0b1", "\uff20home"],
];
const contextId = fc
  .oneof(fc.constantFrom(...HARD), fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }))
  .map((text) => trimContextId(text.toWellFormed()))
  .filter((text) => text !== "");
const contexts = fc.uniqueArray(contextId, { maxLength: 8 });
const names = fc.uniqueArray(fc.constantFrom("+Plus", "-Minus", "100 %", "Total", "러닝화", "Id", "Yes ~", "TRUE"), {
  minLength: 4,
  maxLength: 4,
});

function stateOf(named: readonly string[], held: readonly (readonly string[])[]): ServiceTargeting {
  const [one = "", two = "", three = "", four = ""] = named;
  const [a = [], b = [], c = [], d = []] = held;
  return there(
    option("A", { name: one, type: "collection", contexts: a, exposeChildren: true }),
    option("B", { name: two, parent: idOf("A"), contexts: b }),
    option("C", { name: three, contexts: c }),
    option("D", { name: four, type: "collection", contexts: d }),
  );
}

describe.each(Object.entries(FORMS))("%s", (path, form) => {
  test("goes through plan_targeting with nothing to do", async () => {
    await fc.assert(
      fc.asyncProperty(names, fc.array(contexts, { minLength: 4, maxLength: 4 }), async (named, held) => {
        const plan = await planOfSaved(stateOf(named, held), path, form);
        expect(plan.problems).toEqual([]);
        expect(plan.items).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });

  test("has every Context ID of an option that fills more than a cell, and none is longer than a spreadsheet takes", async () => {
    const many = Array.from({ length: 5000 }, (_, at) => `article-${at}-${"x".repeat(20)}`);
    const state = there(option("A", { contexts: many }), option("B", { contexts: [...HARD, ...many] }));
    const plan = await planOfSaved(state, path, form);
    expect(plan).toMatchObject({ problems: [], items: [] });
  });

  test("holds the same for imports and for changes of Context IDs", async () => {
    const state = stateOf(["Ball games", "+Football", "러닝화", "Empty"], [[], ["00123", "a|b"], ["신발"], []]);
    const bytes = await saved(state, form);
    const read = <Item>(shape: RowShape<Item>) => itemsOf(bytes, path, form.format, shape);
    expect(await read(optionRows)).toEqual([
      { _id: idOf("A"), name: "Ball games", type: "collection", exposeChildren: true, contexts: [] },
      { _id: idOf("B"), name: "+Football", type: "atomic", parentName: "Ball games", contexts: ["00123", "a|b"] },
      { _id: idOf("C"), name: "러닝화", type: "atomic", contexts: ["신발"] },
      { _id: idOf("D"), name: "Empty", type: "collection", exposeChildren: false, contexts: [] },
    ]);
    expect(await read(contextRows)).toEqual([
      { _id: idOf("A"), calledName: "Ball games", set: [] },
      { _id: idOf("B"), calledName: "+Football", set: ["00123", "a|b"] },
      { _id: idOf("C"), calledName: "러닝화", set: ["신발"] },
      { _id: idOf("D"), calledName: "Empty", set: [] },
    ]);
  });
});

test.each([..."=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"])("no cell begins with %j, which may begin a formula", (sign) => {
  expect(inertCell(`${sign}1`)).toBe(`'${sign}1`);
  expect(contextCells([`${sign}1`])).toEqual([JSON.stringify([`${sign}1`])]);
});

test("saved NDJSON holds the same for every tool", async () => {
  const state = stateOf(["Ball games", "Football", "러닝화", "Empty"], [[], ["00123", "a|b"], ["신발"], []]);
  const text = [...desiredText(state, "ndjson")].join("");
  const bytes = Buffer.from(text);
  const read = <Item>(content: Uint8Array, shape: RowShape<Item>) => itemsOf(content, "all.ndjson", "ndjson", shape);
  expect(await read(bytes, optionRows)).toMatchObject([
    { _id: idOf("A"), name: "Ball games", type: "collection", contexts: [] },
    { _id: idOf("B"), name: "Football", parentName: "Ball games", contexts: ["00123", "a|b"] },
    { name: "러닝화" },
    { name: "Empty" },
  ]);
  expect((await read(bytes, contextRows)).slice(1, 3)).toEqual([
    { _id: idOf("B"), calledName: "Football", add: ["00123", "a|b"] },
    { _id: idOf("C"), calledName: "러닝화", add: ["신발"] },
  ]);
  // The form in which get_option saves the Context IDs of one option.
  const one = Buffer.from(
    `${JSON.stringify({ _id: idOf("B"), name: "Football", op: "set", contexts: ["a|b", "00123"] })}\n`,
  );
  expect(await read(one, contextRows)).toEqual([{ _id: idOf("B"), calledName: "Football", set: ["a|b", "00123"] }]);
  expect(await read(one, optionRows)).toEqual([{ _id: idOf("B"), name: "Football", contexts: ["a|b", "00123"] }]);
  const { desired, problems } = await readDesired({ bytes: one, format: "ndjson", folder: undefined });
  expect(problems).toEqual([]);
  const thresholds = { maxChangePercent: 100, maxDeletes: 500 };
  const plan = planOf({ desired, there: state, prune: false, byName: false, thresholds, base: undefined });
  expect(plan).toMatchObject({ problems: [], items: [] });
});
