import type { ManagementApi } from "../../api/management.ts";
import type { Removed } from "../plan/plan.ts";
import { placedOptions, withContexts } from "./saved-options.ts";

/**
 * What a run takes away, as NDJSON that `bulk_add_options` or `update_contexts` reads from a file. The options of a
 * targeting are read for it. Throws the ApiError of a read: then nothing may be deleted.
 */
export async function* removedLines(
  removed: readonly Removed[],
  api: ManagementApi,
  signal: AbortSignal,
): AsyncGenerator<string> {
  for (const one of removed) {
    if (one.kind === "row") yield `${JSON.stringify(one.row)}\n`;
    else {
      for await (const rows of withContexts(api, placedOptions(api, one._id, signal), signal)) {
        yield rows.map((row) => `${JSON.stringify(row)}\n`).join("");
      }
    }
  }
}
