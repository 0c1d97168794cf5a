import { fillOneByOne } from "./fill.ts";
import { MEASURES } from "./weigh.ts";
import type { Weight } from "./work.ts";

/** One request to be: the positions of what it carries, in their order. */
export type Bin = readonly number[];

/**
 * Packs weights into few requests that respect every limit at once (architecture, step 3): in order where that takes as
 * few as their sum allows, else request by request as full as can be. Each weight must fit by itself. Gives the requests
 * in the order of their first members.
 */
export function pack(weights: readonly Weight[], limits: Weight): readonly Bin[] {
  const bounds = MEASURES.map((measure) => limits[measure]);
  const inOrder = nextFit(weights, bounds);
  if (inOrder.length <= sumBound(weights, bounds)) return inOrder;
  const filled = fillOneByOne(weights, bounds);
  return filled.length < inOrder.length ? filled : inOrder;
}

/** The fewest requests that any packing could take: for each limit the rounded-up sum. */
function sumBound(weights: readonly Weight[], bounds: readonly number[]): number {
  const sums = MEASURES.map((measure) => weights.reduce((total, weight) => total + weight[measure], 0));
  return sums.reduce((most, sum, place) => Math.max(most, Math.ceil(sum / (bounds[place] ?? 1))), 0);
}

function nextFit(weights: readonly Weight[], bounds: readonly number[]): readonly Bin[] {
  const bins: number[][] = [];
  let open: number[] = [];
  let left: number[] = [];
  weights.forEach((weight, position) => {
    const values = MEASURES.map((measure) => weight[measure]);
    if (open.length === 0 || values.some((value, place) => value > (left[place] ?? 0))) {
      open = [];
      left = [...bounds];
      bins.push(open);
    }
    open.push(position);
    left = left.map((room, place) => room - (values[place] ?? 0));
  });
  return bins;
}
