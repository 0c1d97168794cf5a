import { afterEach, expect, test, vi } from "vitest";
import { plainHeading } from "../../src/files/columns.ts";
import { type BoundedUnit, lineLimit, recordsIn } from "../../src/files/delimited.ts";
import { openBytes } from "../../src/files/open-file.ts";
import { ndjsonTexts } from "../../src/files/rows.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

/** Returns a text as pieces of `size` bytes. */
async function* pieces(text: string | Uint8Array, size: number): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
}

/** Returns what is passed on, or the error message. Both must be the same for all sizes of pieces. */
async function through(text: string, unit: BoundedUnit, mostBytes: number): Promise<string> {
  const results = new Set<string>();
  for (const size of [1, 3, 1000]) {
    try {
      const passed: Uint8Array[] = [];
      const check = lineLimit(unit, mostBytes);
      for await (const chunk of pieces(text, size)) {
        check(chunk);
        passed.push(chunk);
      }
      results.add(Buffer.concat(passed).toString("utf8"));
    } catch (thrown) {
      results.add(thrown instanceof Error ? thrown.message : "no error");
    }
  }
  return [...results].join(" / ");
}

const refusal = (line: number) =>
  `the line or JSON value on line ${line} of the file is longer than ${10 / 1_048_576} MB; nothing was sent`;

test.each<[string, string, BoundedUnit, number | undefined]>([
  ["lines of ten bytes", "0123456789\n0123456789\n", "line", undefined],
  ["a line of eleven", "a\n01234567890\nb\n", "line", 2],
  ["the last line, which does not end", "a\nb\n01234567890", "line", 3],
  ["lines that end with a carriage return only", "01234\r0123456789\r0123456789\r", "line", undefined],
  ["a line of eleven among these", "a\r01234567890\rb\r", "line", 2],
  ["carriage returns that end no line", 'a"\r"\r\n01234\r67890\n', "line", 2],
  ["elements of an array on one line", "[12345678,12345678,[1,2,3]]", { jsonDepth: 1 }, undefined],
  ["an element that is too long", '[1,\n2,\n"0123456789"]', { jsonDepth: 1 }, 3],
  ["commas and brackets inside of a text", '["a,b,c[,]{,",1]', { jsonDepth: 1 }, 1],
  ["an escaped quote inside of a text", '["\\",\\",\\",\\","]', { jsonDepth: 1 }, 1],
  ["members of an object that are short", '{"a":[{"b":1},{"b":2},{"b":3}]}', { jsonDepth: 2 }, undefined],
])("%s", async (_name, text, unit, refusedLine) => {
  expect(await through(text, unit, 10)).toBe(refusedLine === undefined ? text : refusal(refusedLine));
});

test.each(["utf-16le", "utf-16be"] as const)("lines and JSON elements are measured in %s, too", (encoding) => {
  // 上 is U+4E0A, 字 U+5B57, 小 U+5C0F and ∢ U+2222: their bytes look like a line break, a bracket, a backslash and quotes.
  const lines = "上上\n上\n上上上上上上\n";
  const array = '["上小",\n"∢字",\n"上上上上"]';
  const lineOf = (text: string, unit: BoundedUnit, size: number): string => {
    const little = Buffer.from(text, "utf16le");
    const bytes = encoding === "utf-16le" ? little : little.swap16();
    const check = lineLimit(unit, 10, encoding);
    try {
      for (let from = 0; from < bytes.length; from += size) check(bytes.subarray(from, from + size));
      return "no error";
    } catch (thrown) {
      return thrown instanceof Error ? thrown.message : "no error";
    }
  };
  for (const size of [1, 3, 1000]) {
    expect(lineOf(lines, "line", size)).toBe(refusal(3));
    expect(lineOf(array, { jsonDepth: 1 }, size)).toBe(refusal(3));
    expect(lineOf(lines.slice(0, 5), "line", size)).toBe("no error");
  }
});

test.each(["\uFEFF", ""])(
  "a file in UTF-16 with a line that is too long is refused at this line (mark: %j)",
  async (mark) => {
    const text = `${mark}name\n${"上\n".repeat(3)}${"long".repeat(5)}\n`;
    const opened = openBytes(
      () => pieces(Buffer.from(text, "utf16le"), 64),
      { path: "names.csv", format: "csv", maxLineBytes: 20 },
      {},
      { columns: ["name"], required: [["name"]] },
    );
    await expect(opened).rejects.toThrow("line 5 of the file is longer");
  },
);

test("a line with more cells than a spreadsheet has columns is refused, however many it has", () => {
  expect(recordsIn(`a${",".repeat(16_383)}\nb`, { delimiter: "," })).toHaveLength(2);
  expect(() => recordsIn(`a\nb${",".repeat(3_000_000)}`, { delimiter: "," })).toThrow(
    "line 2 of the file has more than 16,384 cells",
  );
});

test("a long cell is not searched for a heading", () => {
  const replace = vi.spyOn(String.prototype, "replace");
  const long = `Name${" ".repeat(5000)}`;
  expect([plainHeading("Na me "), plainHeading(long)]).toEqual(["name", long]);
  expect(replace.mock.contexts.map(String)).toEqual(["na me "]);
});

test("a header of many headings is not read again for each of the rows below it", async () => {
  const shape = { columns: ["name", "contexts", "parentName"], required: [["name"]] } as const;
  const readsOf = async (heading: (at: number) => string, rows: number): Promise<number> => {
    const text = `${Array.from({ length: 2000 }, (_, at) => heading(at)).join(",")}\n${"a,b\n".repeat(rows)}`;
    const replace = vi.spyOn(String.prototype, "replace");
    const bytes = () => pieces(text, 65_536);
    const refused = openBytes(bytes, { path: "names.csv", format: "csv", maxLineBytes: 10_000_000 }, {}, shape);
    await expect(refused).rejects.toThrow("the file has no column for name");
    return replace.mock.calls.length / 2000;
  };
  const few = await readsOf((at) => `head ${at}`, 1);
  expect(await readsOf((at) => `head ${at}`, 120)).toBeLessThan(few + 200);
});

test("a long line of NDJSON is searched once, however many pieces it comes in", async () => {
  const line = JSON.stringify({ name: "x".repeat(3_000_000) });
  const split = vi.spyOn(String.prototype, "split");
  const read: string[] = [];
  for await (const texts of ndjsonTexts(() => pieces(`{"a":1}\n${line}\n\n{"b":2}`, 65_536), "utf-8")) {
    read.push(...texts.map((one) => `${one.line}: ${one.text}`));
  }
  const searched = split.mock.contexts.reduce((sum: number, text) => sum + String(text).length, 0);
  expect(read).toEqual([`1: {"a":1}`, `2: ${line}`, `4: {"b":2}`]);
  expect(searched).toBeLessThan(2 * line.length);
});
