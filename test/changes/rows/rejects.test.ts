import { expect, test } from "vitest";
import { contextRows, optionRows } from "../../../src/changes/rows/input-rows.ts";
import type { Format } from "../../../src/files/input-file.ts";
import { rejectedRows, resultRows } from "../../../src/files/result-sheet.ts";
import { type FailedObject, type RowShape, rowsOf } from "../../../src/files/rows.ts";
import { contentOf } from "../../files/content.ts";

async function rejected<Item>(shape: RowShape<Item>, content: string, failed: readonly FailedObject[], format: Format) {
  const byIndex = new Map<number, FailedObject[]>();
  for (const one of failed) byIndex.set(one.about.index, [...(byIndex.get(one.about.index) ?? []), one]);
  let text = "";
  const file = { format, encoding: "utf-8", digest: "" } as const;
  const words = ({ code }: { readonly code: string }) => code;
  for await (const piece of rejectedRows(contentOf(content), file, shape, { failed: byIndex, words })) text += piece;
  return text;
}

test("every row of an option that failed comes back, in the columns of the file", async () => {
  const content = 'contextId,name,\na,News,\nb,Sport,\nc,News,\n"d, e",News,\n';
  const failed = [{ about: { index: 0 }, reason: { code: "TAKEN" } }];
  expect(await rejected(optionRows, content, failed, "csv")).toBe(
    '\uFEFFcontextId,name,,reason\r\na,News,,TAKEN\r\nc,News,,TAKEN\r\n"d, e",News,,TAKEN\r\n',
  );
});

test("the reason of an earlier reject file is replaced", async () => {
  const failed = [{ about: { index: 0 }, reason: { code: "TAKEN" } }];
  expect(await rejected(optionRows, "reason,name\nold,News\nold,Sport\n", failed, "csv")).toBe(
    "\uFEFFreason,name\r\nTAKEN,News\r\n",
  );
});

test("of a group that was made, the sub-options that failed come back as its sub-options", async () => {
  const group = {
    name: "Ball games",
    contexts: ["b"],
    children: [{ name: "x" }, { name: "Golf" }, { name: "y", contexts: ["c"] }],
  };
  const failed = [
    { about: { index: 0, child: 0 }, reason: { code: "SHORT" } },
    { about: { index: 0, child: 2 }, reason: { code: "SHORT" } },
  ];
  expect(await rejected(optionRows, JSON.stringify([group]), failed, "json")).toBe(
    '{"name":"x","parentName":"Ball games","reason":"SHORT"}\n{"name":"y","contexts":["c"],"parentName":"Ball games","reason":"SHORT"}\n',
  );
  const whole = [
    { about: { index: 0 }, reason: { code: "TAKEN" } },
    { about: { index: 0, child: 1 }, reason: { code: "NEEDS" } },
  ];
  expect(await rejected(optionRows, JSON.stringify(group), whole, "ndjson")).toBe(
    `${JSON.stringify({ ...group, reason: "TAKEN" })}\n`,
  );
});

test("of several options of a change, those that failed come back", async () => {
  const change = '{"_ids":["1","2","3"],"names":["News"],"add":["a"]}\n{oops\n';
  const failed = [
    { about: { index: 0, _id: "2" }, reason: { code: "GONE" } },
    { about: { index: 0, name: "News" }, reason: { code: "UNKNOWN" } },
  ];
  expect(await rejected(contextRows, change, failed, "ndjson")).toBe(
    '{"_id":"2","add":["a"],"reason":"GONE"}\n{"name":"News","add":["a"],"reason":"UNKNOWN"}\n{"row":"{oops","reason":"INVALID_ROW"}\n',
  );
});

test("formulas in headings, cells and reasons are made inert, and read again as they were", async () => {
  const content = "-name,=cmd|x,contextId\n=1+1,+x,-5\n";
  const failed = [{ about: { index: 0 }, reason: { code: "=TAKEN" } }];
  const first = await rejected(optionRows, content, failed, "csv");
  expect(first).toBe("\uFEFF'-name,'=cmd|x,contextId,reason\r\n'=1+1,'+x,-5,'=TAKEN\r\n");
  expect(await rejected(optionRows, first, failed, "csv")).toBe(first);
  const names: unknown[] = [];
  const file = { format: "csv", encoding: "utf-8", digest: "" } as const;
  for await (const rows of rowsOf(contentOf(first), file, optionRows)) {
    names.push(...rows.map(({ content }) => ("item" in content ? content.item.name : content.reason)));
  }
  expect(names).toEqual(["=1+1"]);
});

test("formulas in the headings of a sheet with results are made inert in a text file", async () => {
  const written = async (format: "csv" | "xlsx") => {
    const source = {
      bytes: contentOf("name,=cmd|x\n=1+1,+x\n"),
      file: { format: "csv", encoding: "utf-8" },
      shape: optionRows,
      keyReader: () => () => undefined,
      resultOf: () => ({ result: "Failed" }),
      columns: ["result"],
    } as const;
    const rows: unknown[] = [];
    for await (const { cells } of resultRows(source, { format, delimiter: "," })) rows.push(cells);
    return rows;
  };
  expect(await written("csv")).toEqual([
    ["name", "'=cmd|x", "Result"],
    ["'=1+1", "'+x", "Failed"],
  ]);
  expect(await written("xlsx")).toEqual([
    ["name", "=cmd|x", "Result"],
    ["=1+1", "+x", "Failed"],
  ]);
});
