import { type Shelf, shelvesOf } from "./shelf.ts";
import { MEASURES } from "./weigh.ts";
import type { Weight } from "./work.ts";

/** From this share of a limit on a weight is heavy: so few make up a request that which ones go together matters. */
const HEAVY = 1 / 16;
/** How many first halves of a pair are tried, spread over all sizes. */
const PAIRS_TRIED = 64;
/** How many light ones in a row may not fit before the closest fits are looked for. */
const MISSES = 32;

/**
 * Packs by filling one request after the other as full as it gets, measure by measure: the heaviest that is left, then
 * heavy ones whose sizes together come closest to the room, then light ones in their order, then what fills the last
 * gap. The heavy are completed by pairs, which leaves as much of large and small as there was; the light are taken as
 * they come, which leaves them as mixed as they were. So the last requests can be filled as well as the first ones.
 */
export function fillOneByOne(weights: readonly Weight[], bounds: readonly number[]): readonly number[][] {
  const { heavy, light, shares } = sorted(weights, bounds);
  const usual = usualShares(weights, bounds);
  const inOrder = lightPositions(shares);
  const bins: number[][] = [];
  let from = 0;
  for (let left = weights.length; left > 0; ) {
    const request = new Request(weights, bounds);
    for (const shelf of heavy) fillHeavy(request, shelf, usual[shelf.place] ?? 0);
    from = fillLight(request, inOrder, light, from);
    for (const shelf of light) fillGap(request, shelf);
    if (request.members.length === 0) throw new RangeError("a weight exceeds the limits by itself");
    left -= request.members.length;
    bins.push(request.members.sort((a, b) => a - b));
  }
  return bins.sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0));
}

/** A request that is being filled. */
class Request {
  readonly members: number[] = [];
  readonly #weights: readonly Weight[];
  readonly #bounds: readonly number[];
  readonly #room: number[];

  constructor(weights: readonly Weight[], bounds: readonly number[]) {
    this.#weights = weights;
    this.#bounds = bounds;
    this.#room = [...bounds];
  }

  /** The share of one limit that is still free. */
  room(place: number): number {
    return (this.#room[place] ?? 0) / (this.#bounds[place] ?? 1);
  }

  fits(position: number): boolean {
    const weight = this.#weights[position];
    return weight !== undefined && MEASURES.every((measure, place) => weight[measure] <= (this.#room[place] ?? 0));
  }

  fitsBoth(one: number, other: number): boolean {
    const [a, b] = [this.#weights[one], this.#weights[other]];
    if (a === undefined || b === undefined) return false;
    return MEASURES.every((measure, place) => a[measure] + b[measure] <= (this.#room[place] ?? 0));
  }

  add(position: number): void {
    this.members.push(position);
    const weight = this.#weights[position];
    MEASURES.forEach((measure, place) => {
      this.#room[place] = (this.#room[place] ?? 0) - (weight?.[measure] ?? 0);
    });
  }
}

function sorted(weights: readonly Weight[], bounds: readonly number[]) {
  const shares = new Float64Array(weights.length);
  const places = new Uint8Array(weights.length);
  weights.forEach((weight, position) => {
    MEASURES.forEach((measure, place) => {
      const share = weight[measure] / (bounds[place] ?? 1);
      if (share <= (shares[position] ?? 0)) return;
      shares[position] = share;
      places[position] = place;
    });
  });
  const isHeavy = (position: number): boolean => (shares[position] ?? 0) >= HEAVY;
  return {
    shares,
    heavy: shelvesOf(shares, places, isHeavy),
    light: shelvesOf(shares, places, (position) => !isHeavy(position)),
  };
}

/**
 * By limit: what the weights that take most of another limit take of this one in a usual request. That much is left to
 * them, or what is heavy in one limit would keep out what is heavy in another.
 */
function usualShares(weights: readonly Weight[], bounds: readonly number[]): readonly number[] {
  const totals = MEASURES.map(() => 0);
  const others = MEASURES.map(() => 0);
  for (const weight of weights) {
    const shares = MEASURES.map((measure, place) => weight[measure] / (bounds[place] ?? 1));
    const dearest = Math.max(...shares);
    shares.forEach((share, place) => {
      totals[place] = (totals[place] ?? 0) + share;
      if (share < dearest) others[place] = (others[place] ?? 0) + share;
    });
  }
  const requests = Math.max(1, ...totals);
  return others.map((share) => share / requests);
}

function lightPositions(shares: Float64Array): Int32Array {
  const positions: number[] = [];
  shares.forEach((share, position) => {
    if (share < HEAVY) positions.push(position);
  });
  return Int32Array.from(positions);
}

function fillHeavy(request: Request, shelf: Shelf, usual: number): void {
  const leave = Math.max(0, usual - (1 - request.room(shelf.place)));
  const put = (entry: number): void => {
    request.add(shelf.positionOf(entry));
    shelf.take(entry);
  };
  const first = shelf.fitting(0, request);
  if (first === undefined) return;
  put(first);
  for (;;) {
    const room = request.room(shelf.place) - leave;
    const largest = shelf.fitting(shelf.firstAtMost(room), request);
    if (largest === undefined) return;
    const size = shelf.share(largest);
    if (room < 2 * shelf.leastShare()) put(largest);
    else if (room <= 2 * size) for (const entry of bestPair(request, shelf, largest, room)) put(entry);
    else put(shelf.middle(request) ?? largest);
  }
}

/** The two whose sizes together come closest to the room; one where no second one fits beside it. */
function bestPair(request: Request, shelf: Shelf, largest: number, room: number): readonly number[] {
  let best: readonly number[] = [largest];
  let bestSum = shelf.share(largest);
  const stride = Math.max(1, Math.floor((shelf.size - largest) / PAIRS_TRIED));
  for (let one = shelf.following(largest); one !== undefined; one = shelf.following(one + stride)) {
    const other = shelf.following(Math.max(one + 1, shelf.firstAtMost(room - shelf.share(one))));
    if (other === undefined) continue;
    const sum = shelf.share(one) + shelf.share(other);
    if (sum <= bestSum || !request.fitsBoth(shelf.positionOf(one), shelf.positionOf(other))) continue;
    best = [one, other];
    bestSum = sum;
  }
  return best;
}

/** Light ones in their order, from the first that is left; gives where the next request begins to look. */
function fillLight(request: Request, inOrder: Int32Array, shelves: readonly Shelf[], from: number): number {
  let start = from;
  let misses = 0;
  for (let at = from; at < inOrder.length && misses < MISSES; at += 1) {
    const position = inOrder[at] ?? 0;
    const shelf = shelves.find((candidate) => candidate.holds(position));
    if (shelf === undefined) {
      if (at === start) start += 1;
      continue;
    }
    if (!request.fits(position)) {
      misses += 1;
      continue;
    }
    request.add(position);
    shelf.takePosition(position);
    if (at === start) start += 1;
  }
  return start;
}

function fillGap(request: Request, shelf: Shelf): void {
  for (;;) {
    const entry = shelf.fitting(shelf.firstAtMost(request.room(shelf.place)), request);
    if (entry === undefined) return;
    request.add(shelf.positionOf(entry));
    shelf.take(entry);
  }
}
