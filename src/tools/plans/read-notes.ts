import type { Desired } from "../../plans/file/desired.ts";
import type { ReadDesired } from "../../plans/file/read-desired.ts";
import { PREVIEW_ROWS, type PreviewRow, previewNotes, sheetNotes } from "../../render/sheets.ts";

/** How the sheet of a desired state was read, with its first rows as they were understood; none for other forms. */
export function readNotes({
  file,
  columns = [],
  desired,
}: Pick<ReadDesired, "file" | "columns" | "desired">): readonly string[] {
  if (file === undefined) return [];
  const rows = desired.options.slice(0, PREVIEW_ROWS).map(rowOf);
  return [...sheetNotes(file), ...previewNotes(file, { columns, rows })];
}

/** An option of a file as a preview shows it. */
function rowOf({ line, _id, name, parent, type, contexts, isRemoved }: Desired["options"][number]): PreviewRow {
  const { ids = [], atLeast = false, remove } = contexts ?? {};
  const op = remove !== undefined ? "remove" : atLeast ? "add" : "set";
  return {
    ...{ line, option: name ?? _id, isGroup: type === "collection", isRemoved },
    group: parent.kind === "name" ? parent.name : undefined,
    contexts: contexts && { op, ids: remove ?? ids },
  };
}
