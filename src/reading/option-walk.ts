import type { ManagementApi } from "../api/management.ts";
import type { OptionRecord } from "../spec/records.ts";
import { listPages, type OptionList } from "./pages.ts";

/** Where a walk goes on: at a top-level option, or inside it, behind so many of its sub-options. */
export interface WalkPosition {
  readonly top: number;
  readonly inside?: number | undefined;
}

/** What is walked: the options of a targeting with their sub-options, or the sub-options of one group. */
export interface Walk extends OptionList {
  /** Whether totals may change meanwhile (`listPages`). */
  readonly totalMayChange?: boolean | undefined;
}

/** One option, and where the walk goes on behind it. */
export interface Step {
  readonly option: OptionRecord;
  readonly next: WalkPosition;
}

/**
 * Goes through options in the service's order, each group followed by its sub-options. Throws ApiErrors, and a ListError
 * where a list shifts meanwhile: `steadily` begins anew then.
 */
export async function* walkOptions(api: ManagementApi, walk: Walk, from: WalkPosition): AsyncGenerator<Step> {
  let inside = from.inside;
  for await (const { option, at: top } of listed(api, walk, from.top)) {
    const isGroup = walk.parent === undefined && hasSubOptions(option);
    if (inside === undefined) yield { option, next: isGroup ? { top, inside: 0 } : { top: top + 1 } };
    if (isGroup) {
      for await (const { option: child, at } of listed(api, { ...walk, parent: option._id }, inside ?? 0)) {
        yield { option: { ...child, parent: option._id }, next: { top, inside: at + 1 } };
      }
    }
    inside = undefined;
  }
}

/** Every option that one List Options query gives, with its place in the list. */
async function* listed(api: ManagementApi, list: Walk, from: number) {
  for await (const { at, options } of listPages(api, list, { from, totalMayChange: list.totalMayChange === true })) {
    for (const [index, option] of options.entries()) yield { option, at: at + index };
  }
}

function hasSubOptions({ type, childCount, children }: OptionRecord): boolean {
  if (childCount !== undefined) return childCount > 0;
  return type === "collection" || (children?.length ?? 0) > 0;
}
