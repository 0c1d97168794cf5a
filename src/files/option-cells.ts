import { headingOf, NONE } from "./columns.ts";
import { inertCell, workbookCell } from "./sheet-writing.ts";
import type { SheetFormat, WrittenRow } from "./written-rows.ts";

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

/** The maximum characters of a cell. Excel allows 32,767; this leaves some room. */
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
 * Matches IDs that would change if they were joined by `|`: those that contain a separator, look like a formula or a
 * list, or have decomposed Hangul.
 */
const NEEDS_LIST = /[|;\r\n\u1100-\u11ff]|^'*[=+\-@\t]|^\[/;

/**
 * Returns Context IDs as cells that fit into spreadsheets. IDs are separated by `|`, or form a JSON array if one of
 * them needs it.
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
