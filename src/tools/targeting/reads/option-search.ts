import type { ManagementApi } from "../../../api/management.ts";
import { type Hit, scanOptions } from "../../../reading/option-scan.ts";
import type { Walked, WalkPosition } from "../../../reading/option-walk.ts";
import { steadily } from "../../../reading/pages.ts";
import { type ToolContext, timeLeft } from "../../context.ts";
import { TookTooLong } from "../../within-wait.ts";
import type { OptionsQuery } from "./asked.ts";

/** How many options were looked at, of which kind, and how many of them were looked for. */
export interface Counted extends Walked {
  readonly found: number;
}

/** An option that was looked for, and what had been counted by then, itself included. */
export interface FoundOption extends Hit {
  readonly counted: Counted;
}

/** What was found, in the order of the walk; `next` is absent when the walk reached its end. */
interface Found {
  readonly hits: readonly FoundOption[];
  readonly counted: Counted;
  readonly next: WalkPosition | undefined;
  /** Whether the wait was over before the walk was. */
  readonly stopped: boolean;
}

/** What is looked for, from where, and how much of it is wanted. */
interface SearchJob {
  readonly query: OptionsQuery;
  readonly from: WalkPosition;
  /** How many options are given; the walk ends with the last of them, unless all are to be counted. */
  readonly most: number;
  readonly countsAll?: boolean;
  /** What was counted before `from`. */
  readonly counted: Counted;
  readonly fresh: boolean | undefined;
}

/**
 * Looks for options from a position on, until `most` are found, all were looked at, or one wait has passed; again where a
 * list shifted meanwhile. Throws ApiErrors.
 */
export function searchOptions(
  api: ManagementApi,
  context: ToolContext,
  { query, from, most, countsAll = false, counted: before, fresh }: SearchJob,
): Promise<Found> {
  const { clock, signal, contents: store } = context;
  const { targetingId, parent } = query;
  const end = clock.now() + timeLeft(context);
  return steadily(async (mayChange) => {
    const hits: FoundOption[] = [];
    let counted = before;
    let next: WalkPosition | undefined;
    const walk = { targetingId, parent, signal, ...mayChange };
    const scan = scanOptions(api, { walk, from, wanted: query, contents: { store, fresh } });
    try {
      for await (const { from: step, value } of scan) {
        const { walked } = step;
        counted = {
          topLevel: before.topLevel + walked.topLevel,
          subOptions: before.subOptions + walked.subOptions,
          found: counted.found + (value === undefined ? 0 : 1),
        };
        next = step.next;
        if (value !== undefined && hits.length < most) hits.push({ ...value, counted });
        if (hits.length >= most && !countsAll) return { hits, counted, next, stopped: false };
        if (clock.now() >= end) return { hits, counted, next, stopped: true };
      }
    } catch (thrown) {
      // What was found before a read that took too long is shown, and the cursor goes on behind it.
      if (thrown instanceof TookTooLong && next !== undefined) return { hits, counted, next, stopped: true };
      throw thrown;
    }
    return { hits, counted, next: undefined, stopped: false };
  });
}
