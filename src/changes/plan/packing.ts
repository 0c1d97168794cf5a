import { addTo } from "../../platform/grouping.ts";
import { LIMITS, OWN_BODY_BYTES } from "../../spec/limits.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { Weight } from "../rows/entries.ts";

/** `{"items":[` and `]}` in the longer of the two forms. */
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

/** What one request may contain at most, by operation (management-api 8.1). */
export const REQUEST_LIMITS: Readonly<Record<BulkOperation, Weight>> = {
  createTargetings: { ...TARGETING_REQUEST, options: LIMITS.targetingCreateOptions.value },
  renameTargetings: TARGETING_REQUEST,
  deleteTargetings: TARGETING_REQUEST,
  addOptions: { ...OPTION_REQUEST, options: LIMITS.optionAddOptions.value },
  updateOptions: OPTION_REQUEST,
  deleteOptions: OPTION_REQUEST,
};

export const MEASURES = ["items", "options", "groupItems", "contextIds", "bytes"] as const;

/** The positions of the items of a request, in order. */
type Bin = readonly number[];

/** One column for each measure, indexed by position. That saves memory for the 100,000 weights of an import. */
export type WeightColumns = Readonly<Record<keyof Weight, Uint32Array>>;

export function columnsOf(count: number, weightOf: (position: number) => Weight): WeightColumns {
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
 * Distributes items over requests within every limit. The given order is kept if fewer requests are impossible.
 * Otherwise first-fit is tried in that order and from large to small. An item that exceeds a limit alone gets its own
 * request. Requests are in the order of their first items.
 */
export function pack(weights: WeightColumns, limits: Weight): readonly Bin[] {
  const columns = MEASURES.map((measure) => ({ values: weights[measure], limit: limits[measure] }));
  const needed = columns.map(({ values, limit }) => values.reduce((sum, value) => sum + value, 0) / limit);
  const inOrder = nextFit(columns);
  if (inOrder.length <= Math.max(...needed.map(Math.ceil))) return inOrder;
  // A limit that all items together stay within needs no further check.
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
 * Puts each item into the first request that has room for it. Returns undefined if that takes more than `most`
 * requests. A tree for each measure stores the free room: leaves are requests, other nodes have the maximum of their
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
