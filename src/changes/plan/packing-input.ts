import { LIMITS, OWN_BODY_BYTES } from "../../spec/limits.ts";
import type { BulkOperation } from "../../spec/routes.ts";
import type { Weight } from "../rows/entries.ts";

/**
 * The least share of a limit that makes a weight heavy: few heavy weights fill a request, so that their choice matters.
 */
const HEAVY = 1 / 32;
/** The dual feasible functions u(1) to u(10) count what is larger than a limit divided by their number plus one. */
const FUNCTIONS = 10;

/** Weights, by position, as a column for each measure. */
export type WeightColumns = Readonly<Record<keyof Weight, Uint32Array>>;

/** Makes columns of `count` weights. */
export function columnsOf(count: number, weightOf: (position: number) => Weight): WeightColumns {
  const column = (): Uint32Array => new Uint32Array(count);
  const columns = { items: column(), options: column(), groupItems: column(), contextIds: column(), bytes: column() };
  for (let position = 0; position < count; position += 1) {
    const { items, options, groupItems, contextIds, bytes } = weightOf(position);
    columns.items[position] = items;
    columns.options[position] = options;
    columns.groupItems[position] = groupItems;
    columns.contextIds[position] = contextIds;
    columns.bytes[position] = bytes;
  }
  return columns;
}

/**
 * Weights as columns, one for each limit that all of them together exceed; the other limits cannot matter. A place is
 * the number of a column.
 */
export interface PackingInput {
  readonly bounds: readonly number[];
  readonly columns: readonly Uint32Array[];
  /** By position, the place of the limit of which a weight takes the largest share. */
  readonly places: Uint8Array;
  /** By position, that share. */
  readonly shares: Float64Array;
}

/** The columns of weights that do not all fit into one request. */
export function packingInput(weights: WeightColumns, limits: Weight): PackingInput {
  const measures = MEASURES.filter((measure) => sumOf(weights[measure]) > limits[measure]);
  const columns = measures.map((measure) => weights[measure]);
  const bounds = measures.map((measure) => limits[measure]);
  const places = new Uint8Array(weights.items.length);
  const shares = new Float64Array(weights.items.length);
  columns.forEach((column, place) => {
    const bound = bounds[place] ?? 1;
    for (let position = 0; position < column.length; position += 1) {
      const share = (column[position] ?? 0) / bound;
      if (share <= (shares[position] ?? 0)) continue;
      shares[position] = share;
      places[position] = place;
    }
  });
  return { bounds, columns, places, shares };
}

function sumOf(column: Uint32Array): number {
  let sum = 0;
  for (const value of column) sum += value;
  return sum;
}

/** Whether a weight takes much of some limit. */
export function isHeavy({ shares }: PackingInput, position: number): boolean {
  return (shares[position] ?? 0) >= HEAVY;
}

/** The places of the limits of which a weight takes much, the one that it takes most of first. */
export function heavyPlaces({ bounds, columns, places }: PackingInput, position: number): readonly number[] {
  const first = places[position] ?? 0;
  const others = bounds.flatMap((bound, place) =>
    place !== first && (columns[place]?.[position] ?? 0) >= HEAVY * bound ? [place] : [],
  );
  return [first, ...others];
}

/** The sums of weights, by place. */
export function totals({ columns }: PackingInput, positions: ArrayLike<number>): number[] {
  return columns.map((column) => {
    let sum = 0;
    for (let at = 0; at < positions.length; at += 1) sum += column[positions[at] ?? 0] ?? 0;
    return sum;
  });
}

/** A number of requests that no packing can go below: by limit the rounded-up sum, and dual feasible functions. */
export function fewestRequests(input: PackingInput, positions: Int32Array): number {
  const sums = totals(input, positions);
  const bounds = input.columns.map((column, place) => {
    const limit = input.bounds[place] ?? 1;
    const large = positions.filter((position) => (column[position] ?? 0) * (FUNCTIONS + 1) > limit);
    const dual = Array.from({ length: FUNCTIONS }, (_, k) => dualBound(column, large, limit, k + 1));
    return Math.max(Math.ceil((sums[place] ?? 0) / limit), ...dual);
  });
  return Math.max(1, ...bounds);
}

/** The bound of u(k): a size counts as its multiple of 1/(k+1) rounded down, over k; an exact multiple as it is. */
function dualBound(column: Uint32Array, positions: Int32Array, limit: number, k: number): number {
  let sum = 0;
  for (const position of positions) {
    const size = Math.min(column[position] ?? 0, limit);
    const multiple = (k + 1) * size;
    sum += multiple % limit === 0 ? size * k : Math.floor(multiple / limit) * limit;
  }
  return Math.ceil(sum / (limit * k));
}

/** `{"items":[` and `]}`, the longer of the two envelopes of a bulk request. */
const ENVELOPE_BYTES = 12;

const BYTES = OWN_BODY_BYTES - ENVELOPE_BYTES;
const NO_LIMIT = Number.POSITIVE_INFINITY;

const OPTION_REQUEST = {
  items: LIMITS.optionItems.value,
  options: NO_LIMIT,
  groupItems: LIMITS.groupItems.value,
  contextIds: LIMITS.requestContextIds.value,
  bytes: BYTES,
} as const;

const TARGETING_REQUEST = {
  items: LIMITS.targetingItems.value,
  options: NO_LIMIT,
  groupItems: NO_LIMIT,
  contextIds: LIMITS.requestContextIds.value,
  bytes: BYTES,
} as const;

/** What one request may weigh, by operation (management-api 8.1). */
export const REQUEST_LIMITS: Readonly<Record<BulkOperation, Weight>> = {
  createTargetings: { ...TARGETING_REQUEST, options: LIMITS.targetingCreateOptions.value },
  renameTargetings: TARGETING_REQUEST,
  deleteTargetings: TARGETING_REQUEST,
  addOptions: { ...OPTION_REQUEST, options: LIMITS.optionAddOptions.value },
  updateOptions: OPTION_REQUEST,
  deleteOptions: OPTION_REQUEST,
};

/** The five measures of a weight, in the order in which packing looks at them. */
export const MEASURES = ["items", "options", "groupItems", "contextIds", "bytes"] as const;
