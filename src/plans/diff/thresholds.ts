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
  const fits = Math.floor((maxChangePercent * options) / 100);
  const limits = [
    ["TARGETING_MCP_MAX_DELETES", "deleted options", deleted, maxDeletes, 0],
    ["TARGETING_MCP_MAX_CHANGE_PERCENT", "changed options", changed, fits, LEAST_OPTIONS],
    ["TARGETING_MCP_MAX_CHANGE_PERCENT", "deleted options", deleted, fits, LEAST_OPTIONS],
  ] as const;
  return limits.flatMap(([limit, of, wanted, most, from]) =>
    options < from || wanted <= most ? [] : [{ limit, of, there: options, wanted, fits: most }],
  );
}
