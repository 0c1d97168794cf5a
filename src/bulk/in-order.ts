import type { StepList } from "./step-table.ts";
import { MEASURES } from "./weigh.ts";
import type { Weight } from "./work.ts";

/**
 * Fills one request after the other with steps in their order. Gives the requests where no other way takes fewer, since
 * the weights alone fill so many; else undefined. Looks at numbers only, so that a hundred thousand steps cost little.
 */
export function requestsInOrder(
  steps: StepList,
  ids: readonly number[],
  limits: Weight,
): readonly (readonly number[])[] | undefined {
  const bounds = Float64Array.from(MEASURES, (measure) => limits[measure]);
  const weight = new Float64Array(MEASURES.length);
  const used = new Float64Array(MEASURES.length);
  const sums = new Float64Array(MEASURES.length);
  const requests: (readonly number[])[] = [];
  let from = 0;
  for (let at = 0; at < ids.length; at += 1) {
    steps.weigh(ids[at] ?? 0, weight);
    if (at > from && !fits(weight, used, bounds)) {
      requests.push(ids.slice(from, at));
      from = at;
      add(used, sums);
      used.fill(0);
    }
    add(weight, used);
  }
  if (ids.length > from) requests.push(ids.slice(from));
  add(used, sums);
  const fewest = sums.reduce((most, sum, place) => Math.max(most, Math.ceil(sum / (bounds[place] ?? 1))), 0);
  return requests.length <= fewest ? requests : undefined;
}

function fits(weight: Float64Array, used: Float64Array, bounds: Float64Array): boolean {
  for (let place = 0; place < weight.length; place += 1) {
    if ((used[place] ?? 0) + (weight[place] ?? 0) > (bounds[place] ?? 0)) return false;
  }
  return true;
}

function add(weight: Float64Array, to: Float64Array): void {
  for (let place = 0; place < weight.length; place += 1) to[place] = (to[place] ?? 0) + (weight[place] ?? 0);
}
