import type { ManagementApi } from "../api/management.ts";
import { headingOf, NONE } from "../files/columns.ts";
import { type SavedForm, writtenSheet } from "../files/save-file.ts";
import {
  contextCells,
  inertCell,
  OPTION_HEADER,
  optionCells,
  type SheetFormat,
  type SheetOption,
  type WrittenRow,
  workbookCell,
} from "../files/written-rows.ts";
import { inPieces, undefinedIf } from "../platform/files.ts";
import type { OptionRecord } from "../spec/records.ts";
import { type ContentsSource, contextIdsOf, isMissing, readOptionContents } from "./option-contents.ts";
import { readOptions } from "./option-lists.ts";
import { MANY_UNREAD, sideBySide } from "./side-by-side.ts";

export interface PlacedOption {
  readonly option: OptionRecord;
  readonly groupName?: string | undefined;
  readonly contexts?: readonly string[] | undefined;
}

/** Reads all options of a targeting. Sub-options come after their group. */
export async function* placedOptions(
  api: ManagementApi,
  targetingId: string,
  signal: AbortSignal,
): AsyncGenerator<PlacedOption> {
  let group: OptionRecord | undefined;
  for await (const option of readOptions(api, targetingId, signal)) {
    const isInside = group !== undefined && option.parent === group._id;
    if (!isInside) group = option;
    yield { option, groupName: isInside ? group?.name : undefined };
  }
}

export interface ReadOption extends PlacedOption {
  readonly contexts: readonly string[];
}

interface ContextReads {
  readonly signal: AbortSignal;
  readonly source?: ContentsSource | undefined;
  /**
   * Returns whether the Context IDs of an option are needed. If not, they are not read, and the option gets an empty
   * list. Absent: always needed.
   */
  readonly wants?: ((option: OptionRecord) => boolean) | undefined;
  readonly onRead?: ((option: OptionRecord, contexts: readonly string[]) => void) | undefined;
}

/** Yields options with their Context IDs, from the store or the service. Omits those that a read finds deleted. */
export async function* withContexts(
  api: ManagementApi,
  options: Iterable<PlacedOption> | AsyncIterable<PlacedOption>,
  { signal, source, wants = () => true, onRead }: ContextReads,
): AsyncGenerator<ReadOption> {
  const contextsOf = async (option: OptionRecord, within: AbortSignal, withoutRead: () => void) => {
    if (option.contextCount === 0 || !wants(option)) {
      withoutRead();
      return [];
    }
    if (source !== undefined) return contextIdsOf(api, option, source, within, withoutRead);
    return (await readOptionContents(api, option._id, within)).contexts;
  };
  const rows = sideBySide<PlacedOption, ReadOption>({
    async *source() {
      await source?.store?.refresh();
      yield* options;
    },
    async map(placed, within, withoutRead) {
      const contexts = await undefinedIf(isMissing, contextsOf(placed.option, within, withoutRead));
      if (contexts === undefined) return undefined;
      onRead?.(placed.option, contexts);
      return { ...placed, contexts };
    },
    unreadAhead: MANY_UNREAD,
    signal,
    pace: api.pace,
  });
  for await (const { value } of rows) if (value !== undefined) yield value;
}

/**
 * Returns an option as JSON lines contain it, without its ID. For a sub-option, this includes the name of its group, or
 * the group's ID if that name is unknown.
 */
export function savedOption({ option, groupName }: PlacedOption, contexts: readonly string[] | undefined) {
  const { name, type, exposeChildren, parent } = option;
  if (groupName !== undefined) return { name, parentName: groupName, contexts };
  if (typeof parent === "string") return { name, parent, contexts };
  return { name, type: type ?? "atomic", ...(type === "collection" && { exposeChildren }), contexts };
}

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
  // If the name of the group is unknown, the cell is empty. The sub-option then stays in its group when the file is
  // imported.
  const group = groupName ?? (typeof parent === "string" ? "" : undefined);
  const about = { _id, name, groupName: group, isGroup, ...(isGroup && { exposeChildren }) };
  return { ...about, contexts: contexts.toSorted() };
}

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

/**
 * Returns whether each Context ID can be in its own row. False if there is none, or if importing the file would change
 * one of them (the word for "none", or decomposed Hangul). In that case, all IDs are written in another form.
 */
function isOneARow(contexts: readonly string[]): boolean {
  return contexts.length > 0 && !contexts.some((id) => id === NONE || /[\u1100-\u11ff]/.test(id));
}
