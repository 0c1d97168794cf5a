import type { ManagementApi } from "../api/management.ts";
import { LIMITS } from "../spec/limits.ts";
import type { OptionPage, OptionRecord } from "../spec/records.ts";

/** Where a walk goes on: at a top-level option, or inside it, behind so many of its sub-options. */
export interface WalkPosition {
  readonly top: number;
  readonly inside?: number | undefined;
}

/** What is walked: the options of a targeting with their sub-options, or the sub-options of one group. */
export interface Walk {
  readonly targetingId: string;
  readonly parent?: string | undefined;
  readonly signal: AbortSignal;
}

/** One option, and where the walk goes on behind it. */
export interface Step {
  readonly option: OptionRecord;
  readonly next: WalkPosition;
}

/** Goes through options in the service's order, each group followed by its sub-options. Throws ApiErrors. */
export async function* walkOptions(api: ManagementApi, walk: Walk, from: WalkPosition): AsyncGenerator<Step> {
  let inside = from.inside;
  for await (const { option, at: top } of listed(api, walk, walk.parent, from.top)) {
    const isGroup = walk.parent === undefined && hasSubOptions(option);
    if (inside === undefined) yield { option, next: isGroup ? { top, inside: 0 } : { top: top + 1 } };
    if (isGroup) {
      for await (const { option: child, at } of listed(api, walk, option._id, inside ?? 0)) {
        yield { option: { ...child, parent: option._id }, next: { top, inside: at + 1 } };
      }
    }
    inside = undefined;
  }
}

/** Every option that one List Options query gives, page by page (management-api 8.1 for the page size). */
async function* listed(api: ManagementApi, { targetingId, signal }: Walk, parent: string | undefined, from: number) {
  let at = from;
  while (true) {
    const query = { limit: LIMITS.listLimit.value, offset: at, ...(parent !== undefined && { parent }) };
    const page = await api.listOptions(targetingId, query, { signal });
    for (const option of page.items) {
      yield { option, at };
      at += 1;
    }
    if (isLastPage(page, at, query.limit)) return;
  }
}

/** Whether a page that ends at `end` is the last: by the total, or else because it is shorter than asked for. */
export function isLastPage({ items, total }: OptionPage, end: number, limit: number): boolean {
  return items.length === 0 || (total === undefined ? items.length < limit : end >= total);
}

function hasSubOptions({ type, childCount, children }: OptionRecord): boolean {
  if (childCount !== undefined) return childCount > 0;
  return type === "collection" || (children?.length ?? 0) > 0;
}
