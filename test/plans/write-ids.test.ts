import { expect, test } from "vitest";
import { withIds } from "../../src/plans/file/write-ids.ts";

const idOf = (letter: string) => `01J0000000000000000000000${letter}`;
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
  expect(
    await withIds(
      text,
      "yaml",
      new Map([
        [0, A],
        [2, B],
        [3, idOf("D")],
      ]),
    ),
  ).toBe(
    text
      .replace("- name: 'Running Shoes'", `- _id: "${A}"\n    name: 'Running Shoes'`)
      .replace("      name: Easter", `      _id: "${B}"\n      name: Easter`)
      .replace("{name: Christmas", `{_id: "${idOf("D")}", name: Christmas`),
  );
});

test("YAML with Windows line ends keeps them", async () => {
  const text = "version: 1\r\noptions:\r\n  - name: One\r\n    contexts: []\r\n";
  expect(await withIds(text, "yaml", new Map([[0, A]]))).toBe(text.replace("- name", `- _id: "${A}"\r\n    name`));
});

test("JSON, on one line and on many, with a byte order mark", async () => {
  const compact = '\uFEFF{"version":1,"options":[{"name":"One"},{"name":"Two","children":[{"name":"Three"}]}]}';
  expect(
    await withIds(
      compact,
      "json",
      new Map([
        [0, A],
        [2, B],
      ]),
    ),
  ).toBe(
    compact
      .replace('{"name":"One"', `{"_id": "${A}", "name":"One"`)
      .replace('{"name":"Three"', `{"_id": "${B}", "name":"Three"`),
  );
  const laidOut = '{\n\t"version": 1,\n\t"options": [\n\t\t{\n\t\t\t"name": "One"\n\t\t}\n\t]\n}\n';
  expect(await withIds(laidOut, "json", new Map([[0, A]]))).toBe(
    laidOut.replace('"name"', `"_id": "${A}",\n\t\t\t"name"`),
  );
});

test("NDJSON: the head and lines that have their _id stay", async () => {
  const text = `{"version":1,"targeting":{"name":"Spring"}}\n\n{ "name": "One" }\n{"_id":"${C}"}\n{"name":"Two"}`;
  expect(
    await withIds(
      text,
      "ndjson",
      new Map([
        [0, A],
        [2, B],
      ]),
    ),
  ).toBe(
    text.replace('"name": "One"', `"_id":"${A}","name": "One"`).replace('{"name":"Two"', `{"_id":"${B}","name":"Two"`),
  );
});

test("CSV: into the column _id, or one that is put in front", async () => {
  const text = '\uFEFFname,_id,contexts\r\n"One, and",,"a|b"\r\n,,\r\nTwo\r\nThree,"",\r\n';
  expect(
    await withIds(
      text,
      "csv",
      new Map([
        [0, A],
        [1, B],
        [2, C],
      ]),
    ),
  ).toBe(text.replace('and",,', `and",${A},`).replace("Two\r", `Two,${B}\r`).replace('Three,""', `Three,${C}`));
  expect(await withIds("name,contexts\nOne,a\nTwo,\n", "csv", new Map([[1, B]]))).toBe(
    `_id,name,contexts\n,One,a\n${B},Two,\n`,
  );
});

test("what is written in a way that splicing does not know is refused, and not damaged", async () => {
  const text = "version: 1\noptions:\n  - ? name\n    : One\n";
  await expect(withIds(text, "yaml", new Map([[0, A]]))).rejects.toThrow(/cannot be written into the file/);
});
