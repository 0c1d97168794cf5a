import { heavyPlaces, isHeavy, type PackingInput, totals } from "./packing-input.ts";

/**
 * Fills `count` requests: the heavy weights are spread evenly, then those that found no place are
 * exchanged for others until little room is left, then the light ones fill up. With `leaveRoom`, the heavy ones leave
 * the light ones their part of every request. Calls `put` with each position and its request. Gives the positions
 * that found no place, always fewer than there were, in their order.
 */
export function fillRequests(
  input: PackingInput,
  positions: Int32Array,
  count: number,
  leaveRoom: boolean,
  put: (position: number, request: number) => void,
): Int32Array {
  const { shares, bounds } = input;
  const heavy = positions
    .filter((position) => isHeavy(input, position))
    .sort((a, b) => (shares[b] ?? 0) - (shares[a] ?? 0) || a - b);
  const light = positions.filter((position) => !isHeavy(input, position));
  const filling: Filling = {
    count,
    free: bounds.map((bound) => new Float64Array(count).fill(bound)),
    members: Array.from({ length: count }, () => []),
    reserve: totals(input, leaveRoom ? light : []).map((total) => total / count),
  };
  const waiting = exchange(input, filling, spread(input, filling, heavy));
  filling.members.forEach((members, request) => {
    for (const position of members) put(position, request);
  });
  const left = fillWithLight(input, light, filling.free, put);
  const rest = Int32Array.from([...waiting, ...left]).sort();
  if (rest.length < positions.length) return rest;
  const [alone = 0] = rest;
  put(alone, 0);
  return rest.subarray(1);
}

/** Puts each weight, the heaviest first, into the request with most room. Gives the weights without a place. */
function spread(input: PackingInput, filling: Filling, heavy: Int32Array): readonly number[] {
  const waiting: number[] = [];
  for (const position of heavy) {
    const request = roomiest(input, filling, position);
    if (request === undefined) waiting.push(position);
    else move(input, filling, { into: [position], out: [], request });
  }
  return waiting;
}

/** The request whose scarcest limit has most room left once it has taken the weight. */
function roomiest(input: PackingInput, filling: Filling, position: number): number | undefined {
  const needs = heavyPlaces(input, position).map((at) => ({
    free: filling.free[at] ?? new Float64Array(),
    need: input.columns[at]?.[position] ?? 0,
    bound: input.bounds[at] ?? 1,
    reserve: filling.reserve[at] ?? 0,
  }));
  let best: number | undefined;
  let most = -1;
  for (let request = 0; request < filling.count; request += 1) {
    let least = Number.POSITIVE_INFINITY;
    for (const { free, need, bound, reserve } of needs) {
      const room = free[request] ?? 0;
      const left = room - need;
      // The reserve does not count for a nearly empty request, since very large weights would find no place otherwise.
      const kept = left < reserve && room + reserve < bound;
      least = Math.min(least, kept ? -1 : left / bound);
      if (least <= most) break;
    }
    if (least < 0 || least <= most || !fits(input, filling, position, request)) continue;
    best = request;
    most = least;
  }
  return best;
}

function fits(input: PackingInput, filling: Filling, position: number, request: number): boolean {
  for (let place = 0; place < input.columns.length; place += 1) {
    if ((input.columns[place]?.[position] ?? 0) > (filling.free[place]?.[request] ?? 0)) return false;
  }
  return true;
}

/** Requests that are being filled. */
interface Filling {
  readonly count: number;
  /** By place and request, how much of a limit is free. */
  readonly free: readonly Float64Array[];
  /** By request, the heavy weights in it. */
  readonly members: readonly number[][];
  /** By place, the room that heavy weights leave free. */
  readonly reserve: readonly number[];
}

/** Heavy weights that enter and leave a request. */
interface Move {
  readonly request: number;
  readonly into: readonly number[];
  readonly out: readonly number[];
}

/** Makes a move. */
function move({ columns }: PackingInput, filling: Filling, { request, into, out }: Move): void {
  const members = filling.members[request] ?? [];
  for (const position of out) members.splice(members.indexOf(position), 1);
  members.push(...into);
  columns.forEach((column, place) => {
    const free = filling.free[place];
    if (free === undefined) return;
    for (const position of out) free[request] = (free[request] ?? 0) + (column[position] ?? 0);
    for (const position of into) free[request] = (free[request] ?? 0) - (column[position] ?? 0);
  });
}

/** How many misfits of a class are tried before the next class. */
const MISSES = 24;

/** Light weights of about the same size: in each limit the same power of two, to half a step. */
interface SizeClass {
  readonly positions: Int32Array;
  /** By place, the smallest weight of the class. */
  readonly least: readonly number[];
  /** How many of the positions, from the first on, have been taken. */
  taken: number;
  /** How many more the requests so far should have taken. */
  due: number;
}

/**
 * Fills up requests with light weights. Each request takes the same part of every size class as it has of the whole
 * room, so that the rest stays mixed, and then any weight that still fits. Requests with the least room come first,
 * while the choice is largest. Gives the positions that found no place.
 */
function fillWithLight(
  input: PackingInput,
  light: Int32Array,
  free: readonly Float64Array[],
  put: (position: number, request: number) => void,
): readonly number[] {
  const classes = sizeClassesOf(input, light);
  const capacities = capacitiesOf(input, light, free);
  const order = Array.from(capacities.keys()).sort((a, b) => (capacities[a] ?? 0) - (capacities[b] ?? 0) || a - b);
  let left = capacities.reduce((total, capacity) => total + capacity, 0);
  for (const request of order) {
    const room = free.map((column) => column[request] ?? 0);
    const capacity = capacities[request] ?? 0;
    const part = left > 0 ? Math.min(1, capacity / left) : 0;
    left -= capacity;
    const take = (sizeClass: SizeClass, at: number): boolean => {
      const position = takeFrom(input, sizeClass, at, room);
      if (position !== undefined) put(position, request);
      return position !== undefined;
    };
    for (const sizeClass of classes) {
      sizeClass.due = Math.min(sizeClass.due, 1) + (sizeClass.positions.length - sizeClass.taken) * part;
      while (sizeClass.due >= 0.5 && sizeClass.taken < sizeClass.positions.length && take(sizeClass, sizeClass.taken))
        sizeClass.due -= 1;
    }
    for (const sizeClass of classes) {
      if (sizeClass.least.some((value, place) => value > (room[place] ?? 0))) continue;
      let misses = 0;
      for (let at = sizeClass.taken; at < sizeClass.positions.length && misses < MISSES; at += 1) {
        if (!take(sizeClass, at)) misses += 1;
      }
    }
  }
  return classes.flatMap((sizeClass) => Array.from(sizeClass.positions.subarray(sizeClass.taken)));
}

/** By request, how much of all the light weights it could take if it took the same part of each. */
function capacitiesOf({ columns }: PackingInput, light: Int32Array, free: readonly Float64Array[]): Float64Array {
  const capacities = new Float64Array(free[0]?.length ?? 0).fill(Number.POSITIVE_INFINITY);
  columns.forEach((column, place) => {
    let total = 0;
    for (const position of light) total += column[position] ?? 0;
    if (total === 0) return;
    free[place]?.forEach((room, request) => {
      capacities[request] = Math.min(capacities[request] ?? 0, room / total);
    });
  });
  return capacities.map((capacity) => (Number.isFinite(capacity) ? capacity : 1));
}

/** Takes the weight at one place of a class, if there is room for it. */
function takeFrom({ columns }: PackingInput, sizeClass: SizeClass, at: number, room: number[]): number | undefined {
  const position = sizeClass.positions[at] ?? 0;
  for (let place = 0; place < columns.length; place += 1) {
    if ((columns[place]?.[position] ?? 0) > (room[place] ?? 0)) return undefined;
  }
  for (let place = 0; place < columns.length; place += 1) {
    room[place] = (room[place] ?? 0) - (columns[place]?.[position] ?? 0);
  }
  sizeClass.positions[at] = sizeClass.positions[sizeClass.taken] ?? 0;
  sizeClass.positions[sizeClass.taken] = position;
  sizeClass.taken += 1;
  return position;
}

/** Sorts light weights into size classes, that of the heaviest first. */
function sizeClassesOf({ columns, shares }: PackingInput, light: Int32Array): readonly SizeClass[] {
  const counts = new Map<number, number>();
  const keys = new Float64Array(light.length);
  light.forEach((position, at) => {
    let key = 0;
    for (const column of columns) key = key * 64 + halfSteps(column[position] ?? 0);
    counts.set(key, (counts.get(key) ?? 0) + 1);
    keys[at] = key;
  });
  const classes = new Map<
    number,
    { positions: Int32Array; least: number[]; taken: number; due: number; share: number }
  >();
  light.forEach((position, at) => {
    const key = keys[at] ?? 0;
    let sizeClass = classes.get(key);
    if (sizeClass === undefined) {
      const least = columns.map((column) => column[position] ?? 0);
      sizeClass = { positions: new Int32Array(counts.get(key) ?? 0), least, taken: 0, due: 0, share: 0 };
      classes.set(key, sizeClass);
    }
    // While classes are made, `taken` counts those that are in them already.
    sizeClass.positions[sizeClass.taken] = position;
    sizeClass.taken += 1;
    sizeClass.share = Math.max(sizeClass.share, shares[position] ?? 0);
    for (let place = 0; place < columns.length; place += 1) {
      sizeClass.least[place] = Math.min(sizeClass.least[place] ?? 0, columns[place]?.[position] ?? 0);
    }
  });
  for (const sizeClass of classes.values()) sizeClass.taken = 0;
  return [...classes.values()].sort((a, b) => b.share - a.share);
}

/** 0, 1, 2, 3, 4 for 4 and 5, 5 for 6 and 7, 6 for 8 to 11, 7 for 12 to 15, and so on. */
function halfSteps(value: number): number {
  if (value < 2) return value;
  const top = 31 - Math.clz32(value);
  return 2 * top + ((value >> (top - 1)) & 1);
}

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
function exchange(input: PackingInput, filling: Filling, unplaced: readonly number[]): readonly number[] {
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
