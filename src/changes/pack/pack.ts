import type { Weight } from "../rows/entries.ts";
import { fillRequests } from "./fill.ts";
import { fewestRequests, type PackingInput, packingInput, type WeightColumns } from "./packing-input.ts";

/** A planned request: the positions of its items, in order. */
export type Bin = readonly number[];

/** By position, the number of the request that carries it. */
interface Packing {
  readonly requestOf: Int32Array;
  readonly requests: number;
}

/** A way to pack. Weights without a place are packed again, into further requests. */
interface PackingWay {
  /** How many requests are filled side by side, as a part of the fewest that could do. */
  readonly part: number;
  /** Whether heavy weights leave room for the light ones. */
  readonly leaveRoom: boolean;
}

/** The ways that together did best on the families of `npm run bench -- packing`, the best one first. */
const WAYS: readonly PackingWay[] = [
  { part: 1, leaveRoom: false },
  { part: 1, leaveRoom: true },
  { part: 0.95, leaveRoom: true },
  { part: 0.9, leaveRoom: false },
  { part: 1.03, leaveRoom: true },
  { part: 1.1, leaveRoom: false },
  { part: 1.2, leaveRoom: false },
];
/** Ways beyond the second are tried while no more weights than this have been packed, all ways together. */
const ENOUGH = 300_000;
/** How many above the fewest that could do are good enough, as a part of them, for another way would take as long. */
const SPARE = { beforeThird: 0.01, after: 0.03 } as const;

/**
 * Packs weights into few requests that respect every limit at once. Packing in the given order is kept where no packing
 * could need fewer requests; otherwise several ways are tried, and the one with the fewest requests is kept. A weight
 * that exceeds a limit gets a request of its own. Gives the requests in the order of their first members.
 */
export function pack(weights: WeightColumns, limits: Weight): readonly Bin[] {
  const inOrder = packInOrder(weights, limits);
  if (inOrder.ends.length <= inOrder.bound) return rangesOf(inOrder.ends);
  const input = packingInput(weights, limits);
  const all = new Int32Array(weights.items.length).map((_, position) => position);
  const fewest = fewestRequests(input, all);
  let best: Packing | undefined;
  let fewestSoFar = inOrder.ends.length;
  for (const [tried, way] of WAYS.entries()) {
    const spare = tried < 2 ? SPARE.beforeThird : SPARE.after;
    if (fewestSoFar <= fewest * (1 + spare) || (tried >= 2 && tried * all.length > ENOUGH)) break;
    const packing = packOneWay(input, all, fewest, way);
    if (packing.requests >= fewestSoFar) continue;
    best = packing;
    fewestSoFar = packing.requests;
  }
  return best === undefined ? rangesOf(inOrder.ends) : binsOf(best);
}

function packOneWay(input: PackingInput, all: Int32Array, fewest: number, way: PackingWay): Packing {
  const requestOf = new Int32Array(all.length);
  let requests = 0;
  for (let rest = all; rest.length > 0; ) {
    const needed = rest === all ? fewest : fewestRequests(input, rest);
    const count = Math.max(1, Math.round(needed * way.part));
    const numbers = new Int32Array(count).fill(-1);
    rest = fillRequests(input, rest, count, way.leaveRoom, (position, at) => {
      let number = numbers[at] ?? 0;
      if (number < 0) {
        number = requests;
        numbers[at] = number;
        requests += 1;
      }
      requestOf[position] = number;
    });
  }
  return { requestOf, requests };
}

/**
 * Where requests end that are filled in order, beside the rounded-up sum of the limit that needs most. Plain numbers:
 * this runs for every import.
 */
function packInOrder(
  weights: WeightColumns,
  limits: Weight,
): { readonly ends: readonly number[]; readonly bound: number } {
  const { length } = weights.items;
  const ends: number[] = [];
  const before = { items: 0, options: 0, groupItems: 0, contextIds: 0, bytes: 0 };
  let [items, options, groupItems, contextIds, bytes] = [0, 0, 0, 0, 0];
  for (let position = 0; position < length; position += 1) {
    items += weights.items[position] ?? 0;
    options += weights.options[position] ?? 0;
    groupItems += weights.groupItems[position] ?? 0;
    contextIds += weights.contextIds[position] ?? 0;
    bytes += weights.bytes[position] ?? 0;
    const isFull =
      items > limits.items ||
      options > limits.options ||
      groupItems > limits.groupItems ||
      contextIds > limits.contextIds ||
      bytes > limits.bytes;
    if (isFull && position > 0) {
      ends.push(position);
      const first = weightAt(weights, position);
      before.items += items - first.items;
      before.options += options - first.options;
      before.groupItems += groupItems - first.groupItems;
      before.contextIds += contextIds - first.contextIds;
      before.bytes += bytes - first.bytes;
      ({ items, options, groupItems, contextIds, bytes } = first);
    }
  }
  if (length > 0) ends.push(length);
  const parts = [
    (before.items + items) / limits.items,
    (before.options + options) / limits.options,
    (before.groupItems + groupItems) / limits.groupItems,
    (before.contextIds + contextIds) / limits.contextIds,
    (before.bytes + bytes) / limits.bytes,
  ];
  return { ends, bound: Math.ceil(Math.max(...parts)) };
}

function weightAt(weights: WeightColumns, position: number): Weight {
  return {
    items: weights.items[position] ?? 0,
    options: weights.options[position] ?? 0,
    groupItems: weights.groupItems[position] ?? 0,
    contextIds: weights.contextIds[position] ?? 0,
    bytes: weights.bytes[position] ?? 0,
  };
}

function rangesOf(ends: readonly number[]): readonly Bin[] {
  let from = 0;
  return ends.map((end) => {
    const bin: number[] = [];
    for (; from < end; from += 1) bin.push(from);
    return bin;
  });
}

function binsOf({ requestOf, requests }: Packing): readonly Bin[] {
  const bins: number[][] = [];
  const numbers = new Int32Array(requests).fill(-1);
  for (let position = 0; position < requestOf.length; position += 1) {
    const request = requestOf[position] ?? 0;
    const number = numbers[request] ?? 0;
    if (number >= 0) bins[number]?.push(position);
    else {
      numbers[request] = bins.length;
      bins.push([position]);
    }
  }
  return bins;
}
