import type { BulkOperation } from "../../spec/routes.ts";
import type { PlannedRequest, Weight } from "../rows/entries.ts";
import { RowBlock } from "../rows/row-block.ts";
import type { StepList } from "../rows/steps.ts";
import { fillRequests } from "./filling.ts";
import {
  columnsOf,
  fewestRequests,
  type PackingInput,
  packingInput,
  REQUEST_LIMITS,
  type WeightColumns,
} from "./packing-input.ts";

/** The order in which operations leave: steps that create something come before those that use it. */
const ORDER: readonly BulkOperation[] = [
  "createTargetings",
  "addOptions",
  "renameTargetings",
  "updateOptions",
  "deleteOptions",
  "deleteTargetings",
];

/** Requests, each the IDs of the steps in it. */
export type Requests = readonly (readonly number[])[];

/** The steps to put into requests. */
type Steps = Pick<StepList, "length" | "partAt" | "parts" | "weightOf" | "areIndependent">;

/**
 * The next requests out of steps that may all leave now: those of the operation that comes first, packed.
 * Steps for which `apartBy` gives different keys do not share a request. Steps are named by their IDs.
 */
export function nextRequests(steps: Steps, ready: readonly number[], apartBy?: (step: number) => string): Requests {
  const [next] = inOrder(steps, ready);
  if (next === undefined) return [];
  const apart = apartBy === undefined ? [next] : [...groups(next, apartBy).values()];
  return apart.flatMap((ids) => packed(steps, ids));
}

/** Steps of one operation, packed. */
function packed(steps: Steps, ids: readonly number[]): Requests {
  const operation = operationOf(steps, ids);
  if (operation === undefined) return [];
  const weights = columnsOf(ids.length, (at) => steps.weightOf(ids[at] ?? 0));
  const requests = pack(weights, REQUEST_LIMITS[operation]);
  return requests.map((members) => members.map((member) => ids[member] ?? 0));
}

/** Steps by their operations, in the order in which these leave. */
function inOrder(steps: Steps, ids: readonly number[]): Requests {
  const byOperation = groups(ids, (id) => steps.partAt(id)?.operation);
  return ORDER.flatMap((operation) => {
    const some = byOperation.get(operation);
    return some === undefined ? [] : [some];
  });
}

function groups<Key>(ids: readonly number[], keyOf: (id: number) => Key): ReadonlyMap<Key, readonly number[]> {
  const byKey = new Map<Key, number[]>();
  let last: { readonly key: Key; readonly together: number[] } | undefined;
  for (const id of ids) {
    const key = keyOf(id);
    if (last?.key !== key) last = { key, together: byKey.get(key) ?? [] };
    if (last.together.push(id) === 1) byKey.set(key, last.together);
  }
  return byKey;
}

/** The operation of steps that have the same one. */
function operationOf(steps: Steps, [first = -1]: readonly number[] = []): BulkOperation | undefined {
  return steps.partAt(first)?.operation;
}

/** The requests that the steps need if every answer is a success: the plan that a dry run shows. */
export function plannedRequests(steps: Steps): Requests {
  const all: number[] = [];
  for (let id = 0; id < steps.length; id += 1) all.push(id);
  if (steps.areIndependent()) return inOrder(steps, all).flatMap((ids) => packed(steps, ids));
  const needs = needsOf(steps);
  const requests: (readonly number[])[] = [];
  const done = new Set<number>();
  let left = all;
  while (left.length > 0) {
    const ready = left.filter((id) => (needs.get(id) ?? []).every((needed) => done.has(needed)));
    const next = nextRequests(steps, ready);
    if (next.length === 0) break;
    requests.push(...next);
    for (const request of next) for (const id of request) done.add(id);
    left = left.filter((id) => !done.has(id));
  }
  return requests;
}

/** Whether all steps are of one operation, and none waits for another: requests of them may leave in any order. */
export function areAlike(steps: Steps, requests: Requests): boolean {
  return steps.areIndependent() && operationOf(steps, requests[0]) === operationOf(steps, requests.at(-1));
}

/** The sums of planned requests. */
export function weighed(steps: Steps, requests: Requests): readonly PlannedRequest[] {
  return requests.flatMap((ids) => {
    const operation = operationOf(steps, ids);
    if (operation === undefined) return [];
    let [contextIds, bytes] = [0, 0];
    for (const id of ids) {
      const weight = steps.weightOf(id);
      contextIds += weight.contextIds;
      bytes += weight.bytes;
    }
    return [{ operation, items: ids.length, contextIds, bytes }];
  });
}

/** By step, where it needs any: the steps that must be done before. */
function needsOf(steps: Steps): ReadonlyMap<number, readonly number[]> {
  const needs = new Map<number, readonly number[]>();
  const makers = makersOf(steps);
  for (const step of steps.parts()) {
    // A row needs no other step, and no other step needs it.
    if (step instanceof RowBlock) continue;
    const made = step.bindings.flatMap(({ object }) => (object === undefined ? [] : (makers.get(object) ?? [])));
    const needed = [...(step.after ?? []), ...made];
    if (needed.length > 0) needs.set(step.id, needed);
  }
  return needs;
}

/** By object: the first step that makes it. */
function makersOf(steps: Steps): ReadonlyMap<number, number> {
  const makers = new Map<number, number>();
  for (const step of steps.parts()) {
    if (step instanceof RowBlock) continue;
    for (const object of step.objects) if (!makers.has(object)) makers.set(object, step.id);
  }
  return makers;
}

/** A planned request: the positions of its items, in order. */
type Bin = readonly number[];

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
