import { REQUEST_LIMITS, type WeightColumns } from "../src/changes/plan/requests.ts";
import type { Weight } from "../src/changes/rows/entries.ts";

/** The limits that items are packed into. */
export const LIMITS = REQUEST_LIMITS.addOptions;

/** Creates items that fill about the given number of requests. */
export type Family = (requests: number, random: () => number) => Weight[];

/** Creates a small random generator (mulberry32), so that every run packs the same items. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
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

/** Returns an option with the given number of Context IDs of about ten bytes each. */
const option = (contextIds: number): Weight => item({ contextIds, bytes: 60 + contextIds * 14 });

/** Returns a new group with the given number of sub-options. */
const group = (children: number, contextIds = 0): Weight =>
  item({ options: 1 + children, groupItems: 1, contextIds, bytes: 60 + children * 40 + contextIds * 14 });

const times = (count: number, make: (position: number) => Weight): Weight[] =>
  Array.from({ length: Math.max(1, Math.round(count)) }, (_, position) => make(position));

function shuffled(weights: Weight[], random: () => number): Weight[] {
  for (let last = weights.length - 1; last > 0; last -= 1) {
    const other = Math.floor(random() * (last + 1));
    const [a, b] = [weights[last], weights[other]];
    if (a !== undefined && b !== undefined) [weights[last], weights[other]] = [b, a];
  }
  return weights;
}

const between = (random: () => number, low: number, high: number): number => low + random() * (high - low);
const upTo = (random: () => number, most: number): number => Math.floor(random() * (most + 1));

/** A quarter of the items needs a large share of the Context IDs that a request allows. The others need almost none. */
const quarterHeavy =
  (low: number, high: number): Family =>
  (requests, random) =>
    shuffled(
      times((requests * 4) / ((low + high) / 2), (position) =>
        option(position % 4 === 0 ? Math.floor(between(random, low, high) * LIMITS.contextIds) : upTo(random, 2)),
      ),
      random,
    );

/**
 * Equal numbers of items that need many Context IDs, many bytes or many sub-options; if `kinds` is 4, also many group
 * items.
 */
const orthogonal =
  (low: number, high: number, { kinds = 3, bytes = 20_000 } = {}): Family =>
  (requests, random) =>
    shuffled(
      times((requests * kinds) / ((low + high) / 2), (position) => {
        const share = between(random, low, high);
        if (position % kinds === 0) return item({ contextIds: Math.floor(share * LIMITS.contextIds), bytes });
        if (position % kinds === 1) return item({ bytes: Math.floor(share * LIMITS.bytes) });
        if (position % kinds === 2) return item({ options: Math.floor(share * LIMITS.options), groupItems: 1, bytes });
        return item({ groupItems: Math.floor(share * LIMITS.groupItems), bytes });
      }),
      random,
    );

const groups =
  (perRequest: number, least: number, most: number, contextIds = 0): Family =>
  (requests, random) =>
    times(requests * perRequest, () => group(least + upTo(random, most - least), upTo(random, contextIds)));

/** The numbers of Context IDs follow Zipf's law, up to a maximum. */
const zipf =
  (exponent: number, most: number, perRequest: number): Family =>
  (requests, random) =>
    times(requests * perRequest, () => {
      const power = 1 - exponent;
      const exact = power === 0 ? most ** random() : (1 + random() * ((most + 1) ** power - 1)) ** (1 / power);
      return option(Math.max(1, Math.min(most, Math.floor(exact))));
    });

const longIds =
  (perRequest: number, least: number, most: number, bytes: (random: () => number) => number): Family =>
  (requests, random) =>
    times(requests * perRequest, () => {
      const contextIds = least + upTo(random, most - least);
      return item({ contextIds, bytes: 60 + Math.floor(contextIds * bytes(random)) });
    });

const giantAmong =
  (giant: Weight, other: (random: () => number) => Weight, perRequest: number): Family =>
  (requests, random) =>
    shuffled([giant, ...times(requests * perRequest - 1, () => other(random))], random);

/** Kinds of items to pack, each in several variants. */
export const FAMILIES: Readonly<Record<string, Family>> = {
  "uniform tiny": (requests) => {
    const tiny = item({});
    return times(requests * 5000, () => tiny);
  },
  "tiny with up to 8 Context IDs": (requests, random) => times(requests * 2500, () => option(upTo(random, 8))),
  "thirds of a limit plus one": (requests) => times(requests * 2, () => option(3334)),
  "thirds plus one, of three limits": (requests, random) =>
    shuffled(orthogonal(1 / 3 + 0.0002, 1 / 3 + 0.0003)(requests * (2 / 3), random), random),
  "thirds plus one, and tiny ones": (requests, random) =>
    shuffled([...times(requests * 2, () => option(3334)), ...times(requests * 500, () => option(3))], random),
  "just over half": (requests) => times(requests, () => option(5001)),
  "just over half, and their complements": (requests, random) =>
    shuffled(
      [
        ...times(requests, () => option(5001 + upTo(random, 999))),
        ...times(requests, () => option(3000 + upTo(random, 1500))),
      ],
      random,
    ),
  "just over half, and tiny ones to the brim": (requests) => [
    ...times(requests, () => option(5001)),
    ...times(requests * 1666, () => option(3)),
  ],
  "a quarter heavy, the rest tiny": quarterHeavy(0.18, 0.32),
  "a quarter heavy (10 to 30 %)": quarterHeavy(0.1, 0.3),
  "a quarter heavy (20 to 45 %)": quarterHeavy(0.2, 0.45),
  "a quarter heavy (exactly 25 %)": quarterHeavy(0.25, 0.25),
  "a quarter heavy (2 to 8 %)": quarterHeavy(0.02, 0.08),
  "orthogonal (heavy in one limit each)": orthogonal(0.05, 0.3),
  "orthogonal (20 to 45 %)": orthogonal(0.2, 0.45),
  "orthogonal (30 to 60 %)": orthogonal(0.3, 0.6),
  "orthogonal (10 to 90 %)": orthogonal(0.1, 0.9),
  "orthogonal (1 to 10 %)": orthogonal(0.01, 0.1),
  "orthogonal (two limits)": orthogonal(0.2, 0.45, { kinds: 2 }),
  "orthogonal (four limits)": orthogonal(0.2, 0.45, { kinds: 4 }),
  "orthogonal (nothing of the others)": orthogonal(0.2, 0.45, { bytes: 60 }),
  "groups with children": groups(150, 0, 60),
  "groups with 1 to 150 children": groups(66, 1, 150),
  "groups with 100 to 2,400 children": groups(4, 100, 2400),
  "groups with children and Context IDs": groups(100, 0, 60, 200),
  "sub-options of existing groups": (requests) => times(requests * 150, () => item({ groupItems: 1, bytes: 100 })),
  "sub-options with up to 133 Context IDs": (requests, random) =>
    times(requests * 150, () => ({ ...option(upTo(random, 133)), groupItems: 1 })),
  "sub-options after options": (requests) => [
    ...times(requests * 1500, () => item({})),
    ...times(requests * 150, () => item({ groupItems: 1, bytes: 100 })),
  ],
  "Zipf-distributed Context IDs": zipf(2, 10_000, 1000),
  "Zipf-distributed, exponent 1": zipf(1, 10_000, 9),
  "Zipf-distributed, exponent 1.5": zipf(1.5, 10_000, 100),
  "Zipf-distributed, exponent 0.6": zipf(0.6, 2000, 18),
  "long multi-byte IDs near the byte limit": longIds(12, 500, 1100, () => 820),
  "long IDs, 500 to 1,500 each": longIds(10, 500, 1500, () => 799),
  "long IDs of 700 to 900 bytes": longIds(10, 500, 1500, (random) => between(random, 700, 900)),
  "long IDs, few an option": longIds(2000, 1, 9, (random) => between(random, 780, 860)),
  "one giant among many": giantAmong(option(10_000), (random) => option(upTo(random, 4)), 4900),
  "one giant among medium ones": giantAmong(option(10_000), (random) => option(300 + upTo(random, 400)), 20),
  "one giant group among many": giantAmong(group(4999), () => option(1), 5000),
};

/**
 * Returns a lower bound for the number of requests: the largest of the bounds for each limit. The bound for a limit is
 * the sum of the weights divided by the limit, rounded up, or a larger one from the dual feasible functions u(1) to
 * u(10) of Fekete and Schepers.
 */
export function lowerBound(weights: readonly Weight[]): number {
  return Math.max(
    columnBound(
      Float64Array.from(weights, ({ items }) => items),
      LIMITS.items,
    ),
    columnBound(
      Float64Array.from(weights, ({ options }) => options),
      LIMITS.options,
    ),
    columnBound(
      Float64Array.from(weights, ({ groupItems }) => groupItems),
      LIMITS.groupItems,
    ),
    columnBound(
      Float64Array.from(weights, ({ contextIds }) => contextIds),
      LIMITS.contextIds,
    ),
    columnBound(
      Float64Array.from(weights, ({ bytes }) => bytes),
      LIMITS.bytes,
    ),
  );
}

function columnBound(values: Float64Array, limit: number): number {
  let most = Math.ceil(values.reduce((sum, value) => sum + value, 0) / limit);
  for (let k = 1; k <= 10; k += 1) {
    let sum = 0;
    for (const value of values) {
      const multiple = (k + 1) * value;
      if (multiple >= limit) sum += multiple % limit === 0 ? value * k : Math.floor(multiple / limit) * limit;
    }
    most = Math.max(most, Math.ceil(sum / (limit * k)));
  }
  return most;
}

/** The maximum ratio of the number of requests to its lower bound: in a single family, and on average. */
export const MAX_MORE = { inOne: 1.3, onAverage: 1.06 } as const;

/** Converts weights to the input of `pack`: one array for each measure. */
export function columnsOf(weights: readonly Weight[]): WeightColumns {
  const column = (measure: keyof Weight): Uint32Array => Uint32Array.from(weights, (weight) => weight[measure]);
  return {
    items: column("items"),
    options: column("options"),
    groupItems: column("groupItems"),
    contextIds: column("contextIds"),
    bytes: column("bytes"),
  };
}
