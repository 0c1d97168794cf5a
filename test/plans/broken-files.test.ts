import { expect, test } from "vitest";
import * as z from "zod";
import { readDesired } from "../../src/plans/file/read-desired.ts";
import { rowsOf } from "../support/rows.ts";

// A hundred files that cannot be planned, each with the position and the text of its first problem.

const many = (count: number, of: (index: number) => string): string =>
  Array.from({ length: count }, (_, at) => of(at)).join("");
const utf16 = (text: string): Buffer => Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(text, "utf16le")]);
const options = (count: number, name: string) =>
  `version: 1\noptions:\n${many(count, (at) => `  - name: ${name} ${at}\n`)}`;
const laughs = many(9, (at) => `b${at}: &b${at} [${many(10, () => `*${at === 0 ? "a" : `b${at - 1}`},`)}]\n`);

type Format = "yaml" | "json" | "csv" | "ndjson";
type Broken = readonly [format: Format, name: string, string | Buffer, line: number, column: number, words: string];

/** Files that are large, or not text. They are made here instead of stored. */
const MADE: readonly Broken[] = [
  ["yaml", "lists in lists", `${"[".repeat(5000)}${"]".repeat(5000)}`, 1, 21, "20 levels"],
  ["yaml", "2 MB of brackets", "[".repeat(2_000_000), 1, 21, "20 levels"],
  ["yaml", "2 MB of dashes", "- ".repeat(1_000_000), 1, 41, "20 levels"],
  ["yaml", "a million options", many(1_000_000, () => "- &a {name: x}\n"), 115_385, 12, "1,500,000 words and symbols"],
  ["yaml", "maps in maps", many(30, (at) => `${" ".repeat(at)}a:\n`), 21, 21, "20 levels"],
  ["yaml", "a billion laughs", `a: &a [x,x,x,x,x,x,x,x,x,x]\n${laughs}`, 6, 9, "1,000,000 values"],
  ["yaml", "5,001 options", options(5001, "Option"), 5003, 5, "5,000 options"],
  ["yaml", "50 MB", options(1_700_000, "Option number"), 519_715, 1, "more than 16,000,000 characters"],
  ["json", "100,000 arrays in each other", "[".repeat(100_000), 1, 21, "20 levels"],
  [
    "json",
    "many values",
    `{"version":1,"options":[${many(1_000_001, () => "0,")}0]}`,
    1,
    2_000_019,
    "1,000,000 values",
  ],
  ["json", "UTF-16", utf16('{"version":1}'), 1, 1, "UTF-16"],
  ["json", "bytes that are not UTF-8", Buffer.from('{"version":1,\n"a":"\xb0\xa1', "latin1"), 2, 6, "not UTF-8"],
  [
    "json",
    "such bytes after U+FFFD",
    Buffer.from('{"\xef\xbf\xbd":1,\n"\xef\xbf\xbd":"\xb0', "latin1"),
    2,
    6,
    "not UTF-8",
  ],
  ["json", "a spreadsheet", Buffer.from("PK\u0003\u0004rest"), 1, 1, "spreadsheet"],
  ["json", "a PDF", Buffer.from("%PDF-1.7"), 1, 1, "PDF"],
  ["json", "binary data", Buffer.from([1, 2, 0, 3]), 1, 1, "binary"],
  ["csv", "UTF-16 without a header", utf16("One\n"), 1, 1, 'no column for _id .*"One"'],
  ["csv", "another program's spreadsheet", Buffer.from("PK\u0003\u0004rest"), 1, 1, "workbook cannot be read"],
  ["csv", "an old spreadsheet", Buffer.from([0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1]), 1, 1, "old Excel workbook"],
];

const format = z.enum(["yaml", "json", "csv", "ndjson"]);
const written = z.tuple([format, z.string(), z.string(), z.number(), z.number(), z.string()]);
const ALL: readonly Broken[] = [...rowsOf("broken-files.ndjson", import.meta.dirname, written), ...MADE];

test("there are more than a hundred of them", () => {
  expect(ALL.length).toBeGreaterThan(100);
});

test.each(ALL)("%s: %s", async (format, _name, content, line, column, words) => {
  const bytes = typeof content === "string" ? Buffer.from(content) : content;
  const { problems } = await readDesired({ bytes, format, folder: undefined });
  const [first] = problems;
  expect({ line: first?.line, column: first?.column, message: first?.message }).toEqual({
    line,
    column,
    message: expect.stringMatching(new RegExp(words)),
  });
  for (const { message, remedy } of problems) {
    expect(message.length).toBeLessThan(500);
    expect(remedy).not.toBe("");
  }
});
