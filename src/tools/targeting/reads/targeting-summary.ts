import * as z from "zod";
import type { ManagementApi } from "../../../api/management.ts";
import { isEmpty } from "../../../reading/option-scan.ts";
import { type WalkPosition, walkOptions } from "../../../reading/option-walk.ts";
import { steadily } from "../../../reading/pages.ts";
import { writeCursor } from "../../../render/budget.ts";
import type { TargetingSummary } from "../../../render/reading.ts";
import { type ToolContext, timeLeft } from "../../context.ts";
import { TookTooLong } from "../../within-wait.ts";
import { placeOf } from "./asked.ts";

const counted = z.strictObject({
  topLevel: z.int(),
  groups: z.int(),
  subOptions: z.int(),
  withoutContexts: z.int(),
  contextIds: z.int(),
});
/** Where the counting goes on, and what was counted before. */
const place = z.strictObject({ top: z.int().min(0), inside: z.int().min(0).optional(), counted });

const NOTHING: z.output<typeof counted> = { topLevel: 0, groups: 0, subOptions: 0, withoutContexts: 0, contextIds: 0 };

/** What was counted, and the cursor with which a further call goes on; absent where all was. */
export interface CountedSoFar {
  readonly summary: TargetingSummary;
  readonly cursor?: string;
}

/**
 * Counts what a targeting holds (`summary`), or as much of it as one wait is long enough for: a cursor goes on
 * from there. Throws ApiErrors, and a ToolError for a cursor of something else.
 */
export function summaryOf(
  targetingId: string,
  given: string | undefined,
  api: ManagementApi,
  context: Pick<ToolContext, "clock" | "signal" | "arrivedAt" | "waitMs">,
): Promise<CountedSoFar> {
  const { clock, signal } = context;
  const end = clock.now() + timeLeft(context);
  const query = { summary: targetingId };
  const start = placeOf("list", given, query, { schema: place, beginning: { top: 0, counted: NOTHING } });
  const before = start.counted;
  const stoppedAt = ({ top, inside }: WalkPosition, counts: typeof before): CountedSoFar => ({
    summary: { ...counts, complete: false },
    cursor: writeCursor(query, { top, ...(inside !== undefined && { inside }), counted: counts }),
  });
  return steadily(async (walk) => {
    const counts = { ...before };
    let behind: WalkPosition = start;
    try {
      for await (const { option, walked, next } of walkOptions(api, { targetingId, signal, ...walk }, start)) {
        counts.topLevel = before.topLevel + walked.topLevel;
        counts.subOptions = before.subOptions + walked.subOptions;
        if (option.type === "collection") counts.groups += 1;
        if (isEmpty(option)) counts.withoutContexts += 1;
        counts.contextIds += option.contextCount ?? 0;
        behind = next;
        if (clock.now() >= end) return stoppedAt(behind, counts);
      }
    } catch (thrown) {
      if (thrown instanceof TookTooLong) return stoppedAt(behind, counts);
      throw thrown;
    }
    return { summary: { ...counts, complete: true } };
  });
}
