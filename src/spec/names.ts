import { LIMITS } from "./limits.ts";

/**
 * Letters, digits and signs that a name may hold (management-api 8.3). Korean letters are the precomposed syllables
 * and the compatibility letters: assumed.
 */
const ALLOWED = /^[A-Za-z0-9 ~%&+\-\uAC00-\uD7A3\u3131-\u318E]*$/u;
const DISALLOWED = /[^A-Za-z0-9 ~%&+\-\uAC00-\uD7A3\u3131-\u318E]/gu;

/** A rule of management-api 8.3; `decomposed`: Hangul letters that are not composed to syllables. */
export const NAME_RULES = ["characters", "decomposed", "tooShort", "tooLong", "outerSpace"] as const;

/** Why a name is refused: every rule that it breaks. */
export interface NameProblem {
  readonly rules: readonly (typeof NAME_RULES)[number][];
  /** In code points, as long as the name is with its Hangul composed. */
  readonly length: number;
  /** The distinct characters that are not allowed, in order; absent where all are. */
  readonly characters?: readonly string[] | undefined;
}

/**
 * Checks a targeting or option name against management-api 8.3.
 * Takes the name as it would be sent; gives every rule that it breaks, or undefined when it is valid.
 */
export function nameProblem(name: string): NameProblem | undefined {
  const { nameMinLength, nameMaxLength } = LIMITS;
  const composed = ALLOWED.test(name) ? name : composeHangul(name);
  const characters = ALLOWED.test(composed) ? [] : [...new Set(composed.match(DISALLOWED) ?? [])];
  const length = codePoints(composed);
  const isBroken = {
    characters: characters.length > 0,
    decomposed: composed !== name,
    tooShort: length < nameMinLength.value,
    tooLong: length > nameMaxLength.value,
    outerSpace: composed.startsWith(" ") || composed.endsWith(" "),
  };
  const rules = NAME_RULES.filter((rule) => isBroken[rule]);
  if (rules.length === 0) return undefined;
  return { rules, length, ...(characters.length > 0 && { characters }) };
}

/** What macOS does to the names of files is undone here for letters of Hangul, and for nothing else. */
function composeHangul(name: string): string {
  return name.replaceAll(/[\u1100-\u11FF\uAC00-\uD7A3]+/g, (letters) => letters.normalize("NFC"));
}

/** Length of a text in Unicode code points. */
export function codePoints(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    const paired = unit >= 0xd800 && unit <= 0xdbff && isLowSurrogate(text.charCodeAt(at + 1));
    if (paired) at += 1;
    count += 1;
  }
  return count;
}

function isLowSurrogate(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

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
