import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { unzipSync } from "fflate";
import { expect, test } from "vitest";
import { type ReadFormat, readDesired } from "../../src/plans/file/read-desired.ts";
import { withIds as bytesWithIds } from "../../src/plans/file/write-ids.ts";

const idOf = (letter: string) => `01J0000000000000000000000${letter}`;
/** Returns the IDs of rows by row number. */
const mapOf = (ids: readonly (string | undefined)[]) =>
  new Map(ids.flatMap((id, at) => (id === undefined ? [] : [[at, id] as const])));
const withIds = async (text: string, format: ReadFormat, ids: readonly (string | undefined)[]) =>
  Buffer.from(await bytesWithIds(Buffer.from(text), { format }, mapOf(ids))).toString("utf8");
const [A, B, C] = [idOf("A"), idOf("B"), idOf("C")];

test("YAML: comments, blank lines, quotes and the rest stay to the letter", async () => {
  const text = `# our targeting
version: 1   # the only one
targeting: {name: Spring}
options:

  # shoes of all kinds
  - name: 'Running Shoes'   # the best ones
    contexts:
      - c1   # first
  - _id: ${C}
    name: "Seasonal"
    children:
    - # Easter comes first
      name: Easter
    - {name: Christmas,   contexts: [a,b]}
`;
  expect(await withIds(text, "yaml", [A, undefined, B, idOf("D")])).toBe(
    text
      .replace("- name: 'Running Shoes'", `- _id: "${A}"\n    name: 'Running Shoes'`)
      .replace("      name: Easter", `      _id: "${B}"\n      name: Easter`)
      .replace("{name: Christmas", `{_id: "${idOf("D")}", name: Christmas`),
  );
});

test("YAML with Windows line ends keeps them", async () => {
  const text = "version: 1\r\noptions:\r\n  - name: One\r\n    contexts: []\r\n";
  expect(await withIds(text, "yaml", [A])).toBe(text.replace("- name", `- _id: "${A}"\r\n    name`));
});

test("JSON, on one line and on many, with a byte order mark", async () => {
  const compact = '\uFEFF{"version":1,"options":[{"name":"One"},{"name":"Two","children":[{"name":"Three"}]}]}';
  expect(await withIds(compact, "json", [A, undefined, B])).toBe(
    compact
      .replace('{"name":"One"', `{"_id": "${A}", "name":"One"`)
      .replace('{"name":"Three"', `{"_id": "${B}", "name":"Three"`),
  );
  const laidOut = '{\n\t"version": 1,\n\t"options": [\n\t\t{\n\t\t\t"name": "One"\n\t\t}\n\t]\n}\n';
  expect(await withIds(laidOut, "json", [A])).toBe(laidOut.replace('"name"', `"_id": "${A}",\n\t\t\t"name"`));
});

test("NDJSON: the head and lines that have their _id stay", async () => {
  const text = `{"version":1,"targeting":{"name":"Spring"}}\n\n{ "name": "One" }\n{"_id":"${C}"}\n{"name":"Two"}`;
  expect(await withIds(text, "ndjson", [A, undefined, B])).toBe(
    text.replace('"name": "One"', `"_id":"${A}","name": "One"`).replace('{"name":"Two"', `{"_id":"${B}","name":"Two"`),
  );
});

test("CSV: into the column _id, or one that is put in front", async () => {
  const text = '\uFEFFname,_id,contexts\r\n"One, and",,"a|b"\r\n,,\r\nTwo\r\nThree,"",\r\n';
  expect(await withIds(text, "csv", [A, B, C])).toBe(
    text.replace('and",,', `and",${A},`).replace("Two\r", `Two,${B}\r`).replace('Three,""', `Three,${C}`),
  );
  expect(await withIds("name,contexts\nOne,a\nTwo,\n", "csv", [undefined, B])).toBe(
    `_id,name,contexts\n,One,a\n${B},Two,\n`,
  );
});

test("what is written in a way that splicing does not know is refused, and not damaged", async () => {
  const text = "version: 1\noptions:\n  - ? name\n    : One\n";
  await expect(withIds(text, "yaml", [A])).rejects.toThrow(/cannot be written into the file/);
});

test("CSV with one Context ID a row: each row of an option gets its ID", async () => {
  const text = "Option,Context ID\nOne,a\nOne,b\nTwo,c\n";
  expect(await withIds(text, "csv", [A, B])).toBe(`_id,Option,Context ID\n${A},One,a\n${A},One,b\n${B},Two,c\n`);
});

const FOLDER = join(import.meta.dirname, "..", "files", "sheets");
const WORKBOOKS = readdirSync(FOLDER).filter((name) => /^(korean|two).*\.xls[xm]$/.test(name));

/** Returns the unpacked parts of a workbook by name. */
function partsOf(packed: Uint8Array) {
  return new Map(Object.entries(unzipSync(packed)).map(([name, bytes]) => [name, Buffer.from(bytes).toString("utf8")]));
}

test.each(WORKBOOKS)("a workbook keeps all but the new IDs: %s", async (name) => {
  const packed = readFileSync(join(FOLDER, name));
  const sheet = name.startsWith("two") ? { sheet: "Spring" } : {};
  const before = await readDesired({ bytes: packed, format: "xlsx", sheet, folder: undefined });
  expect(before.desired.options).toHaveLength(name.startsWith("two") ? 2 : 3);
  const ids = new Map(before.desired.options.map((_, at) => [at, idOf(String(at))]));
  const written = await bytesWithIds(packed, { format: "xlsx", sheet }, ids);
  const [parts, others] = [partsOf(packed), partsOf(written)];
  const changed = [...parts].filter(([part, text]) => !part.endsWith("/") && others.get(part) !== text);
  expect(changed.map(([part]) => part)).toEqual([expect.stringMatching(/worksheets\/[^/]+\.xml$/)]);
  const [[part = "", text = ""] = []] = changed;
  const plain = (xml: string) => xml.replace(/<dimension [^>]*>/, "").replaceAll(/ spans="[^"]*"/g, "");
  const added = /<c [^>]*t="inlineStr"><is><t>(?:Option ID|01J0+\d)<\/t><\/is><\/c>/g;
  expect(plain(others.get(part) ?? "").replaceAll(added, "")).toBe(plain(text));
  const after = await readDesired({ bytes: written, format: "xlsx", sheet, folder: undefined });
  expect(after.desired.options.map(({ _id }) => _id)).toEqual([...ids.values()]);
  expect(after.problems).toEqual([]);
});
