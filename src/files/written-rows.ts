import { thousands } from "../platform/text.ts";
import { LIMITS } from "../spec/limits.ts";
import { headingOf, INERT_FORMULA, NONE } from "./columns.ts";
import { NO_VALUE } from "./damage.ts";

export interface CellMark {
  readonly column: number;
  readonly comment: string;
}

export interface WrittenRow {
  readonly cells: readonly string[];
  readonly marks?: readonly CellMark[];
}

export interface WrittenSheet {
  readonly name: string;
  readonly above: number;
  readonly rows: AsyncIterable<WrittenRow>;
}

export type SheetFormat = { readonly format: "csv"; readonly delimiter: string } | { readonly format: "xlsx" };

const [least, most] = [LIMITS.nameMinLength.value, LIMITS.nameMaxLength.value];
const NAME = `${least} to ${most} Korean or English letters, digits, spaces, ~ % & + -`;
const perOption = thousands(LIMITS.optionContextIds.value);

/** What each column may contain. The second sheet of workbooks shows this. */
const ROWS: readonly (readonly [column: string, allowed: string, more: string])[] = [
  ["action", "Add, Edit, Remove", "Blank: the tool decides"],
  ["_id", "The ID of an existing option", "Blank for a new option"],
  ["name", NAME, `Each name once in a targeting; at most ${thousands(LIMITS.targetingOptions.value)} options`],
  [
    "parentName",
    "The name of a group, or [] for the top level",
    "Blank: not moved; a new option goes to the top level",
  ],
  [
    "contexts",
    'Context IDs separated by |, or ["a", "b"]; [] for none',
    `At most ${perOption} per option; blank: unchanged`,
  ],
  [
    "contextId",
    "One Context ID per row",
    `1 to ${LIMITS.contextIdBytes.value} bytes; the rows of one option are merged`,
  ],
  ["op", "Set, Add, Remove", "What to do with the Context IDs of the row"],
  ["type", "yes, no", "Needed only for a group without sub-options in the sheet"],
  ["exposeChildren", "yes, no", "Only for groups"],
  ["targeting", "The name or ID of the targeting", "All rows of a sheet are about one targeting"],
];

export const VALUES_SHEET = {
  name: "Allowed values",
  rows: [
    { cells: ["Column", "Allowed values", "Limits"] },
    ...ROWS.map(([column, allowed, more]) => ({ cells: [headingOf(column), allowed, more] })),
    { cells: ["Result, Problem, How to fix", "Written by targeting-mcp", "Ignored when the sheet is read"] },
  ],
} as const;

/**
 * Matches a text that spreadsheets may run as a formula, and such a text with apostrophes in front. East Asian versions
 * of spreadsheets also accept full-width signs.
 */
const FORMULA = /^'*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** Returns a text for a cell of a text file. A formula gets an apostrophe, so that no spreadsheet runs it. */
export function inertCell(text: string): string {
  return FORMULA.test(text) ? `'${text}` : text;
}

/**
 * Returns a text for a cell of a workbook, where texts are never run. A formula that already has an apostrophe gets
 * another one, because `uninertCell` removes one when the sheet is read.
 */
export function workbookCell(text: string): string {
  return INERT_FORMULA.test(text) ? `'${text}` : text;
}

export function uninertCell(text: string): string {
  return INERT_FORMULA.test(text) ? text.slice(1) : text;
}

const NUMBER = /^[+-]?[\d.,]+%?$/;

/** Returns a cell or heading of a person's own sheet for a text file: numbers as they are, formulas inert. */
export function inertOwnCell(cell: string): string {
  if (cell === NO_VALUE) return "";
  return NUMBER.test(cell) ? cell : inertCell(uninertCell(cell));
}

export interface SheetOption {
  readonly _id: string;
  readonly name: string;
  readonly groupName?: string | undefined;
  readonly isGroup: boolean;
  readonly exposeChildren?: boolean | undefined;
  readonly contexts: readonly string[];
}

const COLUMNS = ["_id", "name", "parentName", "contexts", "op", "type", "exposeChildren"] as const;

export const OPTION_HEADER: WrittenRow = { cells: COLUMNS.map(headingOf) };

/** The most characters of a written cell, a little below Excel's limit of 32,767. */
const MAX_CHARACTERS = 32_000;

export function optionCells(option: SheetOption, { format }: SheetFormat): readonly WrittenRow[] {
  const { _id, name, groupName = NONE, isGroup, exposeChildren, contexts } = option;
  const safe = format === "xlsx" ? workbookCell : inertCell;
  const expose = exposeChildren === undefined ? "" : yesOrNo(exposeChildren);
  return contextCells(contexts).map((cell) => ({
    cells: [_id, safe(name), safe(groupName), cell, "Set", yesOrNo(isGroup), expose],
  }));
}

function yesOrNo(is: boolean): string {
  return is ? "yes" : "no";
}

/**
 * Matches Context IDs that would be different after they were joined with `|` and read again: those with a separator or
 * decomposed Hangul, and those that look like a formula or a list.
 */
const NEEDS_LIST = /[|;\r\n\u1100-\u11ff]|^'*[=+\-@\t\uff1d\uff0b\uff0d\uff20]|^\[/;

/**
 * Returns Context IDs as cells that fit into spreadsheets. They are joined with `|`; if one of them does not allow
 * this, they are a JSON array.
 */
export function contextCells(contexts: readonly string[]): readonly string[] {
  if (contexts.length === 0) return [NONE];
  const parts: string[][] = [];
  let part: string[] = [];
  let length = 0;
  for (const id of contexts) {
    const size = NEEDS_LIST.test(id) ? 6 * id.length + 4 : id.length + 4;
    if (part.length === 0 || length + size > MAX_CHARACTERS) {
      part = [];
      parts.push(part);
      length = 0;
    }
    part.push(id);
    length += size;
  }
  return parts.map(contextCell);
}

function contextCell(ids: readonly string[]): string {
  if (!ids.some((id) => NEEDS_LIST.test(id))) return ids.join("|");
  return JSON.stringify(ids).replaceAll(/[\u1100-\u11ff]/g, (letter) => `\\u${letter.charCodeAt(0).toString(16)}`);
}
