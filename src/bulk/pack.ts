import { fillRequests } from "./fill.ts";
import { fewestRequests, type Loads, loadsOf } from "./loads.ts";
import type { Weight } from "./work.ts";

/** One request to be: the positions of what it carries, in their order. */
export type Bin = readonly number[];

/** By position, the number of the request that carries it. */
interface Packing {
  readonly requestOf: Int32Array;
  readonly requests: number;
}

/** A way to pack. What finds no place is packed again, into requests of its own. */
interface Way {
  /** How many requests are filled side by side, as a part of the fewest that could do. */
  readonly part: number;
  /** Whether heavy weights leave room for the light ones. */
  readonly leaveRoom: boolean;
}

/** The ways that together did best on the families of `npm run bench:packing`, the best one first. */
const WAYS: readonly Way[] = [
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
 * Packs weights into few requests that respect every limit at once (architecture, step 3): in order where that takes as
 * few as any packing could, else in several ways, of which the best is kept. What exceeds a limit by itself goes alone.
 * Gives the requests in the order of their first members.
 */
export function pack(weights: readonly Weight[], limits: Weight): readonly Bin[] {
  const inOrder = packInOrder(weights, limits);
  if (inOrder.requests <= inOrder.bound) return binsOf(inOrder);
  const loads = loadsOf(weights, limits);
  const all = new Int32Array(weights.length).map((_, position) => position);
  const fewest = fewestRequests(loads, all);
  let best: Packing = inOrder;
  for (const [tried, way] of WAYS.entries()) {
    const spare = tried < 2 ? SPARE.beforeThird : SPARE.after;
    if (best.requests <= fewest * (1 + spare) || (tried >= 2 && tried * weights.length > ENOUGH)) break;
    const packing = packOneWay(loads, all, fewest, way);
    if (packing.requests < best.requests) best = packing;
  }
  return binsOf(best);
}

function packOneWay(loads: Loads, all: Int32Array, fewest: number, way: Way): Packing {
  const requestOf = new Int32Array(all.length);
  let requests = 0;
  for (let rest = all; rest.length > 0; ) {
    const needed = rest === all ? fewest : fewestRequests(loads, rest);
    const count = Math.max(1, Math.round(needed * way.part));
    const numbers = new Int32Array(count).fill(-1);
    rest = fillRequests(loads, rest, count, way.leaveRoom, (position, at) => {
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

/** In order, beside the rounded-up sum of the limit that needs most. Plain numbers: this runs for every import. */
function packInOrder(weights: readonly Weight[], limits: Weight): Packing & { readonly bound: number } {
  const requestOf = new Int32Array(weights.length);
  const before = { items: 0, options: 0, groupItems: 0, contextIds: 0, bytes: 0 };
  let [items, options, groupItems, contextIds, bytes] = [0, 0, 0, 0, 0];
  let requests = 0;
  for (const [position, weight] of weights.entries()) {
    const isFull =
      items + weight.items > limits.items ||
      options + weight.options > limits.options ||
      groupItems + weight.groupItems > limits.groupItems ||
      contextIds + weight.contextIds > limits.contextIds ||
      bytes + weight.bytes > limits.bytes;
    if (isFull || requests === 0) {
      requests += 1;
      before.items += items;
      before.options += options;
      before.groupItems += groupItems;
      before.contextIds += contextIds;
      before.bytes += bytes;
      [items, options, groupItems, contextIds, bytes] = [0, 0, 0, 0, 0];
    }
    items += weight.items;
    options += weight.options;
    groupItems += weight.groupItems;
    contextIds += weight.contextIds;
    bytes += weight.bytes;
    requestOf[position] = requests - 1;
  }
  const parts = [
    (before.items + items) / limits.items,
    (before.options + options) / limits.options,
    (before.groupItems + groupItems) / limits.groupItems,
    (before.contextIds + contextIds) / limits.contextIds,
    (before.bytes + bytes) / limits.bytes,
  ];
  return { requestOf, requests, bound: Math.ceil(Math.max(...parts)) };
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
