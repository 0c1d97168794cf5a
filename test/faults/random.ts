/** A source of random decisions. The same seed gives the same decisions. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A whole number from 0 to `bound - 1`. */
  below(bound: number): number;
  /** A whole number from `least` to `most`, including both. */
  between(least: number, most: number): number;
  chance(probability: number): boolean;
  /** One entry of a list. Throws a RangeError if the list is empty. */
  pick<T>(list: readonly T[]): T;
  /** At most `count` entries of a list, each at most once, in random order. */
  some<T>(list: readonly T[], count: number): T[];
}

/** Creates a source of random decisions (algorithm mulberry32). */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  const pick = <T>(list: readonly T[]): T => {
    for (const one of list.slice(below(list.length))) return one;
    throw new RangeError("nothing to pick from");
  };
  return {
    next,
    below,
    between: (least, most) => least + below(most - least + 1),
    chance: (probability) => next() < probability,
    pick,
    some: (list, count) => {
      const left = [...list];
      return Array.from({ length: Math.min(count, left.length) }, () => left.splice(below(left.length), 1)).flat();
    },
  };
}
