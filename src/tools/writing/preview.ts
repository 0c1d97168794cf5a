import type { WriteCall } from "../../changes/call.ts";
import { fileOf } from "../../changes/change-kinds.ts";
import { type ContextRow, contextRows, type OptionRow, optionRows } from "../../changes/rows/input-rows.ts";
import type { InputFile } from "../../files/input-file.ts";
import { type FileRow, type RowShape, rowsOf } from "../../files/rows.ts";
import type { SheetHeader } from "../../files/sheet-rows.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { PREVIEW_ROWS, type Preview, type PreviewRow, previewNotes } from "../../render/sheets.ts";

/** How the file of a call was read and its first rows were understood, as notes; none for a call without a file. */
export async function previewOf(call: WriteCall, bytes: ByteSource | undefined): Promise<readonly string[]> {
  const file = fileOf(call);
  if (file === undefined || bytes === undefined) return [];
  if (call.tool === "bulk_add_options") return previewNotes(file, await firstRows(bytes, file, optionRows, addedWords));
  if (call.tool === "update_contexts")
    return previewNotes(file, await firstRows(bytes, file, contextRows, changeWords));
  return [];
}

async function firstRows<Item>(
  bytes: ByteSource,
  file: InputFile,
  shape: RowShape<Item>,
  wordsOf: (item: Item) => Omit<PreviewRow, "line">,
): Promise<Preview> {
  const rows: FileRow<Item>[] = [];
  let columns: Preview["columns"] = [];
  const read = rowsOf(bytes, file, shape, (header) => {
    columns = columnsIn(header);
  });
  for await (const batch of read) {
    rows.push(...batch.slice(0, PREVIEW_ROWS));
    if (rows.length >= PREVIEW_ROWS) break;
  }
  return {
    columns,
    rows: rows.map(({ line, content }) => ({
      line,
      ...("reason" in content ? { reason: content.reason } : wordsOf(content.item)),
    })),
  };
}

/** The columns that are read of a sheet, by their headings. */
function columnsIn({ names, cells }: SheetHeader): Preview["columns"] {
  return names.flatMap((column, at) => (column === "" ? [] : [{ heading: (cells[at] ?? "").trim(), column }]));
}

function addedWords({ name, parentName, type, contexts = [] }: OptionRow): Omit<PreviewRow, "line"> {
  return { option: name, group: parentName, isGroup: type === "collection", contexts: { op: "add", ids: contexts } };
}

function changeWords({ _id, name, calledName, add, remove, set }: ContextRow): Omit<PreviewRow, "line"> {
  const op = set !== undefined ? "set" : remove !== undefined ? "remove" : "add";
  return { option: name ?? calledName ?? _id, contexts: { op, ids: set ?? remove ?? add ?? [] } };
}
