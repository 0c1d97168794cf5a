import { NONE } from "../files/cells.ts";
import { BYTE_ORDER_MARK, csvLine } from "../files/csv-text.ts";
import type { SavedFormat } from "../files/save-file.ts";
import type { SavedOption } from "./saved-options.ts";

/** Options as a file that `bulk_add_options` reads; in CSV with one Context ID a row, since these may hold any sign. */
export async function* optionLines(rows: AsyncIterable<SavedOption>, format: SavedFormat): AsyncGenerator<string> {
  if (format === "csv") yield BYTE_ORDER_MARK + csvLine(["name", "contextId", "parentName", "type", "exposeChildren"]);
  for await (const row of rows) yield format === "csv" ? optionCsv(row) : `${JSON.stringify(row)}\n`;
}

function optionCsv({ name, contexts = [], parentName, type, exposeChildren }: SavedOption): string {
  const rest = [parentName ?? "", type ?? "", exposeChildren === undefined ? "" : String(exposeChildren)];
  const contextIds = contexts.length === 0 ? [NONE] : contexts;
  return contextIds.map((contextId) => csvLine([name, contextId, ...rest])).join("");
}

/** The Context IDs of one option as a file that `update_contexts` reads: what the option holds, as a `set`. */
export async function* contextLines(
  option: { readonly _id: string; readonly name: string },
  contexts: readonly string[],
  format: SavedFormat,
): AsyncGenerator<string> {
  const { _id, name } = option;
  if (format === "ndjson") {
    yield `${JSON.stringify({ _id, set: contexts })}\n`;
    return;
  }
  yield BYTE_ORDER_MARK + csvLine(["_id", "name", "op", "contextId"]);
  const contextIds = contexts.length === 0 ? [NONE] : contexts;
  yield contextIds.map((contextId) => csvLine([_id, name, "set", contextId])).join("");
}
