import { BYTE_ORDER_MARK, csvLine } from "./delimited.ts";
import { DELIMITERS } from "./input-file.ts";
import type { SheetFormat, WrittenSheet } from "./written-rows.ts";

/** Writes UTF-8 text with a byte order mark, or a workbook. Throws a FileError if a workbook cannot hold all rows. */
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

const TAB_NAMES = ["\t", "tab", "\\t"];

/** Returns the delimiter that an argument means. Undefined if files cannot be written with it. */
export function delimiterNamed(text: string): string | undefined {
  if (TAB_NAMES.includes(text.toLowerCase())) return "\t";
  return DELIMITERS.find((one) => one === text && one !== "|");
}

/** A text that spreadsheets would run as a formula, with or without apostrophes in front. */
const FORMULA = /^'*[=+\-@\t\r]/;
const QUOTED_FORMULA = /^'+[=+\-@\t\r]/;

/**
 * Returns a text for a cell of a text file. A formula gets an apostrophe in front, so that spreadsheets do not run it.
 */
export function inertCell(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

/**
 * Returns a text for a cell of a workbook, which runs no texts. Only a quoted formula gets a further apostrophe, for
 * `uninertCell`.
 */
export function workbookCell(text: string): string {
  return QUOTED_FORMULA.test(text) ? `'${text}` : text;
}

export function uninertCell(text: string): string {
  return QUOTED_FORMULA.test(text) ? text.slice(1) : text;
}
