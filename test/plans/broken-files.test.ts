import { expect, test } from "vitest";
import { readDesired } from "../../src/plans/file/read-desired.ts";

// A hundred files that cannot be planned from, each with the place and the words of its (first) problem.

const A = "01J0000000000000000000000A";
const HEAD = "version: 1\noptions:\n";
const many = (count: number, of: (index: number) => string): string =>
  Array.from({ length: count }, (_, at) => of(at)).join("");
const utf16 = (text: string): Buffer => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, "utf16le")]);

type Format = "yaml" | "json" | "csv" | "ndjson";
type Broken = readonly [name: string, content: string | Buffer, line: number, column: number, words: RegExp];

const YAML: readonly Broken[] = [
  ["an empty file", "", 1, 1, /empty/],
  ["comments alone", "# nothing\n# at all\n", 1, 1, /empty/],
  ["a text", "hello\n", 1, 1, /a text stands here/],
  ["a list", "- name: One\n", 1, 1, /a list stands here/],
  ["no version", "options: []\n", 1, 1, /version is missing/],
  ["version 2", "version: 2\noptions: []\n", 1, 1, /version "2" is not known/],
  ["a version in quotes", 'version: "1"\noptions: []\n', 1, 1, /version "1" is not known/],
  ["version 1.0", "version: 1.0\noptions: []\n", 1, 1, /version "1.0" is not known/],
  ["a version that is a list", "version: [1]\noptions: []\n", 1, 1, /version a list/],
  ["no options", "version: 1\ntargeting: {name: Spring}\n", 1, 1, /options is missing/],
  ["options that are nothing", "version: 1\noptions:\n", 2, 1, /options must be a list, and nothing/],
  ["options that are an object", "version: 1\noptions:\n  name: One\n", 2, 1, /options must be a list, and an object/],
  ["an unknown key at the top", "version: 1\noptions: []\nprune: true\n", 3, 1, /"prune" is no field/],
  [
    "an unknown key of the targeting",
    "version: 1\ntargeting:\n  id: x\noptions: []\n",
    3,
    3,
    /"id" is no field of targeting/,
  ],
  ["a targeting that is a text", "version: 1\ntargeting: Spring\noptions: []\n", 2, 1, /targeting must have/],
  ["a targeting that is nothing", "version: 1\ntargeting:\noptions: []\n", 2, 1, /targeting must have/],
  ["an empty targeting", "version: 1\ntargeting: {}\noptions: []\n", 2, 1, /neither _id nor name/],
  ["a targeting with a bad ID", "version: 1\ntargeting: {_id: 12}\noptions: []\n", 2, 13, /no ID/],
  ["a targeting with a bad name", "version: 1\ntargeting: {name: S}\noptions: []\n", 2, 13, /at least 2/],
  ["the same key twice at the top", "version: 1\noptions: []\noptions: []\n", 3, 1, /on line 2 and on line 3/],
  ["the same key twice in an option", `${HEAD}  - name: One\n    name: Two\n`, 4, 5, /"name" stands twice/],
  ["the same name twice", `${HEAD}  - name: One\n  - name: One\n`, 4, 5, /on line 3 and on line 4/],
  [
    "the same name twice, once below a group",
    `${HEAD}  - name: One\n    children:\n      - name: One\n`,
    5,
    9,
    /on line 3 and on line 5/,
  ],
  ["the same _id twice", `${HEAD}  - _id: ${A}\n  - _id: ${A.toLowerCase()}\n`, 4, 5, /on line 3 and on line 4/],
  ["a short name", `${HEAD}  - name: x\n`, 3, 5, /has 1 character, /],
  ["a long name", `${HEAD}  - name: ${"x".repeat(37)}\n`, 3, 5, /has 37 characters/],
  ["a name with a dot", `${HEAD}  - name: a.b\n`, 3, 5, /not allowed: "\."/],
  ["a name with Japanese letters", `${HEAD}  - name: 靴靴\n`, 3, 5, /not allowed: "靴"/],
  ["a name with a space at its end", `${HEAD}  - name: "One "\n`, 3, 5, /begins or ends with a space/],
  ["a name that is nothing", `${HEAD}  - name:\n`, 3, 5, /nothing stands here/],
  ["a name that is a list", `${HEAD}  - name: [One]\n`, 3, 5, /a list stands here/],
  ["an option without a name", `${HEAD}  - contexts: [a]\n`, 3, 5, /neither _id nor name/],
  ["an option that is a text", `${HEAD}  - Running Shoes\n`, 3, 5, /must be an object/],
  ["an option that is nothing", `${HEAD}  -\n`, 3, 4, /must be an object/],
  ["a bad _id", `${HEAD}  - _id: 01J\n    name: One\n`, 3, 5, /no ID of the service/],
  ["contexts that are a text", `${HEAD}  - name: One\n    contexts: c1\n`, 4, 5, /must be a list/],
  ["contexts that are nothing", `${HEAD}  - name: One\n    contexts:\n`, 4, 5, /nothing stands here/],
  ["contexts that are null", `${HEAD}  - name: One\n    contexts: null\n`, 4, 5, /must be a list/],
  ["an empty Context ID", `${HEAD}  - name: One\n    contexts: [a, ""]\n`, 4, 19, /Context ID is empty/],
  ["a Context ID that is nothing", `${HEAD}  - name: One\n    contexts:\n      -\n`, 5, 8, /nothing stands here/],
  ["a Context ID that is a list", `${HEAD}  - name: One\n    contexts: [[a]]\n`, 4, 16, /a list stands here/],
  ["a long Context ID", `${HEAD}  - name: One\n    contexts: [${"가".repeat(86)}]\n`, 4, 16, /has 258 bytes/],
  ["half a character", `${HEAD}  - name: One\n    contexts: ["\\ud800"]\n`, 4, 16, /half of a character/],
  [
    "contexts beside contextsAtLeast",
    `${HEAD}  - name: One\n    contexts: []\n    contextsAtLeast: []\n`,
    5,
    5,
    /both contexts and contextsAtLeast/,
  ],
  ["contexts beside contextsFile", `${HEAD}  - name: One\n    contextsFile: a\n    contexts: []\n`, 4, 5, /./],
  ["a type that is none", `${HEAD}  - name: One\n    type: group\n`, 4, 5, /no type of an option/],
  ["exposeChildren: yes", `${HEAD}  - name: One\n    exposeChildren: yes\n    children: []\n`, 4, 5, /true or false/],
  [
    "exposeChildren in quotes",
    `${HEAD}  - name: One\n    exposeChildren: "true"\n    children: []\n`,
    4,
    5,
    /true or false/,
  ],
  ["children that are an object", `${HEAD}  - name: One\n    children: {name: Two}\n`, 4, 5, /children must be a list/],
  [
    "a group below a group",
    `${HEAD}  - name: One\n    children:\n      - name: Two\n        children: []\n`,
    6,
    9,
    /below a group/,
  ],
  [
    "exposeChildren of a sub-option",
    `${HEAD}  - name: One\n    children:\n      - name: Two\n        exposeChildren: true\n`,
    6,
    9,
    /below a group/,
  ],
  ["parentName in a tree", `${HEAD}  - name: One\n    parentName: Two\n`, 4, 5, /"parentName" is no field/],
  ["a tab for indentation", `${HEAD}\t- name: One\n`, 3, 1, /[Tt]ab/],
  ["a tab between", `${HEAD}  - name: One\n\t contexts: []\n`, 4, 1, /[Tt]ab/],
  ["a list that does not end", `${HEAD}  - name: One\n    contexts: [a, b\n`, 5, 1, /YAML cannot be read/],
  ["quotes that do not end", `${HEAD}  - name: "One\n`, 4, 1, /YAML cannot be read/],
  ["a colon too many", `${HEAD}  - name: One: Two\n`, 3, 11, /YAML cannot be read/],
  ["wrong indentation", `${HEAD}  - name: One\n   contexts: []\n`, 4, 1, /YAML cannot be read/],
  ["two documents", `${HEAD}  - name: One\n---\nversion: 1\n`, 4, 1, /second YAML document/],
  ["an alias without an anchor", `${HEAD}  - name: One\n    contexts: *none\n`, 4, 15, /has no anchor/],
  [
    "an alias of what it stands in",
    `${HEAD}  - &a\n    name: One\n    children: [*a]\n`,
    5,
    16,
    /repeats what it stands in/,
  ],
  ["a merge key", `${HEAD}  - &a {name: One}\n  - <<: *a\n    name: Two\n`, 4, 5, /merge key/],
  ["a custom tag", `${HEAD}  - !option {name: One}\n`, 3, 13, /tag/],
  ["a tag of YAML's own", `${HEAD}  - name: !!int 12\n`, 3, 17, /tag/],
  ["a key that is a list", `${HEAD}  - [a]: One\n`, 3, 5, /key is no text/],
  ["lists in lists", `${"[".repeat(5000)}${"]".repeat(5000)}`, 1, 21, /20 levels/],
  ["maps in maps", many(30, (at) => `${" ".repeat(at)}a:\n`), 21, 21, /20 levels/],
  [
    "a billion laughs",
    `a: &a [x,x,x,x,x,x,x,x,x,x]\n${many(9, (at) => `b${at}: &b${at} [${many(10, () => `*${at === 0 ? "a" : `b${at - 1}`},`)}]\n`)}`,
    6,
    9,
    /1,000,000 values/,
  ],
  ["5,001 options", HEAD + many(5001, (at) => `  - name: Option ${at}\n`), 5003, 5, /5,000 options/],
  ["50 MB", HEAD + many(1_700_000, (at) => `  - name: Option number ${at}\n`), 519_715, 1, /more than 16 MB/],
  [
    "a manifest of Kubernetes",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: x\n",
    1,
    1,
    /no desired state.*"apiVersion"/,
  ],
  ["a compose file", "services:\n  web:\n    image: x\n", 1, 1, /no desired state.*"services"/],
];

const JSON_FILES: readonly Broken[] = [
  ["an empty file", "", 1, 1, /value is missing/],
  ["a comment", '{\n  // no\n  "version": 1}', 2, 3, /no comments/],
  ["a comma too many", '{"version": 1,\n "options": [],}', 2, 16, /JSON cannot be read/],
  ["single quotes", "{'version': 1}", 1, 2, /JSON cannot be read/],
  ["no end", '{"version": 1, "options": [', 1, 28, /JSON cannot be read/],
  ["two values", '{"version": 1, "options": []}\n{}', 2, 1, /behind the end/],
  ["a line break in a text", '{"version": 1, "options": [{"name": "On\ne"}]}', 1, 37, /does not end|control/],
  ["a bad escape", '{"version": 1, "options": [{"name": "\\x"}]}', 1, 37, /escape/],
  ["undefined", '{"version": undefined}', 1, 13, /no JSON/],
  ["YAML under this name", "version: 1\noptions: []\n", 1, 1, /no JSON/],
  ["an array of rows", '[{"name": "One"}]', 1, 1, /a list stands here.*/],
  ["a name that is a number", '{"version":1,"options":[{"name":12}]}', 1, 26, /a number stands here/],
  ["a name that is null", '{"version":1,"options":[{"name":null}]}', 1, 26, /null stands here/],
  [
    "a Context ID that is a number",
    '{"version":1,"options":[{"name":"One","contexts":[7]}]}',
    1,
    51,
    /a number stands here/,
  ],
  ["contexts that are null", '{"version":1,"options":[{"name":"One","contexts":null}]}', 1, 39, /null stands here/],
  [
    "exposeChildren that is a text",
    '{"version":1,"options":[{"name":"One","children":[],"exposeChildren":"true"}]}',
    1,
    53,
    /true or false/,
  ],
  ["the same key twice", '{"version":1,\n"options":[],\n"version":1}', 3, 1, /on line 1 and on line 3/],
  ["100,000 arrays in each other", "[".repeat(100_000), 1, 21, /20 levels/],
  [
    "over a million values",
    `{"version":1,"options":[${many(1_000_001, () => "0,")}0]}`,
    1,
    2_000_019,
    /1,000,000 values/,
  ],
  [
    "a state of Terraform",
    '{"terraform_version": "1.9", "resources": []}',
    1,
    2,
    /no desired state.*"terraform_version"/,
  ],
  ["package.json", '{"name": "x", "dependencies": {}}', 1, 2, /no desired state.*"dependencies"/],
  ["UTF-16", utf16('{"version":1}'), 1, 1, /UTF-16/],
  [
    "bytes that are not UTF-8",
    Buffer.concat([Buffer.from('{"version":1,\n"a":"'), Buffer.from([0xb0, 0xa1])]),
    2,
    6,
    /not UTF-8/,
  ],
  ["a spreadsheet", Buffer.from("PK\u0003\u0004rest"), 1, 1, /spreadsheet/],
  ["a PDF", Buffer.from("%PDF-1.7"), 1, 1, /PDF/],
  ["binary data", Buffer.from([1, 2, 0, 3]), 1, 1, /binary/],
];

const NDJSON: readonly Broken[] = [
  ["an empty file", "\n\n", 1, 1, /empty/],
  ["a line that is no JSON", '{"name":"One"}\n{"name":\n', 2, 9, /value is missing/],
  ["a line that is a list", '["One"]', 1, 1, /a line must be an object/],
  ["an unknown version", '{"version":3}\n', 1, 2, /version 3 is not known/],
  ["a head without version", '{"targeting":{"name":"Spring"}}', 1, 1, /version is missing/],
  ["a head in the middle", '{"name":"One"}\n{"version":1}', 2, 1, /neither _id nor name/],
  ["an unknown field", '{"name":"One","parent":"x"}', 1, 15, /"parent" is no field/],
  ["children", '{"name":"One","children":[]}', 1, 15, /"children" is no field/],
  ["a parent that is a number", '{"name":"One","parentName":1}', 1, 15, /a number stands here/],
];

const CSV: readonly Broken[] = [
  ["an empty file", "", 1, 1, /empty/],
  ["no header", "One,a|b\n", 1, 1, /no column _id .*"One", "a\|b"/],
  ["semicolons without a header", "One;a\n", 1, 1, /no column _id .*"One", "a"/],
  ["a column twice", "name,name\nOne,Two\n", 1, 1, /all read as the column name/],
  ["an unknown column alone", "colour\nred\n", 1, 1, /no column _id .*"colour"/],
  ["more cells than columns", "name,contexts\nOne,a,b\n", 2, 7, /more cells/],
  ["quotes that do not end", 'name\n"One\nTwo\n', 2, 1, /do not end/],
  ["a quote inside a cell", 'name\nOne "x"\n', 2, 1, /not allowed: "\\""/],
  ["something behind quotes", 'name\n"One"x\n', 2, 1, /between the quotes/],
  ["a list that is no JSON", 'name,contexts\nOne,"[a,b]"\n', 2, 5, /no JSON array/],
  ["a list with a number", "name,contexts\nOne,[1]\n", 2, 5, /no JSON array/],
  ["no name", "name,contexts\n,a\n", 2, 1, /neither _id nor name/],
  ["exposeChildren: 2", "name,exposeChildren\nOne,2\n", 2, 5, /true or false/],
  ["contexts and contextsAtLeast", "name,contexts,contextsAtLeast\nOne,a,b\n", 2, 7, /two of/],
  ["a web page", "<!DOCTYPE html>\n<html></html>\n", 1, 1, /page of HTML or XML/],
  ["UTF-16 without a header", utf16("One\n"), 1, 1, /no column _id .*"One"/],
  ["a spreadsheet of another program", Buffer.from("PK\u0003\u0004rest"), 1, 1, /workbook cannot be read/],
  ["an old spreadsheet", Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1]), 1, 1, /old Excel workbook/],
];

const ALL = Object.entries({ yaml: YAML, json: JSON_FILES, ndjson: NDJSON, csv: CSV }).flatMap(([format, files]) =>
  files.map((file) => [format, ...file] as const),
);

test("there are more than a hundred of them", () => {
  expect(ALL.length).toBeGreaterThan(100);
});

test.each(ALL)("%s: %s", async (format, _name, content, line, column, words) => {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const { problems } = await readDesired({ bytes, format: formatNamed(format), folder: undefined });
  const [first] = problems;
  expect({ line: first?.line, column: first?.column, message: first?.message }).toEqual({
    line,
    column,
    message: expect.stringMatching(words),
  });
  for (const { message, remedy } of problems) {
    expect(message.length).toBeLessThan(500);
    expect(remedy).not.toBe("");
  }
});

function formatNamed(format: string): Format {
  const found = (["yaml", "json", "csv", "ndjson"] as const).find((one) => one === format);
  if (found === undefined) throw new Error(`no format ${format}`);
  return found;
}
