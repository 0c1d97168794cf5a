import { fileOf } from "../changes/change-kinds.ts";
import { isChangeRun } from "../changes/change-run.ts";
import { contextRows, optionRows } from "../changes/rows/input-rows.ts";
import { cellReader } from "../files/cells.ts";
import { type RowShape, rowsOf } from "../files/rows.ts";
import { undefinedIfFileError } from "../platform/files.ts";
import { isJsonObject } from "../platform/json.ts";
import type { Run } from "../runs/kind.ts";
import type { ToolServices } from "../tools/define-tool.ts";

/**
 * Returns the names in the rows of a run's file, by the index of the row, for rows that could not be read as an item,
 * for example because a Context ID is damaged. If the file cannot be read any more, names are missing.
 */
export async function namesOfRows(
  run: Run,
  indexes: ReadonlySet<number>,
  { runs }: Pick<ToolServices, "runs">,
): Promise<ReadonlyMap<number, string>> {
  const names = new Map<number, string>();
  const file = isChangeRun(run) ? fileOf(run.header.call) : undefined;
  if (file === undefined || indexes.size === 0) return names;
  const { columns, required } = run.header.call.tool === "bulk_add_options" ? optionRows : contextRows;
  const shape: RowShape<string> = {
    ...{ columns, required, merge: () => undefined, rest: () => [] },
    fromCells(header) {
      const name = cellReader(header, "name");
      return (cells) => ({ item: name(cells) });
    },
    fromValue: (value) => ({ item: isJsonObject(value) && typeof value.name === "string" ? value.name : "" }),
  };
  const read = async (): Promise<void> => {
    for await (const rows of rowsOf(runs.part(run.header.runId, "input"), file, shape)) {
      for (const { index, content } of rows)
        if (indexes.has(index) && "item" in content && content.item !== "") names.set(index, content.item);
      if (names.size === indexes.size) return;
    }
  };
  await undefinedIfFileError(read());
  return names;
}
