export function addTo<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
}

/** Adds `more` to the count of a key. A count that becomes 0 is removed. Returns the new count. */
export function addCount<Key>(counts: Map<Key, number>, key: Key, more: number): number {
  const count = (counts.get(key) ?? 0) + more;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
  return count;
}

export function groupedBy<Value, Key>(
  values: Iterable<Value>,
  keyOf: (value: Value) => Key,
): ReadonlyMap<Key, readonly Value[]> {
  const groups = new Map<Key, Value[]>();
  for (const value of values) addTo(groups, keyOf(value), value);
  return groups;
}

/** Returns an object without its undefined fields. JSON omits them, too. */
export function defined<Fields extends object>(fields: Fields): Defined<Fields>;
export function defined(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

type Defined<Fields> = { [Field in keyof Fields]?: Exclude<Fields[Field], undefined> };

export interface Named {
  readonly _id: string;
  readonly name: string;
}

/** The result of looking up a name: its only object, or candidates if the name is unknown or ambiguous. */
export type NameMatch<Thing extends Named> =
  | { readonly kind: "one"; readonly thing: Thing; readonly isExact: boolean }
  | { readonly kind: "unknown" | "ambiguous"; readonly candidates: readonly Thing[] };

const CANDIDATES = 5;
/** Names are suggested if one contains the other, or if `shareOf` is above this. Unrelated names often reach it. */
const LEAST_LIKENESS = 0.3;
/** How many lookups in one index get suggestions. Each of them compares a name with all names of the index. */
const MAX_LOOKED_FOR = 20;
/** How many letters of an unknown name are compared. To compare millions would delay other calls. */
const MAX_COMPARED_LETTERS = 256;

/**
 * Finds objects by name. Without an exact match, ignores case, outer spaces and Unicode composition. For the first
 * `MAX_LOOKED_FOR` unknown names, suggests similar ones.
 */
export class NameIndex<Thing extends Named> {
  readonly #exact = new Map<string, Thing[]>();
  readonly #folded = new Map<string, Thing[]>();
  #lookedFor = 0;

  constructor(things: Iterable<Thing> = []) {
    for (const thing of things) this.add(thing);
  }

  add(thing: Thing): void {
    addTo(this.#exact, thing.name, thing);
    addTo(this.#folded, folded(thing.name), thing);
  }

  names(): Iterable<string> {
    return this.#exact.keys();
  }

  find(name: string): NameMatch<Thing> {
    const exact = this.#exact.get(name) ?? [];
    const all = exact.length > 0 ? exact : (this.#folded.get(folded(name)) ?? []);
    const [only] = all;
    if (only === undefined) return { kind: "unknown", candidates: this.#near(name) };
    if (all.length > 1) return { kind: "ambiguous", candidates: all.slice(0, CANDIDATES) };
    return { kind: "one", thing: only, isExact: exact.length > 0 };
  }

  /** Returns similarly named objects: names that contain `name`, then names inside it, then by shared letter pairs. */
  #near(name: string): readonly Thing[] {
    this.#lookedFor += 1;
    if (this.#lookedFor > MAX_LOOKED_FOR) return [];
    const wanted = folded(name.slice(0, MAX_COMPARED_LETTERS));
    const pairs = letterPairs(wanted);
    const rated = [...this.#folded].map(([other, things]) => {
      const holds = other.includes(wanted) ? 2 : Number(other !== "" && wanted.includes(other));
      return { things, likeness: holds + shareOf(pairs, letterPairs(other)) };
    });
    const near = rated.filter(({ likeness }) => likeness > LEAST_LIKENESS);
    near.sort((one, other) => other.likeness - one.likeness);
    return near.flatMap(({ things }) => things).slice(0, CANDIDATES);
  }
}

/** Returns a name for inexact comparisons: without outer spaces, in lower case and in composed Unicode. */
export function folded(name: string): string {
  return name.normalize("NFC").trim().toLowerCase();
}

/** Says how the two names of each pair differ. They must be equal in an inexact comparison (`folded`). */
export function differenceOf(...pairs: readonly (readonly [string, string])[]): string {
  const isOnlyComposition = pairs.every(([one, other]) => one.normalize("NFC") === other.normalize("NFC"));
  return isOnlyComposition ? "differs only in Unicode composition" : "differs in case or outer spaces";
}

/** Returns the pairs of adjacent letters in a name, which gets a space at both ends. Similar names share many pairs. */
export function letterPairs(name: string): ReadonlySet<string> {
  const letters = ` ${name} `;
  return new Set(Array.from({ length: letters.length - 1 }, (_, at) => letters.slice(at, at + 2)));
}

/** Returns the share of letter pairs that two names have in common, from 0 to 1. */
export function shareOf(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  let shared = 0;
  for (const pair of one) if (other.has(pair)) shared += 1;
  return (2 * shared) / (one.size + other.size);
}
