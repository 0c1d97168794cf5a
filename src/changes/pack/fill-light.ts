import type { PackingInput } from "./packing-input.ts";

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
export function fillWithLight(
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
