import type { ExceededLimit, PlanItem } from "./plan.ts";

/** Settings that limit what a plan may change. */
export interface Thresholds {
  /** Of a targeting's options that a plan may change, and that it may delete: percent, from 10 options up. */
  readonly maxChangePercent: number;
  readonly maxDeletes: number;
}

/** Percentages are checked from this number of options. */
const LEAST_OPTIONS = 10;

/** The settings that a plan exceeds. Creations do not count; deletions and changes each by themselves. */
export function exceededThresholds(
  items: readonly PlanItem[],
  options: number,
  { maxChangePercent, maxDeletes }: Thresholds,
): readonly ExceededLimit[] {
  const changed = items.filter(({ kind }) => kind === "change").length;
  const deleted = items.filter(({ kind }) => kind === "delete").length;
  const exceeded: ExceededLimit[] = [];
  if (deleted > maxDeletes) {
    exceeded.push({
      limit: "TARGETING_MCP_MAX_DELETES",
      of: "deleted options",
      there: options,
      wanted: deleted,
      fits: maxDeletes,
    });
  }
  if (options < LEAST_OPTIONS) return exceeded;
  const fits = Math.floor((maxChangePercent * options) / 100);
  for (const [of, wanted] of [
    ["changed options", changed],
    ["deleted options", deleted],
  ] as const) {
    if (wanted * 100 <= maxChangePercent * options) continue;
    exceeded.push({ limit: "TARGETING_MCP_MAX_CHANGE_PERCENT", of, there: options, wanted, fits });
  }
  return exceeded;
}
