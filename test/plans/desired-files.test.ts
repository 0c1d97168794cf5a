import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { writtenSheet } from "../../src/files/save-file.ts";
import { readDesired } from "../../src/plans/file/read-desired.ts";

const A = "01J0000000000000000000000A";
const B = "01J0000000000000000000000B";

async function read(format: "yaml" | "json" | "csv" | "ndjson", text: string, folder?: string) {
  const { desired, problems } = await readDesired({ bytes: Buffer.from(text), format, folder });
  return { desired, problems };
}

/** Reads a file without problems. Returns its options, without their positions in the file. */
async function options(format: "yaml" | "json" | "csv" | "ndjson", text: string, folder?: string) {
  const { desired, problems } = await read(format, text, folder);
  expect(problems).toEqual([]);
  return desired.options.map(({ _id, name, parent, type, exposeChildren, contexts }) => ({
    ...(_id !== undefined && { _id }),
    ...(name !== undefined && { name }),
    parent,
    ...(type !== undefined && { type }),
    ...(exposeChildren !== undefined && { exposeChildren }),
    ...(contexts !== undefined && { contexts }),
  }));
}

const exactly = (...ids: string[]) => ({ ids, atLeast: false });

test("YAML: the tree, its fields, and texts that look like something else", async () => {
  const text = `# a comment
version: 1
targeting: { _id: ${A.toLowerCase()}, name: Spring }
options:
  - _id: ${B}
    name: Running Shoes
    contexts: [c1, 007, 1e3, no, null, 0x1F, 2024-01-01, ' c1 ']
  - name: Seasonal
    exposeChildren: true
    children:
      - name: 007
        contextsAtLeast: [~, yes]
      - name: null
        type: atomic
  - {name: Empty one, contexts: []}
  - name: Group of none
    children: []
`;
  const { desired, problems } = await read("yaml", text);
  expect(problems).toEqual([]);
  expect(desired.targeting).toEqual({ line: 3, column: 47, _id: A, name: "Spring" });
  expect(await options("yaml", text)).toEqual([
    {
      _id: B,
      name: "Running Shoes",
      parent: { kind: "top" },
      contexts: exactly("c1", "007", "1e3", "no", "null", "0x1F", "2024-01-01"),
    },
    { name: "Seasonal", parent: { kind: "top" }, type: "collection", exposeChildren: true },
    { name: "007", parent: { kind: "row", row: 1 }, contexts: { ids: ["~", "yes"], atLeast: true } },
    { name: "null", parent: { kind: "row", row: 1 }, type: "atomic" },
    { name: "Empty one", parent: { kind: "top" }, contexts: exactly() },
    { name: "Group of none", parent: { kind: "top" }, type: "collection" },
  ]);
  expect(desired.options.map(({ line, column }) => [line, column])).toEqual([
    [5, 5],
    [8, 5],
    [11, 9],
    [13, 9],
    [15, 5],
    [16, 5],
  ]);
});

test("YAML: an alias stands for what its anchor marks", async () => {
  const text = `version: 1
options:
  - name: One
    contexts: &shared [a, b]
  - name: Two
    contexts: *shared
`;
  expect(await options("yaml", text)).toMatchObject([{ contexts: exactly("a", "b") }, { contexts: exactly("a", "b") }]);
});

test("JSON, with a byte order mark and Windows line ends", async () => {
  const text = `\uFEFF{\r\n  "$schema": "x",\r\n  "version": 1,\r\n  "options": [{"name": "One", "contexts": ["a"]}]\r\n}`;
  expect(await options("json", text)).toEqual([{ name: "One", parent: { kind: "top" }, contexts: exactly("a") }]);
});

test("NDJSON: what a first line says, and where parents are", async () => {
  const text = `{"version":1,"targeting":{"name":"Spring"}}
{"name":"Group","type":"collection","parentName":null,"exposeChildren":false}

{"_id":"${A}","parentName":"Group","contexts":["a"]}
{"name":"Kept","parentName":""}
{"name":"Top","parentName":[]}`;
  expect(await options("ndjson", text)).toEqual([
    { name: "Group", parent: { kind: "top" }, type: "collection", exposeChildren: false },
    { _id: A, parent: { kind: "name", name: "Group" }, contexts: exactly("a") },
    { name: "Kept", parent: { kind: "keep" } },
    { name: "Top", parent: { kind: "top" } },
  ]);
  expect((await read("ndjson", '{"name":"No head"}')).problems).toEqual([]);
});

test("CSV: blank keeps, [] is none, and a cell in brackets is a list", async () => {
  const text = `\uFEFFname,_id,parentName,contexts,exposeChildren,type\r
Shoes,${A},,a|b | a,,\r
"Seasonal",,[],[],TRUE,collection\r
Easter,,Seasonal,"[""x|y"", ""z\\nz""]",,atomic\r
\r
Kept,,,,,\r
`;
  expect(await options("csv", text)).toEqual([
    {
      ...{ _id: A, name: "Shoes", parent: { kind: "keep" } },
      contexts: { ...exactly("a", "b"), split: { cells: ["a|b | a"], separator: "|" } },
    },
    { name: "Seasonal", parent: { kind: "top" }, type: "collection", exposeChildren: true, contexts: exactly() },
    { name: "Easter", parent: { kind: "name", name: "Seasonal" }, type: "atomic", contexts: exactly("x|y", "z\nz") },
    { name: "Kept", parent: { kind: "keep" } },
  ]);
});

test("what a spreadsheet may have made is kept to be looked up", async () => {
  const { desired, problems } = await read("csv", "name,contexts\n#NAME?,1.23E+15|TRUE|ok\n");
  expect(problems).toEqual([]);
  expect(desired.suspects).toEqual([
    { line: 2, column: 8, text: "1.23E+15", field: "contexts" },
    { line: 2, column: 8, text: "TRUE", field: "contexts" },
    { line: 2, column: 1, text: "#NAME?", field: "name" },
  ]);
});

test("contextsFile: one Context ID a line, beside the file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "desired-"));
  mkdirSync(join(folder, "lists"));
  writeFileSync(join(folder, "lists", "christmas.txt"), "\uFEFFa\r\n\r\n  b \r\na\n");
  const text = `version: 1\noptions:\n  - {name: One, contextsFile: lists/christmas.txt}\n`;
  expect(await options("yaml", text, folder)).toMatchObject([{ contexts: exactly("a", "b") }]);
  expect(await options("csv", "name,contextsFile\nOne,lists/christmas.txt\n", folder)).toMatchObject([
    { contexts: exactly("a", "b") },
  ]);
});

test("contextsFile: a Context ID that a spreadsheet may have damaged is kept to be looked up, with its line", async () => {
  const folder = mkdtempSync(join(tmpdir(), "desired-"));
  writeFileSync(join(folder, "ids.csv"), "article-1\n1.23E+15\n");
  const { desired, problems } = await read("csv", "name,contextsFile\nOne,ids.csv\n", folder);
  expect(problems).toEqual([]);
  const place = ' (line 2 of "ids.csv")';
  expect(desired.suspects).toEqual([{ line: 2, column: 5, text: "1.23E+15", field: "contexts", place }]);
  // Another problem prevents the plan, so that the text is not looked up but reported.
  const both = await read("csv", "name,contextsFile\nOne,ids.csv\nOne,\n", folder);
  expect(both.problems.map(({ message }) => message)).toContainEqual(
    expect.stringMatching(/^"1\.23E\+15" in contexts \(line 2 of "ids\.csv"\) was turned into scientific notation/),
  );
});

/** Returns a folder with the files `a.txt` (a1, a2) and `b.txt` (b1). */
function folderOfLists(): string {
  const folder = mkdtempSync(join(tmpdir(), "desired-"));
  writeFileSync(join(folder, "a.txt"), "a1\na2\n");
  writeFileSync(join(folder, "b.txt"), "b1\n");
  return folder;
}

test.each([
  ["name,contextId,contextsFile\nOne,a,\nOne,,a.txt\nTwo,b,\n", ["a", "a1", "a2"]],
  ["name,contextId,contextsFile\nOne,,a.txt\nOne,a,\nOne,,b.txt\nTwo,b,\n", ["a", "a1", "a2", "b1"]],
  [`_id,name,contexts,contextsFile\n${A},One,a,\n${A},One,,a.txt\n,Two,b,\n`, ["a", "a1", "a2"]],
])("contextsFile in one of several rows of an option adds to their Context IDs: %j", async (text, ids) => {
  expect(await options("csv", text, folderOfLists())).toMatchObject([
    { name: "One", contexts: exactly(...ids) },
    { name: "Two", contexts: exactly("b") },
  ]);
});

const removing = (...ids: string[]) => ({ ids: [], atLeast: true, remove: ids });

test("contextsFile: its Context IDs are set, added or removed as the row says", async () => {
  const folder = folderOfLists();
  const wished = [
    { contexts: removing("a1", "a2") },
    { contexts: { ids: ["a1", "a2"], atLeast: true } },
    { contexts: exactly("a1", "a2") },
    { contexts: exactly("a1", "a2") },
  ];
  const rows = ["Remove", "Add", "Set", ""];
  const sheet = `name,contextsFile,op\n${rows.map((op, at) => `Option ${at},a.txt,${op}\n`).join("")}`;
  expect(await options("csv", sheet, folder)).toMatchObject(wished);
  const lines = rows.map((op, at) => ({ name: `Option ${at}`, contextsFile: "a.txt", ...(op !== "" && { op }) }));
  expect(await options("ndjson", lines.map((line) => JSON.stringify(line)).join("\n"), folder)).toMatchObject(wished);
  const cells = async function* () {
    yield { cells: ["Option", "contextsFile", "Context Action"] };
    yield* rows.map((op, at) => ({ cells: [`Option ${at}`, "a.txt", op] }));
  };
  const pieces: Uint8Array[] = [];
  for await (const piece of writtenSheet({ name: "Options", above: 0, rows: cells() }, { format: "xlsx" })) {
    pieces.push(Buffer.from(piece));
  }
  const bytes = Buffer.concat(pieces);
  const { desired, problems } = await readDesired({ bytes, format: "xlsx", folder });
  expect([desired.options, problems]).toMatchObject([wished, []]);
});

test("contextsFile: rows of one option add and remove, but do not mix Set with Add or Remove", async () => {
  const folder = folderOfLists();
  const head = "name,contextId,contextsFile,op\n";
  expect(await options("csv", `${head}One,a,,Add\nOne,,b.txt,Remove\nOne,,a.txt,Add\n`, folder)).toMatchObject([
    { contexts: { ids: ["a", "a1", "a2"], atLeast: true, remove: ["b1"] } },
  ]);
  const { problems } = await read("csv", `${head}One,a,,\nOne,,a.txt,Remove\n`, folder);
  expect(problems).toMatchObject([{ line: 3, lines: [2, 3], message: expect.stringContaining("mix Set with Add") }]);
});

test.each([
  [
    "csv",
    "name,contextsFile,op\nOne,a.txt,Drop\n",
    { line: 2, column: 11, message: /Context Action "Drop" is not known/ },
  ],
  ["csv", "name,contextsFile,op\nOne,,Drop\n", { line: 2, column: 6, message: /Context Action "Drop" is not known/ }],
  ["ndjson", '{"name":"One","contextsFile":"a.txt","op":"drop"}', { line: 1, column: 38, message: /op "drop" is not/ }],
] as const)("contextsFile with an unknown action is a problem: %s", async (format, text, { message, ...spot }) => {
  const { problems } = await read(format, text, folderOfLists());
  expect(problems).toEqual([expect.objectContaining({ ...spot, message: expect.stringMatching(message) })]);
});

test.each([
  ["../outside.txt", /\.\./],
  ["/etc/hostname", /not a relative path/],
  ["missing.txt", /no file/],
  ["link.txt", /link/],
  ["bad.txt", /line 2 of "bad.txt"/],
])("contextsFile %s is refused", async (path, message) => {
  const folder = mkdtempSync(join(tmpdir(), "desired-"));
  writeFileSync(join(folder, "bad.txt"), `a\n${"x".repeat(257)}\n`);
  symlinkSync("/etc/hostname", join(folder, "link.txt"));
  const text = `version: 1\noptions:\n  - name: One\n    contextsFile: ${path}\n`;
  const { problems } = await read("yaml", text, folder);
  expect(problems).toEqual([expect.objectContaining({ line: 4, column: 5, message: expect.stringMatching(message) })]);
});

test("contextsFile without a file beside which it could lie is refused", async () => {
  const { problems } = await read("ndjson", '{"name":"One","contextsFile":"a.txt"}');
  expect(problems).toMatchObject([{ line: 1, column: 15 }]);
});

test("every problem of a file is told at once, by line and column", async () => {
  const text = `version: 1
options:
  - name: x
    contexts: nothing
  - name: Twice
    colour: red
  - name: Twice
    _id: abc
    contexts: [a]
    contextsAtLeast: [b]
  - just a text
`;
  const { problems } = await read("yaml", text);
  expect(problems.map(({ line, column }) => [line, column])).toEqual([
    [3, 5],
    [4, 5],
    [6, 5],
    [7, 5],
    [8, 5],
    [10, 5],
    [11, 5],
  ]);
  expect(problems[3]).toMatchObject({ lines: [5, 7] });
  for (const { message, remedy } of problems) {
    expect(message).not.toBe("");
    expect(remedy).not.toBe("");
  }
});

test("the file that the page shows is read", async () => {
  const page = readFileSync(new URL("../../docs/reference/desired-state.md", import.meta.url), "utf8");
  const [, text = ""] = /```yaml[^\n]*\n([\s\S]*?)```/.exec(page) ?? [];
  const folder = mkdtempSync(join(tmpdir(), "desired-"));
  writeFileSync(join(folder, "christmas.txt"), "c8\n");
  expect((await options("yaml", text, folder)).map(({ name }) => name)).toEqual([
    "Running Shoes",
    "Seasonal",
    "Easter",
    "Christmas",
  ]);
});

test("a field that only sheets have is a problem that says what to do instead", async () => {
  const { problems } = await read(
    "yaml",
    "version: 1\noptions:\n  - {name: Hats, parentName: Season, action: Remove}\n",
  );
  expect(problems.map(({ message, remedy }) => [message, remedy.split(". ")[0]])).toEqual([
    ['"parentName" is not a field of an option', "List the option in the children of its group instead"],
    [
      '"action" is not a field of an option',
      "To delete an option, leave it out and use prune, or use a sheet with a column Action",
    ],
  ]);
});

test.each([
  ["ndjson", '{"name":"Hats","parent":"Season"}', "parent", "option", "Write the name of the group in parentName"],
  [
    "json",
    '{"version":1,"options":[{"name":"Season","children":[{"name":"Hats","parentName":"Season"}]}]}',
    "parentName",
    "sub-option",
    "Leave the field out: the sub-option belongs to the group whose children list it",
  ],
  [
    "yaml",
    "version: 1\noptions:\n  - name: Season\n    children:\n      - {name: Hats, parent: Season}\n",
    "parent",
    "sub-option",
    "Leave the field out: the sub-option belongs to the group whose children list it",
  ],
] as const)("the group of an option in %s: what to write instead of a wrong field (%s)", async (...row) => {
  const [format, text, field, what, advice] = row;
  const { problems } = await read(format, text);
  expect(problems).toMatchObject([
    { message: `${JSON.stringify(field)} is not a field of ${what === "option" ? "an" : "a"} ${what}` },
  ]);
  expect(problems[0]?.remedy.split(". ")[0]).toBe(advice);
});
