import { thousands } from "../platform/text.ts";
import type { Hit } from "../reads/option-scan.ts";
import { managementOf } from "./apis.ts";
import type { ToolContext } from "./context.ts";
import { ToolError } from "./define-tool.ts";
import { searchOptions } from "./option-search.ts";

/** What options of a whole targeting are looked for by. */
type Wanted = { readonly empty: true } | { readonly contextIds: readonly string[] };

/**
 * Every option of a targeting that is empty, or holds one of some Context IDs, as it is now. Throws ApiErrors, and a
 * ToolError where the targeting is too large to be read in one call: what was read of it is stored, so that the same call
 * gets further.
 */
export async function everyOption(targetingId: string, wanted: Wanted, context: ToolContext): Promise<readonly Hit[]> {
  const { hits, counted, stopped } = await searchOptions(managementOf(context), context, {
    query: { targetingId, parent: undefined, all: true, sortBy: undefined, ...wanted },
    from: { top: 0 },
    most: Number.POSITIVE_INFINITY,
    counted: { topLevel: 0, subOptions: 0, found: 0 },
    fresh: undefined,
  });
  if (!stopped) return hits;
  throw new ToolError(
    `only ${thousands(counted.topLevel + counted.subOptions)} options could be read in one call; nothing was changed`,
    "Make the same call again: what was read is stored, so the next call gets further.",
  );
}
