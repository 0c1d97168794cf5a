import { addTo, groupedBy } from "../../platform/by-key.ts";
import { LIMITS, OWN_BODY_BYTES } from "../../spec/limits.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { PlannedRequest, Weight } from "../rows/entries.ts";
import { RowBlock } from "../rows/row-block.ts";
import type { StepList } from "../rows/steps.ts";

/** The order in which operations are sent. Creates come first, because other steps may need the new objects. */
const ORDER: readonly BulkOperation[] = [
  "createTargetings",
  "addOptions",
  "renameTargetings",
  "updateOptions",
  "deleteOptions",
  "deleteTargetings",
];

export type Requests = readonly (readonly number[])[];

type Steps = Pick<StepList, "length" | "partAt" | "parts" | "weightOf" | "areIndependent">;

/**
 * Returns the requests to send next, which all have one operation. Only steps with the same `apartBy` key share a
 * request. Without `apartBy`, all may.
 */
export function nextRequests(steps: Steps, ready: readonly number[], apartBy?: (step: number) => string): Requests {
  const [next] = inOrder(steps, ready);
  if (next === undefined) return [];
  const apart = apartBy === undefined ? [next] : [...groupedBy(next, apartBy).values()];
  return apart.flatMap((ids) => packed(steps, ids));
}

function packed(steps: Steps, ids: readonly number[]): Requests {
  const operation = operationOf(steps, ids);
  if (operation === undefined) return [];
  const weights = columnsOf(ids.length, (at) => steps.weightOf(ids[at] ?? 0));
  const requests = pack(weights, REQUEST_LIMITS[operation]);
  return requests.map((members) => members.map((member) => ids[member] ?? 0));
}

function inOrder(steps: Steps, ids: readonly number[]): Requests {
  const byOperation = groupedBy(ids, (id) => steps.partAt(id)?.operation);
  return ORDER.flatMap((operation) => {
    const some = byOperation.get(operation);
    return some === undefined ? [] : [some];
  });
}

function operationOf(steps: Steps, [first = -1]: readonly number[] = []): BulkOperation | undefined {
  return steps.partAt(first)?.operation;
}

export function plannedRequests(steps: Steps): Requests {
  const all = Array.from({ length: steps.length }, (_, id) => id);
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

/** Returns whether requests may be sent in any order: all have one operation, and no step waits for another one. */
export function canSendInAnyOrder(steps: Steps, requests: Requests): boolean {
  return steps.areIndependent() && operationOf(steps, requests[0]) === operationOf(steps, requests.at(-1));
}

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

function needsOf(steps: Steps): ReadonlyMap<number, readonly number[]> {
  const needs = new Map<number, readonly number[]>();
  const makers = makersOf(steps);
  for (const step of steps.parts()) {
    // Rows are independent: they need no other step, and no other step needs them.
    if (step instanceof RowBlock) continue;
    const made = step.bindings.flatMap(({ object }) => (object === undefined ? [] : (makers.get(object) ?? [])));
    const needed = [...(step.after ?? []), ...made];
    if (needed.length > 0) needs.set(step.id, needed);
  }
  return needs;
}

function makersOf(steps: Steps): ReadonlyMap<number, number> {
  const makers = new Map<number, number>();
  for (const step of steps.parts()) {
    if (step instanceof RowBlock) continue;
    for (const object of step.objects) if (!makers.has(object)) makers.set(object, step.id);
  }
  return makers;
}

/** The bytes of a request body around its items: `{"items":[` and `]}`. */
const ENVELOPE_BYTES = 12;
const NO_LIMIT = Number.POSITIVE_INFINITY;

const OPTION_REQUEST = {
  items: LIMITS.optionItems.value,
  options: NO_LIMIT,
  groupItems: LIMITS.groupItems.value,
  contextIds: LIMITS.requestContextIds.value,
  bytes: OWN_BODY_BYTES - ENVELOPE_BYTES,
} as const;

const TARGETING_REQUEST = { ...OPTION_REQUEST, items: LIMITS.targetingItems.value, groupItems: NO_LIMIT } as const;

/** The maximum content of one request, by operation (management-api 8.1). */
export const REQUEST_LIMITS: Readonly<Record<BulkOperation, Weight>> = {
  createTargetings: { ...TARGETING_REQUEST, options: LIMITS.targetingCreateOptions.value },
  renameTargetings: TARGETING_REQUEST,
  deleteTargetings: TARGETING_REQUEST,
  addOptions: { ...OPTION_REQUEST, options: LIMITS.optionAddOptions.value },
  updateOptions: OPTION_REQUEST,
  deleteOptions: OPTION_REQUEST,
};

export const MEASURES = ["items", "options", "groupItems", "contextIds", "bytes"] as const;

type Bin = readonly number[];

/** The weights of many items, as one array for each measure, which saves memory: an import has 100,000 items. */
export type WeightColumns = Readonly<Record<keyof Weight, Uint32Array>>;

function columnsOf(count: number, weightOf: (position: number) => Weight): WeightColumns {
  const column = (): Uint32Array => new Uint32Array(count);
  const columns = { items: column(), options: column(), groupItems: column(), contextIds: column(), bytes: column() };
  for (let position = 0; position < count; position += 1) {
    const weight = weightOf(position);
    for (const measure of MEASURES) columns[measure][position] = weight[measure];
  }
  return columns;
}

interface Column {
  readonly values: Uint32Array;
  readonly limit: number;
}

/**
 * Distributes items over requests so that none exceeds a limit. If keeping the given order needs no more requests than
 * necessary, it is kept. Otherwise the first-fit method is tried in the given order and in the order of size. An item
 * that exceeds a limit alone has its own request. Requests are sorted by their first items.
 */
export function pack(weights: WeightColumns, limits: Weight): readonly Bin[] {
  const columns = MEASURES.map((measure) => ({ values: weights[measure], limit: limits[measure] }));
  const needed = columns.map(({ values, limit }) => values.reduce((sum, value) => sum + value, 0) / limit);
  const inOrder = nextFit(columns);
  if (inOrder.length <= Math.max(...needed.map(Math.ceil))) return inOrder;
  // If all items together do not exceed a limit, no request can, so this limit is not checked.
  const scarce = columns.filter((_, place) => (needed[place] ?? 0) > 1);
  const positions = Uint32Array.from(weights.items.keys());
  const shares = Float64Array.from(positions, (position) =>
    Math.max(...scarce.map(({ values, limit }) => (values[position] ?? 0) / limit)),
  );
  const byShare = positions.toSorted((one, other) => (shares[other] ?? 0) - (shares[one] ?? 0) || one - other);
  return [positions, byShare].reduce((best, order) => firstFit(scarce, order, best.length - 1) ?? best, inOrder);
}

function nextFit(columns: readonly Column[]): readonly Bin[] {
  const bins: number[][] = [];
  let bin: number[] = [];
  let sums = columns.map(() => 0);
  const { length = 0 } = columns[0]?.values ?? [];
  for (let position = 0; position < length; position += 1) {
    let isFull = false;
    for (let place = 0; place < columns.length; place += 1) {
      const { values, limit = 0 } = columns[place] ?? {};
      const sum = (sums[place] ?? 0) + (values?.[position] ?? 0);
      sums[place] = sum;
      isFull ||= sum > limit;
    }
    if (isFull || position === 0) {
      bin = [];
      bins.push(bin);
      sums = columns.map(({ values }) => values[position] ?? 0);
    }
    bin.push(position);
  }
  return bins;
}

/**
 * Puts each item into the first request that has room for it. Returns undefined if more than `most` requests are
 * needed. Each measure has a tree: a leaf is the free room of a request, and every other node is the maximum of its
 * children.
 */
function firstFit(columns: readonly Column[], order: Uint32Array, most: number): readonly Bin[] | undefined {
  const leaves = 2 ** Math.ceil(Math.log2(Math.max(1, most)));
  const trees = columns.map(() => new Float64Array(2 * leaves).fill(-1));
  const find = (node: number, position: number): number | undefined => {
    for (const [place, { values }] of columns.entries()) {
      if ((trees[place]?.[node] ?? 0) < (values[position] ?? 0)) return undefined;
    }
    return node >= leaves ? node : (find(2 * node, position) ?? find(2 * node + 1, position));
  };
  const requestOf = new Uint32Array(order.length);
  let requests = 0;
  for (const position of order) {
    const found = find(1, position);
    if (found === undefined && requests === most) return undefined;
    const leaf = found ?? leaves + requests++;
    requestOf[position] = leaf;
    for (const [place, { values, limit }] of columns.entries()) {
      const tree = trees[place] ?? new Float64Array();
      tree[leaf] = (found === undefined ? limit : (tree[leaf] ?? 0)) - (values[position] ?? 0);
      for (let node = leaf >> 1; node > 0; node >>= 1) {
        tree[node] = Math.max(tree[2 * node] ?? 0, tree[2 * node + 1] ?? 0);
      }
    }
  }
  const bins = new Map<number, number[]>();
  for (const [position, leaf] of requestOf.entries()) addTo(bins, leaf, position);
  return [...bins.values()];
}
