import { expect, test } from "vitest";
import { optionRows } from "../../src/changes/rows/input-rows.ts";
import { detectSheet } from "../../src/files/detect-sheet.ts";
import { isLikeNumber, numberIn } from "../../src/files/numbers.ts";
import { itemsIn } from "../../src/files/rows.ts";
import { contentOf } from "./content.ts";

const LENGTH = 400_000;

/** Cells for which patterns once needed many minutes, because their time grew with the square of the length. */
const LONG = [
  ["digits", `${"1".repeat(LENGTH)}x`],
  ["spaces after a number", `1234${" ".repeat(LENGTH)}x`],
  ["groups of digits", `1${" 234".repeat(LENGTH / 4)}x`],
  ["points", `${".".repeat(LENGTH)}x`],
] as const;

test.each(LONG)("a cell of 400,000 characters: %s", async (_what, cell) => {
  const rows = `a,"${cell}"\n"${cell}",b\n`;
  const bytes = contentOf(`name,Context ID 1\n${rows}`, 65_536);
  const file = { format: "csv", encoding: "utf-8" } as const;
  const detected = await detectSheet({ ...file, bytes, shape: optionRows, maxBytes: undefined, isTabbed: false }, {});
  expect(await itemsIn(bytes, { ...file, digest: "", ...detected }, optionRows)).toHaveLength(2);
  expect(isLikeNumber(cell)).toBe(false);
  expect(numberIn(cell, { decimal: "," })).toBeUndefined();
});
