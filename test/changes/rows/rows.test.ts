import { describe, expect, test } from "vitest";
import { problemOf, readContextFile, readOptionFile } from "../../files/content.ts";

describe("files of options", () => {
  test("rows of one option are merged under the first, also from far apart", async () => {
    const given = await readOptionFile("name,contextId,parentName,type\nNews,n1,,\nSport,s1,,\nNews,n2,,\nNews,n1,,\n");
    expect(given).toEqual([
      { index: 0, line: 2, merged: 2, joined: [4, 5], item: { name: "News", contexts: ["n1", "n2", "n1"] } },
      { index: 1, line: 3, item: { name: "Sport", contexts: ["s1"] } },
    ]);
  });

  test("several Context IDs stand in one cell; such rows are not merged", async () => {
    const given = await readOptionFile('contexts,name\n"a | b||c",News\nd,News\n,Sport\n');
    expect(given).toMatchObject([
      { item: { name: "News", contexts: ["a", "b", "c"] } },
      { item: { name: "News", contexts: ["d"] } },
      { item: { name: "Sport", contexts: [] } },
    ]);
  });

  test("groups and sub-options", async () => {
    const given = await readOptionFile(
      "name,type,parentName,exposeChildren\nBall games,collection,,TRUE\nFootball,,Ball games,\n",
    );
    expect(given).toMatchObject([
      { item: { name: "Ball games", type: "collection", exposeChildren: true } },
      { item: { name: "Football", parentName: "Ball games" } },
    ]);
  });

  test("lines count the breaks inside quotes and the empty lines; rows do not", async () => {
    const given = await readOptionFile('\uFEFFname,contextId\r\n"Two\r\nlines",a\r\n\r\nNews,b\r\n,\r\nSport,c');
    expect(given.map(({ index, line }) => [index, line])).toEqual([
      [0, 2],
      [1, 5],
      [2, 7],
    ]);
  });

  test.each(["1.23E+15", "1,23457E+15", "9E+20", "1.2e+15"])(
    "%s is refused as what a spreadsheet made of a number",
    async (contextId) => {
      const [row] = await readOptionFile(`name,contextId\nNews,"${contextId}"\n`);
      expect(problemOf(row)).toBe("damaged");
    },
  );

  test.each(["1E5", "E+15", "12.5E+15", "1.23E+15x"])("%s is a Context ID", async (contextId) => {
    const [row] = await readOptionFile(`name,contextId\nNews,${contextId}\n`);
    expect(row).toMatchObject({ item: { contexts: [contextId] } });
  });

  test("a row that cannot be used fails alone", async () => {
    const given = await readOptionFile(
      `name,contextId,type\nNews,a,\nNews,${"x".repeat(257)},\nNews,b,folder\nNews,c,,more\nNews,d,\n`,
    );
    expect(given.map(problemOf)).toEqual([undefined, "INVALID_CONTEXT_ID", "type", "tooManyCells"]);
    expect(given[0]).toMatchObject({ item: { contexts: ["a", "d"] } });
  });

  test("rows of one option may not disagree", async () => {
    const given = await readOptionFile("name,contextId,parentName\nNews,a,One\nNews,b,Two\nNews,c,\n");
    expect(given.map(problemOf)).toEqual([undefined, "rowsDisagree"]);
    expect(given[0]).toMatchObject({ item: { contexts: ["a", "c"], parentName: "One" } });
  });

  test("the header is checked", async () => {
    await expect(readOptionFile("title,colour\nNews,red\n")).rejects.toThrow(
      'header was read from line 1: "title", "colour"',
    );
    await expect(readOptionFile("contextId\na\n")).rejects.toThrow('the file has no column for name ("Option")');
    await expect(readOptionFile("name,name\na,b\n")).rejects.toThrow(
      '"name", "name" on line 1 of the file are all read as the column name',
    );
    await expect(readOptionFile("name,contextId,contexts\na,b,c\n")).rejects.toThrow("both columns");
    await expect(readOptionFile("")).rejects.toThrow("the file is empty");
    await expect(readOptionFile('name\nNews\n"Sp"ort\n')).rejects.toThrow("line 3");
  });

  test("the column of a reject file is passed over", async () => {
    expect(await readOptionFile("name,reason\nNews,it was bad\n")).toMatchObject([{ item: { name: "News" } }]);
    const [row] = await readOptionFile('{"name":"News","reason":"it was bad"}', { format: "ndjson" });
    expect(row).toMatchObject({ item: { name: "News" } });
  });
});

describe.each([
  ["ndjson", (rows: readonly string[]) => `${rows.join("\n")}\n`],
  ["json", (rows: readonly string[]) => `[\n${rows.join(",\n")}\n]\n`],
] as const)("%s", (format, file) => {
  test("rows are items", async () => {
    const rows = [
      '{"name":"News","contexts":["a,]}\\"","b"],"children":[{"name":"Local","contexts":["c"]}]}',
      '{"name":"Sport","parentName":"News"}',
      '{"name":"Sport","colour":"red"}',
      '{"name":1}',
      '"text"',
      "{oops",
    ].slice(0, format === "json" ? 5 : 6);
    const given = await readOptionFile(file(rows), { format });
    expect(given.map(({ index }) => index)).toEqual(rows.map((_, index) => index));
    expect(given.map(({ line }) => line)).toEqual(rows.map((_, index) => index + (format === "json" ? 2 : 1)));
    expect(given[0]).toMatchObject({ item: { contexts: ['a,]}"', "b"], children: [{ name: "Local" }] } });
    expect(given[1]).toMatchObject({ item: { name: "Sport", parentName: "News" } });
    expect(given.slice(2).map(problemOf)).toEqual(
      ["unknownField", "fieldType", "noObject", "notJson"].slice(0, format === "json" ? 3 : 4),
    );
  });
});

test.each([
  ["{}", "array"],
  ["", "the file is empty"],
  ["[{}", "array"],
  ['[{"name":"a"}] x', "array"],
  ['"text"', "array"],
])("a .json file that is not an array is refused: %s", async (text, message) => {
  await expect(readOptionFile(text, { format: "json" })).rejects.toThrow(message);
});

describe("files of changes", () => {
  test("rows of one option and one op are merged", async () => {
    const given = await readContextFile("_id,op,contextId\n1,add,a\n1,remove,b\n1,add,c\n2,set,d\n2,set,e\n3,set,[]\n");
    expect(given).toMatchObject([
      { index: 0, item: { _id: "1", add: ["a", "c"] } },
      { index: 1, item: { _id: "1", remove: ["b"] } },
      { index: 3, item: { _id: "2", set: ["d", "e"] } },
      { index: 5, item: { _id: "3", set: [] } },
    ]);
  });

  test("an option is meant by its _id, else by its name", async () => {
    const given = await readContextFile("_id,name,op,contexts\n1,One,add,a|b\n,Two,add,c\n");
    expect(given.map((row) => "item" in row && row.item)).toEqual([
      { _id: "1", calledName: "One", add: ["a", "b"], split: { cells: ["a|b"], separator: "|" } },
      { name: "Two", add: ["c"] },
    ]);
  });

  test("a bad row fails alone, but spoils a set", async () => {
    const given = await readContextFile(
      "_id,op,contextId\n1,add,a\n1,add,1.2E+15\n2,set,b\n2,set,1.2E+15\n2,set,c\n3,drop,x\n3,add,\n,set,\n",
    );
    expect(given.map((row) => [row.index, problemOf(row)])).toEqual([
      [0, undefined],
      [1, "damaged"],
      [2, "spoilt"],
      [3, "damaged"],
      [5, "op"],
      [6, "noContextId"],
    ]);
    expect(problemOf((await readContextFile("_id,op,contexts\n,set,a\n"))[0])).toBe("noOption");
  });

  test("a row without an option is not added to the option above if it names another group", async () => {
    const given = await readContextFile(
      "name,parentName,contextId,op\nOne,Kids,a,add\n,,b,add\n,Kids,c,add\n,Moms,d,add\nTwo,,e,set\n,Moms,f,set\n,Dads,g,set\n",
    );
    expect(given.map((row) => [row.line, problemOf(row)])).toEqual([
      [2, undefined],
      [5, "otherGroup"],
      [6, "spoilt"],
      [8, "otherGroup"],
    ]);
    expect(given[0]).toMatchObject({ item: { name: "One", add: ["a", "b", "c"] } });
  });

  test("an Action that may be about Context IDs fails, unless a column Context Action says what to do with them", async () => {
    const given = await readContextFile("_id,Action,contexts\n1,Set,a\n1,remove,b\n1,추가,c\n1,Edit,d\n2,,e\n");
    expect(given.map(problemOf)).toEqual([...Array<string>(3).fill("actionElsewhere"), undefined, undefined]);
    const both = await readContextFile("_id,Action,op,contexts\n1,Set,set,a\n1,Add,set,b\n");
    expect(both.map(problemOf)).toEqual([undefined, "actionElsewhere"]);
  });

  test("the option is needed; Context IDs are added where nothing else is said", async () => {
    expect(await readContextFile("_id,contextId\n1,a\n")).toMatchObject([{ item: { _id: "1", add: ["a"] } }]);
    await expect(readContextFile("op,contextId\nadd,a\n")).rejects.toThrow(
      'the file has no column for _id ("Option ID") or name ("Option")',
    );
  });
});
