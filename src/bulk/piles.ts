import type { Loads } from "./loads.ts";

/** How many of a pile may not fit before the next pile is tried. */
const MISSES = 24;

/** Light weights that are much alike: in each limit the same power of two, to half a step. */
interface Pile {
  readonly positions: Int32Array;
  /** By place, the least that one of them takes. */
  readonly least: readonly number[];
  /** How many have been taken: they are the first ones. */
  taken: number;
  /** How many the requests so far should have taken beyond those that they took. */
  due: number;
}

/**
 * Fills up requests with light weights. Each request takes of every pile as large a part as it has of all the room, so
 * that what is left stays as mixed as it was, and then whatever still fits. Those with the least room come first, while
 * there is most to choose from. Gives the positions that found no place.
 */
export function fillWithLight(
  loads: Loads,
  light: Int32Array,
  free: readonly Float64Array[],
  put: (position: number, request: number) => void,
): readonly number[] {
  const piles = pilesOf(loads, light);
  const capacities = capacitiesOf(loads, light, free);
  const order = Array.from(capacities.keys()).sort((a, b) => (capacities[a] ?? 0) - (capacities[b] ?? 0) || a - b);
  let left = capacities.reduce((total, capacity) => total + capacity, 0);
  for (const request of order) {
    const room = free.map((column) => column[request] ?? 0);
    const capacity = capacities[request] ?? 0;
    const part = left > 0 ? Math.min(1, capacity / left) : 0;
    left -= capacity;
    const take = (pile: Pile, at: number): boolean => {
      const position = takeFrom(loads, pile, at, room);
      if (position !== undefined) put(position, request);
      return position !== undefined;
    };
    for (const pile of piles) {
      pile.due = Math.min(pile.due, 1) + (pile.positions.length - pile.taken) * part;
      while (pile.due >= 0.5 && pile.taken < pile.positions.length && take(pile, pile.taken)) pile.due -= 1;
    }
    for (const pile of piles) {
      if (pile.least.some((value, place) => value > (room[place] ?? 0))) continue;
      let misses = 0;
      for (let at = pile.taken; at < pile.positions.length && misses < MISSES; at += 1) {
        if (!take(pile, at)) misses += 1;
      }
    }
  }
  return piles.flatMap((pile) => Array.from(pile.positions.subarray(pile.taken)));
}

/** By request, how much of all the light weights it could take if it took the same part of each. */
function capacitiesOf({ columns }: Loads, light: Int32Array, free: readonly Float64Array[]): Float64Array {
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

/** Takes what stands at one place of a pile, if there is room for it. */
function takeFrom({ columns }: Loads, pile: Pile, at: number, room: number[]): number | undefined {
  const position = pile.positions[at] ?? 0;
  for (let place = 0; place < columns.length; place += 1) {
    if ((columns[place]?.[position] ?? 0) > (room[place] ?? 0)) return undefined;
  }
  for (let place = 0; place < columns.length; place += 1) {
    room[place] = (room[place] ?? 0) - (columns[place]?.[position] ?? 0);
  }
  pile.positions[at] = pile.positions[pile.taken] ?? 0;
  pile.positions[pile.taken] = position;
  pile.taken += 1;
  return position;
}

/** Sorts light weights into piles, the pile of the heaviest first. */
function pilesOf({ columns, shares }: Loads, light: Int32Array): readonly Pile[] {
  const counts = new Map<number, number>();
  const keys = new Float64Array(light.length);
  light.forEach((position, at) => {
    let key = 0;
    for (const column of columns) key = key * 64 + halfSteps(column[position] ?? 0);
    counts.set(key, (counts.get(key) ?? 0) + 1);
    keys[at] = key;
  });
  const piles = new Map<
    number,
    { positions: Int32Array; least: number[]; taken: number; due: number; share: number }
  >();
  light.forEach((position, at) => {
    const key = keys[at] ?? 0;
    let pile = piles.get(key);
    if (pile === undefined) {
      const least = columns.map((column) => column[position] ?? 0);
      pile = { positions: new Int32Array(counts.get(key) ?? 0), least, taken: 0, due: 0, share: 0 };
      piles.set(key, pile);
    }
    // While piles are made, `taken` counts those that have been put on them.
    pile.positions[pile.taken] = position;
    pile.taken += 1;
    pile.share = Math.max(pile.share, shares[position] ?? 0);
    for (let place = 0; place < columns.length; place += 1) {
      pile.least[place] = Math.min(pile.least[place] ?? 0, columns[place]?.[position] ?? 0);
    }
  });
  for (const pile of piles.values()) pile.taken = 0;
  return [...piles.values()].sort((a, b) => b.share - a.share);
}

/** 0, 1, 2, 3, 4 for 4 and 5, 5 for 6 and 7, 6 for 8 to 11, 7 for 12 to 15, and so on. */
function halfSteps(value: number): number {
  if (value < 2) return value;
  const top = 31 - Math.clz32(value);
  return 2 * top + ((value >> (top - 1)) & 1);
}
