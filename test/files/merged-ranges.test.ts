import { expect, test } from "vitest";
import type { Archive } from "../../src/files/xlsx/archive.ts";
import { readSheet } from "../../src/files/xlsx/sheet.ts";

/** Returns a worksheet whose rows have one filled cell each, with these merged ranges. */
function sheetOf(rows: readonly string[], ranges: readonly string[]): Archive {
  const cells = rows.map(
    (text, at) => `<row r="${at + 1}"><c r="A${at + 1}" t="inlineStr"><is><t>${text}</t></is></c></row>`,
  );
  const merged = ranges.map((range) => `<mergeCell ref="${range}"/>`);
  const xml = `<worksheet><sheetData>${cells.join("")}</sheetData><mergeCells>${merged.join("")}</mergeCells></worksheet>`;
  return {
    names: ["sheet"],
    async *part() {
      yield Buffer.from(xml);
    },
  };
}

async function textsIn(archive: Archive): Promise<readonly (string | undefined)[]> {
  const texts: (string | undefined)[] = [];
  for await (const rows of readSheet(archive, "sheet", { strings: [], formats: [], areTexts: [], is1904: false })) {
    for (const { cells } of rows) texts.push(cells[0]);
  }
  return texts;
}

test("merged cells are filled down, whatever overlaps them", async () => {
  const ranges = ["A1:A3", ...Array.from({ length: 50_000 }, () => "A1:A9")];
  expect(await textsIn(sheetOf(["Red", "", "", "Blue", ""], ranges))).toEqual(["Red", "Red", "Red", "Blue", "Red"]);
});

test("more merged ranges than an honest sheet has are refused", async () => {
  const ranges = Array.from({ length: 100_001 }, (_, at) => `A${at + 1}:A${at + 2}`);
  await expect(textsIn(sheetOf(["Red"], ranges))).rejects.toThrow("more than 100,000 merged ranges");
});
