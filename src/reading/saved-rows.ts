import { NONE } from "../files/cells.ts";
import { headingOf } from "../files/headings.ts";
import { contextCells, OPTION_HEADER, optionCells, type SheetOption } from "../files/option-cells.ts";
import { inPieces } from "../files/pieces.ts";
import type { SavedForm } from "../files/save-file.ts";
import { inertCell, workbookCell, writtenSheet } from "../files/sheet-writing.ts";
import type { SheetFormat, WrittenRow } from "../files/written-rows.ts";
import type { OptionRecord } from "../spec/records.ts";
import { type ReadOption, savedOption } from "./saved-options.ts";

/** Options as a file that every tool reads which takes options. */
export function optionLines(options: AsyncIterable<ReadOption>, form: SavedForm): AsyncIterable<string | Uint8Array> {
  if (form.format === "ndjson") return inPieces(jsonLines(options));
  return inPieces(writtenSheet({ name: "Options", above: 0, rows: optionRows(options, form) }, form));
}

async function* jsonLines(options: AsyncIterable<ReadOption>): AsyncGenerator<string> {
  for await (const read of options) {
    yield `${JSON.stringify({ _id: read.option._id, ...savedOption(read, read.contexts) })}\n`;
  }
}

async function* optionRows(options: AsyncIterable<ReadOption>, form: SheetFormat): AsyncGenerator<WrittenRow> {
  yield OPTION_HEADER;
  for await (const read of options) yield* optionCells(sheetOption(read), form);
}

function sheetOption({ option, groupName, contexts }: ReadOption): SheetOption {
  const { _id, name, type, parent, exposeChildren } = option;
  const isGroup = type === "collection";
  // A sub-option whose group was not read stays where it is.
  const group = groupName ?? (typeof parent === "string" ? "" : undefined);
  return {
    ...{ _id, name, groupName: group, isGroup, contexts: contexts.toSorted() },
    ...(isGroup && { exposeChildren }),
  };
}

/**
 * The Context IDs of one option as a file that every tool reads which takes options: what it holds, as a `set`. In a
 * sheet each has its own row.
 */
export function contextLines(
  option: Pick<OptionRecord, "_id" | "name">,
  contexts: readonly string[],
  form: SavedForm,
): AsyncIterable<string | Uint8Array> {
  const { _id, name } = option;
  if (form.format === "ndjson") return inPieces([`${JSON.stringify({ _id, name, op: "set", contexts })}\n`]);
  const safe = form.format === "xlsx" ? workbookCell : inertCell;
  const cells = isOneARow(contexts) ? contexts.map(safe) : contextCells(contexts);
  const column = isOneARow(contexts) ? "contextId" : "contexts";
  const rows = async function* (): AsyncGenerator<WrittenRow> {
    yield { cells: ["_id", "name", "op", column].map(headingOf) };
    for (const cell of cells) yield { cells: [_id, safe(name), "Set", cell] };
  };
  return inPieces(writtenSheet({ name: "Context IDs", above: 0, rows: rows() }, form));
}

/** Whether each Context ID can have a row: one that says what means none, or whose Hangul is taken apart, cannot. */
function isOneARow(contexts: readonly string[]): boolean {
  return contexts.length > 0 && !contexts.some((id) => id === NONE || /[\u1100-\u11ff]/.test(id));
}
