import { BYTE_ORDER_MARK, csvLine } from "./delimited.ts";
import { DELIMITERS } from "./input-file.ts";
import type { SheetFormat, WrittenSheet } from "./written-rows.ts";

/**
 * Writes a sheet, piece by piece: as UTF-8 with its mark, or as a workbook with a second sheet about values and limits.
 * Throws a FileError where a workbook cannot hold so much.
 */
export async function* writtenSheet(
  sheet: WrittenSheet,
  form: SheetFormat,
): AsyncGenerator<string | Uint8Array, void, undefined> {
  if (form.format === "xlsx") {
    const { writtenWorkbook } = await import("./xlsx/write-workbook.ts");
    yield* writtenWorkbook(sheet);
    return;
  }
  yield BYTE_ORDER_MARK;
  for await (const { cells } of sheet.rows) yield csvLine(cells, form.delimiter);
}

/** How a tab is named in arguments. */
const TAB_NAMES = ["\t", "tab", "\\t"];

/** The delimiter that an argument means; undefined where it means none that is written. */
export function delimiterNamed(text: string): string | undefined {
  if (TAB_NAMES.includes(text.toLowerCase())) return "\t";
  return DELIMITERS.find((one) => one === text && one !== "|");
}

/** A text that spreadsheets run as a formula, whatever stands in quotes before it. */
const FORMULA = /^'*[=+\-@\t\r]/;
const QUOTED_FORMULA = /^'+[=+\-@\t\r]/;

/** A text for a cell of a text file: what a spreadsheet would run as a formula gets a quote before it. */
export function inertCell(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

/** A text for a cell of a workbook, which runs no texts, so that `uninertCell` gives it back as it is. */
export function workbookCell(text: string): string {
  return QUOTED_FORMULA.test(text) ? `'${text}` : text;
}

/** The text of a cell as it was before `inertCell` or `workbookCell`. */
export function uninertCell(text: string): string {
  return QUOTED_FORMULA.test(text) ? text.slice(1) : text;
}
