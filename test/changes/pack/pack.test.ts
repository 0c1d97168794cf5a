import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { columnsOf, FAMILIES, LIMITS, lowerBound, randomFrom } from "../../../bench/packing-families.ts";
import { pack as packColumns, REQUEST_LIMITS } from "../../../src/changes/plan/requests.ts";
import type { Weight } from "../../../src/changes/rows/entries.ts";

const MEASURES = ["items", "options", "groupItems", "contextIds", "bytes"] as const;

const pack = (weights: readonly Weight[], limits: Weight) => packColumns(columnsOf(weights), limits);

function expectSound(weights: readonly Weight[], limits: Weight): number {
  const bins = pack(weights, limits);
  const places = new Int32Array(weights.length);
  let before = -1;
  for (const bin of bins) {
    const [first = -1] = bin;
    expect(first).toBeGreaterThan(before);
    before = first;
    expect(bin.every((position, at) => at === 0 || position > (bin[at - 1] ?? 0))).toBe(true);
    for (const position of bin) places[position] = (places[position] ?? 0) + 1;
    for (const measure of MEASURES) {
      const sum = bin.reduce((total, position) => total + (weights[position]?.[measure] ?? 0), 0);
      if (bin.length > 1) expect(sum).toBeLessThanOrEqual(limits[measure]);
    }
  }
  expect(places.every((count) => count === 1)).toBe(true);
  return bins.length;
}

const one = (given: Partial<Weight>): Weight => ({
  items: 1,
  options: 1,
  groupItems: 0,
  contextIds: 0,
  bytes: 60,
  ...given,
});

const anyWeight = fc.record({
  items: fc.constant(1),
  options: fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 5000 })),
  groupItems: fc.integer({ min: 0, max: 1 }),
  contextIds: fc.oneof(fc.integer({ min: 0, max: 10 }), fc.integer({ min: 0, max: 10_000 })),
  bytes: fc.oneof(fc.integer({ min: 30, max: 300 }), fc.integer({ min: 30, max: 7_999_000 })),
});

describe("pack", () => {
  it("puts every weight into exactly one request, in order, and no request over a limit", () => {
    const operation = fc.constantFrom("addOptions" as const, "updateOptions" as const);
    fc.assert(
      fc.property(fc.array(anyWeight, { maxLength: 150 }), operation, (weights, name) => {
        const requests = expectSound(weights, REQUEST_LIMITS[name]);
        expect(requests).toBeLessThanOrEqual(weights.length);
      }),
      { seed: 4, numRuns: 300 },
    );
  });

  it("gives the same requests for the same weights", () => {
    const make = () => FAMILIES["orthogonal (20 to 45 %)"]?.(30, randomFrom(7)) ?? [];
    expect(pack(make(), LIMITS)).toEqual(pack(make(), LIMITS));
  });

  it("keeps the order where that takes as few requests as any packing", () => {
    const weights = Array.from({ length: 12_000 }, () => one({}));
    expect(pack(weights, LIMITS).map((bin) => [bin[0], bin.length])).toEqual([
      [0, 5000],
      [5000, 5000],
      [10_000, 2000],
    ]);
  });

  it("gives nothing for nothing", () => {
    expect(pack([], LIMITS)).toEqual([]);
  });

  it("sends what exceeds a limit by itself alone", () => {
    const tooLarge = one({ contextIds: 10_001 });
    const small = one({ contextIds: 100 });
    const bins = pack([small, tooLarge, small, tooLarge, small], LIMITS);
    expect(bins).toEqual(expect.arrayContaining([[1], [3]]));
    expect(bins.flat().toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4]);
  });

  it("lets what is heavy in one limit share requests with what is heavy in another, whatever their order", () => {
    const contexts = Array.from({ length: 20 }, () => one({ contextIds: 9000, bytes: 90_000 }));
    const large = Array.from({ length: 20 }, () => one({ bytes: 7_000_000 }));
    expect(expectSound([...contexts, ...large], LIMITS)).toBe(20);
  });

  it("mixes light ones that are sorted by what they need", () => {
    const plain = Array.from({ length: 10_000 }, () => one({ contextIds: 0 }));
    const rich = Array.from({ length: 10_000 }, () => one({ contextIds: 4, bytes: 120 }));
    expect(expectSound([...plain, ...rich], LIMITS)).toBeLessThanOrEqual(5);
  });

  describe("comes near the optimum", () => {
    const cases = Object.keys(FAMILIES).flatMap((name) => [10, 60].map((requests) => ({ name, requests })));
    it.each(cases)("$name, about $requests requests", ({ name, requests }) => {
      const weights = FAMILIES[name]?.(requests, randomFrom(1)) ?? [];
      const bound = lowerBound(weights);
      expect(pack(weights, LIMITS).length).toBeLessThanOrEqual(Math.max(bound + 1, Math.floor(bound * 1.1)));
    });
  });

  it("reaches what is possible where the bound of sums and dual feasible functions is not", () => {
    // Three of these fit into a request only if they average a third of it or less, so most fit only in pairs. For any
    // slope, f(size) = min(1/2, 1/3 + slope (size - 1/3)) adds up to at most 1 in a request: in a pair, each f is at
    // most a half; in a triple, the slopes cancel out, because the sizes add up to at most 1. So the sum of all f is a
    // lower bound for the number of requests.
    const random = randomFrom(1);
    const sizes = Array.from({ length: 250 }, () => 3000 + Math.floor(random() * 2000));
    const weights = sizes.map((size) => one({ contextIds: size, bytes: 60 + size * 14 }));
    const slopes = Array.from({ length: 60 }, (_, at) => at / 5);
    const bounds = slopes.map((slope) => {
      const f = (size: number): number => Math.max(0, Math.min(1 / 2, 1 / 3 + slope * (size / 10_000 - 1 / 3)));
      return Math.ceil(sizes.reduce((sum, size) => sum + f(size), 0) - 1e-9);
    });
    expect(pack(weights, LIMITS).length).toBeLessThanOrEqual(Math.max(...bounds) * 1.06);
  });
});
