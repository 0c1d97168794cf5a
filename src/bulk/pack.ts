import { addWeights, fits, MEASURES, NO_WEIGHT } from "./weigh.ts";
import type { Weight } from "./work.ts";

/** One request to be: the positions of what it carries, in order, and what that weighs together. */
export interface Bin {
  readonly members: readonly number[];
  readonly weight: Weight;
}

interface OpenBin {
  members: number[];
  weight: Weight;
}

/**
 * Packs weights into few requests that respect every limit at once (architecture, step 3).
 * In order where that takes as few as the bound allows; else the heaviest first, each into the fullest request that
 * takes it. Each weight must fit by itself. Gives the bins in the order of their first members.
 */
export function pack(weights: readonly Weight[], limits: Weight): readonly Bin[] {
  const inOrder = nextFit(weights, limits);
  if (inOrder.length <= lowerBound(weights, limits)) return inOrder;
  const heaviestFirst = bestFitDecreasing(weights, limits);
  return heaviestFirst.length < inOrder.length ? heaviestFirst : inOrder;
}

/** The fewest requests that any packing could take: for each limit the rounded-up sum. */
export function lowerBound(weights: readonly Weight[], limits: Weight): number {
  const sum = weights.reduce(addWeights, NO_WEIGHT);
  return Math.max(0, ...MEASURES.map((measure) => Math.ceil(sum[measure] / limits[measure])));
}

function nextFit(weights: readonly Weight[], limits: Weight): readonly Bin[] {
  const bins: OpenBin[] = [];
  let open: OpenBin | undefined;
  weights.forEach((weight, position) => {
    const together = open === undefined ? undefined : addWeights(open.weight, weight);
    if (open !== undefined && together !== undefined && fits(together, limits)) {
      open.members.push(position);
      open.weight = together;
    } else {
      open = { members: [position], weight };
      bins.push(open);
    }
  });
  return bins;
}

function bestFitDecreasing(weights: readonly Weight[], limits: Weight): readonly Bin[] {
  const bySize = weights
    .map((weight, position) => ({ position, weight, size: share(weight, limits) }))
    .sort((a, b) => b.size - a.size || a.position - b.position);
  const bins: OpenBin[] = [];
  for (const { position, weight } of bySize) {
    let best: OpenBin | undefined;
    let bestShare = -1;
    for (const bin of bins) {
      const together = addWeights(bin.weight, weight);
      const filled = share(together, limits);
      if (filled > bestShare && fits(together, limits)) {
        best = bin;
        bestShare = filled;
      }
    }
    if (best === undefined) bins.push({ members: [position], weight });
    else {
      best.members.push(position);
      best.weight = addWeights(best.weight, weight);
    }
  }
  for (const bin of bins) bin.members.sort((a, b) => a - b);
  return bins.sort((a, b) => (a.members[0] ?? 0) - (b.members[0] ?? 0));
}

/** The largest share of a limit that a weight takes. */
function share(weight: Weight, limits: Weight): number {
  return Math.max(...MEASURES.map((measure) => weight[measure] / limits[measure]));
}
