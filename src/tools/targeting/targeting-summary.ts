import type { ManagementApi } from "../../api/management.ts";
import { isEmpty } from "../../reading/option-scan.ts";
import { walkOptions } from "../../reading/option-walk.ts";
import { steadily } from "../../reading/pages.ts";
import type { TargetingSummary } from "../../render/reading.ts";
import { type ToolContext, timeLeft } from "../context.ts";
import { TookTooLong } from "../within-wait.ts";

/**
 * Counts what a targeting holds (contract, `summary`), or as much of it as one wait is long enough for. Throws ApiErrors.
 */
export function summaryOf(
  targetingId: string,
  api: ManagementApi,
  context: Pick<ToolContext, "clock" | "signal" | "arrivedAt" | "waitMs">,
): Promise<TargetingSummary> {
  const { clock, signal } = context;
  const end = clock.now() + timeLeft(context);
  return steadily(async (walk) => {
    const counts = { topLevel: 0, groups: 0, subOptions: 0, withoutContexts: 0, contextIds: 0 };
    try {
      for await (const { option, walked } of walkOptions(api, { targetingId, signal, ...walk }, { top: 0 })) {
        Object.assign(counts, walked);
        if (option.type === "collection") counts.groups += 1;
        if (isEmpty(option)) counts.withoutContexts += 1;
        counts.contextIds += option.contextCount ?? 0;
        if (clock.now() >= end) return { ...counts, complete: false };
      }
    } catch (thrown) {
      if (thrown instanceof TookTooLong) return { ...counts, complete: false };
      throw thrown;
    }
    return { ...counts, complete: true };
  });
}
