import { type ObjectResult, objectResult, type ReportedState } from "../../src/runs/report.ts";

/** Returns the results of at most `most` objects of a run, in order, starting with object number `from`. */
export function objectResults(
  state: ReportedState,
  from = 0,
  most = Number.POSITIVE_INFINITY,
): readonly ObjectResult[] {
  const count = Math.max(0, Math.min(most, state.objects.length - from));
  return Array.from({ length: count }, (_, at) => objectResult(state, from + at));
}
