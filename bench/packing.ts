// How many requests packing needs, beside the fewest that any packing could: fixed families of items, at about 10, 100
// and 1,000 requests. Exits 1 where it takes more than the bound + 1, or from 50 requests up more than 5 % above it.
import { pack } from "../src/bulk/pack.ts";
import { MEASURES, REQUEST_LIMITS } from "../src/bulk/weigh.ts";
import type { Weight } from "../src/bulk/work.ts";

const ADD = REQUEST_LIMITS.addOptions;
const SEED = 20_260_101;

/** A small generator, so that every run packs the same items. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const item = (given: Partial<Weight>): Weight => ({
  items: 1,
  options: 1,
  groupItems: 0,
  contextIds: 0,
  bytes: 60,
  ...given,
});

/** What fills about one request, as often as there are to be requests. */
type Family = (requests: number, random: () => number) => Weight[];

const times = (count: number, make: (position: number) => Weight): Weight[] =>
  Array.from({ length: count }, (_, position) => make(position));

function shuffled(weights: Weight[], random: () => number): Weight[] {
  for (let last = weights.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    const [a, b] = [weights[last], weights[other]];
    if (a !== undefined && b !== undefined) [weights[last], weights[other]] = [b, a];
  }
  return weights;
}

const zipf = (random: () => number): number => Math.min(10_000, Math.floor(1 / (random() + 0.0001)));

const FAMILIES: Readonly<Record<string, Family>> = {
  "uniform tiny": (requests) => {
    const tiny = item({});
    return times(requests * 5000, () => tiny);
  },
  "thirds of a limit plus one": (requests) => times(requests * 2, () => item({ contextIds: 3334, bytes: 3334 * 12 })),
  "just over half": (requests) => times(requests, () => item({ contextIds: 5001, bytes: 5001 * 12 })),
  "a quarter heavy, the rest tiny": (requests, random) =>
    shuffled(
      times(requests * 16, (position) => {
        const contextIds = position % 4 === 0 ? 1800 + Math.floor(random() * 1400) : Math.floor(random() * 20);
        return item({ contextIds, bytes: 60 + contextIds * 14 });
      }),
      random,
    ),
  "orthogonal (heavy in one limit each)": (requests, random) =>
    shuffled(
      times(requests * 18, (position) => {
        const share = 0.05 + random() * 0.25;
        if (position % 3 === 0) return item({ contextIds: Math.floor(share * 10_000), bytes: 20_000 });
        if (position % 3 === 1) return item({ bytes: Math.floor(share * ADD.bytes) });
        return item({ options: Math.floor(share * 5000), groupItems: 1, bytes: 20_000 });
      }),
      random,
    ),
  "groups with children": (requests, random) =>
    times(requests * 150, () => {
      const children = Math.floor(random() * 60);
      return item({ options: 1 + children, groupItems: 1, bytes: 60 + children * 40 });
    }),
  "sub-options of existing groups": (requests) => times(requests * 150, () => item({ groupItems: 1, bytes: 100 })),
  "Zipf-distributed Context IDs": (requests, random) =>
    times(requests * 1100, () => {
      const contextIds = zipf(random);
      return item({ contextIds, bytes: 60 + contextIds * 14 });
    }),
  "long multi-byte IDs near the byte limit": (requests, random) =>
    times(requests * 12, () => {
      const contextIds = 500 + Math.floor(random() * 600);
      return item({ contextIds, bytes: contextIds * 820 });
    }),
  "one giant among many": (requests, random) => [
    ...times(requests * 2500, () => item({ contextIds: Math.floor(random() * 5), bytes: 90 })),
    item({ contextIds: 10_000, bytes: 140_000 }),
    ...times(requests * 2400, () => item({ contextIds: Math.floor(random() * 5), bytes: 90 })),
  ],
};

/** Per limit, the largest of the rounded-up sum and the dual feasible functions u(1) to u(10). */
function lowerBound(weights: readonly Weight[]): number {
  let bound = 0;
  for (const measure of MEASURES) {
    const limit = ADD[measure];
    if (!Number.isFinite(limit)) continue;
    for (let k = 0; k <= 10; k += 1) {
      let sum = 0;
      for (const weight of weights) {
        const value = weight[measure];
        const scaled = (k + 1) * value;
        sum += k === 0 || scaled % limit === 0 ? value * Math.max(k, 1) : Math.floor(scaled / limit) * limit;
      }
      bound = Math.max(bound, Math.ceil(sum / (limit * Math.max(k, 1)) - 1e-9));
    }
  }
  return bound;
}

let wrong = 0;
console.log(`seed ${SEED}`);
console.log("family | requests | lower bound | ms");
console.log("---|---:|---:|---:");
for (const [name, family] of Object.entries(FAMILIES)) {
  for (const requests of [10, 100, 1000]) {
    const weights = family(requests, randomFrom(SEED + requests));
    const start = performance.now();
    const packed = pack(weights, ADD).length;
    const ms = performance.now() - start;
    const bound = lowerBound(weights);
    const most = bound >= 50 ? Math.max(bound + 1, Math.floor(bound * 1.05)) : bound + 1;
    const verdict = packed <= most && (bound < 50 || packed <= bound * 1.05) ? "" : " TOO MANY";
    if (verdict !== "") wrong += 1;
    console.log(`${name} | ${packed} | ${bound} | ${ms.toFixed(0)}${verdict}`);
  }
}
process.exitCode = wrong === 0 ? 0 : 1;
