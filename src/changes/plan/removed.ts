import type { ManagementApi } from "../../api/management.ts";
import { inPieces } from "../../files/pieces.ts";
import { placedOptions, withContexts } from "../../reading/saved-options.ts";
import type { Removed } from "./plan.ts";

/**
 * The options and Context IDs that a run takes away, as NDJSON that `bulk_add_options` or `update_contexts` reads from
 * a file. Options are read for it, once each. Throws the ApiError of a read: then nothing may be deleted.
 */
export function removedLines(
  removed: readonly Removed[],
  api: ManagementApi,
  signal: AbortSignal,
): AsyncGenerator<string> {
  return inPieces(lines(removed, api, signal));
}

async function* lines(removed: readonly Removed[], api: ManagementApi, signal: AbortSignal): AsyncGenerator<string> {
  for (const one of removed) {
    if (one.kind === "row") yield `${JSON.stringify(one.row)}\n`;
    else {
      const options = one.kind === "options" ? one.options : placedOptions(api, one._id, signal);
      for await (const row of withContexts(api, options, signal)) yield `${JSON.stringify(row)}\n`;
    }
  }
}
