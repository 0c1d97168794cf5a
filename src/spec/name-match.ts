/** Something that has a name. */
interface Named {
  readonly _id: string;
  readonly name: string;
}

/** What a name that a caller wrote stands for: one thing, several, or none, with those that may have been meant. */
export type NameMatch<Thing extends Named> =
  | { readonly kind: "one"; readonly thing: Thing; readonly isExact: boolean }
  | { readonly kind: "unknown" | "ambiguous"; readonly candidates: readonly Thing[] };

const CANDIDATES = 5;
/** Likenesses are looked for among all names, so for so many unknown names at the most. */
const MOST_LOOKED_FOR = 20;

/**
 * Finds things by name, by the rule of this server: exactly; where nothing fits, case and spaces at the ends are
 * overlooked if one thing alone fits then. Of several things and of none it gives those that are nearest.
 */
export class NameIndex<Thing extends Named> {
  readonly #exact = new Map<string, Thing[]>();
  readonly #folded = new Map<string, Thing[]>();
  #lookedFor = 0;

  constructor(things: Iterable<Thing> = []) {
    for (const thing of things) this.add(thing);
  }

  add(thing: Thing): void {
    put(this.#exact, thing.name, thing);
    put(this.#folded, folded(thing.name), thing);
  }

  /** All names, in the order in which they were added. */
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

  /** Names that hold the wanted one or are held by it, and then those that share most pairs of letters with it. */
  #near(name: string): readonly Thing[] {
    this.#lookedFor += 1;
    if (this.#lookedFor > MOST_LOOKED_FOR) return [];
    const wanted = folded(name);
    const pairs = pairsOf(wanted);
    const rated = [...this.#folded].map(([other, things]) => {
      const holds = other.includes(wanted) ? 2 : Number(other !== "" && wanted.includes(other));
      return { things, likeness: holds + shareOf(pairs, pairsOf(other)) };
    });
    const near = rated.filter(({ likeness }) => likeness > LEAST_LIKENESS);
    near.sort((one, other) => other.likeness - one.likeness);
    return near.flatMap(({ things }) => things).slice(0, CANDIDATES);
  }
}

/** Below this, names have little more in common than any two. */
const LEAST_LIKENESS = 0.3;

/** A name as it is compared where no name is exactly the wanted one. */
export function folded(name: string): string {
  return name.normalize("NFC").trim().toLowerCase();
}

function put<Thing>(index: Map<string, Thing[]>, key: string, thing: Thing): void {
  const some = index.get(key);
  if (some === undefined) index.set(key, [thing]);
  else some.push(thing);
}

function pairsOf(name: string): ReadonlySet<string> {
  const letters = ` ${name} `;
  return new Set(Array.from({ length: letters.length - 1 }, (_, at) => letters.slice(at, at + 2)));
}

function shareOf(one: ReadonlySet<string>, other: ReadonlySet<string>): number {
  let shared = 0;
  for (const pair of one) if (other.has(pair)) shared += 1;
  return (2 * shared) / (one.size + other.size);
}
