import { type Filling, type Move, move } from "./filling.ts";
import { type PackingInput, totals } from "./packing-input.ts";

/** The most passes over all requests; usually ten passes leave nothing to gain. */
const SWEEPS = 30;
/** The most pairs that are compared in all: about a quarter of a second. */
const STEPS = 5_000_000;
/** The least gain of an exchange, as a share of a request: less is not worth the time. */
const LEAST_GAIN = 1e-4;
/** Pairs that could leave a request are tried where it holds at most this many of one limit. */
const PAIRED_MEMBERS = 6;
/** How many unplaced weights are compared for one request, spread over all sizes. */
const LOOKED_AT = 24;
/** How many single weights that fit are tried. */
const SINGLES = 8;

/** The state of the search. */
interface ExchangeSearch {
  readonly input: PackingInput;
  readonly filling: Filling;
  /** By place, the unplaced weights whose largest share is of that limit, the smallest first. */
  readonly queues: readonly number[][];
  /** By position, the value of having the weight in a request. */
  readonly worth: Float64Array;
}

/**
 * Exchanges up to two members of a request for one or two unplaced weights wherever this fills the request further, so
 * that the unplaced weights shrink until they find a place (a simple form of consistent neighbourhood search). Gives
 * the weights that are still unplaced. Only weights with their largest share in the same limit are exchanged.
 */
export function exchange(input: PackingInput, filling: Filling, unplaced: readonly number[]): readonly number[] {
  if (unplaced.length === 0) return [];
  const queues = input.bounds.map((_, place) => {
    const same = unplaced.filter((position) => input.places[position] === place);
    return same.sort((a, b) => (input.shares[a] ?? 0) - (input.shares[b] ?? 0) || a - b);
  });
  const search = { input, filling, queues, worth: worths(input, filling) };
  let steps = 0;
  for (let sweep = 0, gained = true; gained && sweep < SWEEPS; sweep += 1) {
    gained = false;
    for (let request = 0; request < filling.count && steps < STEPS; request += 1) {
      for (const place of queues.keys()) {
        for (;;) {
          const best = bestMove(search, place, request, sweep);
          steps += best.steps;
          if (best.move === undefined) break;
          carryOut(search, place, best.move);
          gained = true;
        }
      }
    }
  }
  return queues.flat();
}

/** By position, its shares of the limits, each counted as much as the limit is in demand. */
function worths(input: PackingInput, { count, members }: Filling): Float64Array {
  const worth = new Float64Array(input.shares.length);
  const placed = totals(input, members.flat());
  input.columns.forEach((column, place) => {
    const bound = input.bounds[place] ?? 1;
    const price = (placed[place] ?? 0) / (count * bound) / bound;
    for (let position = 0; position < column.length; position += 1) {
      worth[position] = (worth[position] ?? 0) + price * (column[position] ?? 0);
    }
  });
  return worth;
}

function carryOut({ input, filling, queues }: ExchangeSearch, place: number, made: Move): void {
  const queue = queues[place] ?? [];
  move(input, filling, made);
  for (const position of made.into) queue.splice(queue.indexOf(position), 1);
  for (const position of made.out) queue.splice(firstAbove(input, queue, input.shares[position] ?? 0), 0, position);
}

/** The best exchange for a request among the compared ones of one limit, and how many were compared. */
function bestMove(search: ExchangeSearch, place: number, request: number, sweep: number) {
  const { input, filling, worth } = search;
  const queue = search.queues[place] ?? [];
  let best: Move | undefined;
  let most = LEAST_GAIN;
  let steps = 1;
  if (queue.length === 0) return { move: best, steps };
  const { shares } = input;
  const room = ((filling.free[place]?.[request] ?? 0) - (filling.reserve[place] ?? 0)) / (input.bounds[place] ?? 1);
  const consider = (gain: number, out: readonly number[], ...into: readonly number[]): void => {
    if (!isPossible(input, filling, { request, into, out })) return;
    best = { request, into, out };
    most = gain;
  };
  const some = spreadOver(queue, request + sweep);
  for (const out of leavers(input, filling.members[request] ?? [], place)) {
    let available = room + 1e-12;
    let lost = 0;
    for (const position of out) {
      available += shares[position] ?? 0;
      lost += worth[position] ?? 0;
    }
    const end = firstAbove(input, queue, available);
    for (let at = Math.max(0, end - SINGLES); at < end; at += 1) {
      const one = queue[at] ?? 0;
      const gain = (worth[one] ?? 0) - lost;
      if (gain > most) consider(gain, out, one);
    }
    for (let low = 0, high = some.length - 1; low < high; steps += 1) {
      const one = some[low] ?? 0;
      const other = some[high] ?? 0;
      if ((shares[one] ?? 0) + (shares[other] ?? 0) > available) {
        high -= 1;
        continue;
      }
      const gain = (worth[one] ?? 0) + (worth[other] ?? 0) - lost;
      if (gain > most) consider(gain, out, one, other);
      low += 1;
    }
  }
  return { move: best, steps };
}

/** A sample of the queue, from small to large; another sample for each turn. */
function spreadOver(queue: readonly number[], turn: number): readonly number[] {
  if (queue.length <= LOOKED_AT) return queue;
  const start = (turn * 0.618) % 1;
  return Array.from(
    { length: LOOKED_AT },
    (_, at) => queue[Math.floor(((at + start) * queue.length) / LOOKED_AT)] ?? 0,
  );
}

/** The members that could leave a request: none, or one or two with their largest share in the same limit. */
function leavers(input: PackingInput, members: readonly number[], place: number): readonly (readonly number[])[] {
  const same = members.filter((position) => input.places[position] === place);
  const pairs =
    same.length > PAIRED_MEMBERS ? [] : same.flatMap((one, at) => same.slice(0, at).map((two) => [one, two]));
  return [[], ...same.map((position) => [position]), ...pairs];
}

function isPossible({ columns }: PackingInput, filling: Filling, { request, into, out }: Move): boolean {
  for (let place = 0; place < columns.length; place += 1) {
    let left = (filling.free[place]?.[request] ?? 0) - (filling.reserve[place] ?? 0);
    for (const position of out) left += columns[place]?.[position] ?? 0;
    for (const position of into) left -= columns[place]?.[position] ?? 0;
    if (left < 0) return false;
  }
  return true;
}

/** The first position in a queue, from small to large, whose share is larger than `share`. */
function firstAbove({ shares }: PackingInput, queue: readonly number[], share: number): number {
  let low = 0;
  let high = queue.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((shares[queue[middle] ?? 0] ?? 0) <= share) low = middle + 1;
    else high = middle;
  }
  return low;
}
