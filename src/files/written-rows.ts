import { thousands } from "../platform/text.ts";
import { LIMITS } from "../spec/limits.ts";
import { headingOf } from "./columns.ts";

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

/** What each column may contain, and its limits. Written to the second sheet of workbooks. */
const ROWS: readonly (readonly [column: string, allowed: string, more: string])[] = [
  ["action", "Add, Edit, Remove", "Blank: the tool decides"],
  ["_id", "The ID of an existing option", "Blank for a new option"],
  ["name", NAME, `Each name once in a targeting; at most ${thousands(LIMITS.targetingOptions.value)} options`],
  ["parentName", "The name of a group, or [] for the top level", "Blank: unchanged, or the top level of a new option"],
  [
    "contexts",
    'Context IDs separated by |, or ["a", "b"]; [] for none',
    `At most ${perOption} an option; blank: unchanged`,
  ],
  ["contextId", "One Context ID a row", `1 to ${LIMITS.contextIdBytes.value} bytes; the rows of one option are merged`],
  ["op", "Set, Add, Remove", "What to do with the Context IDs of the row"],
  ["type", "yes, no", "Needed only for a group without sub-options in the sheet"],
  ["exposeChildren", "yes, no", "Of groups"],
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
