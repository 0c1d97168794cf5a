import { LIMITS } from "./limits.ts";

/**
 * The letters, digits and signs that a name may contain (management-api 8.3). Korean letters are the precomposed
 * syllables and the compatibility letters: assumed.
 */
const ALLOWED = /^[A-Za-z0-9 ~%&+\-\uAC00-\uD7A3\u3131-\u318E]*$/u;
const DISALLOWED = /[^A-Za-z0-9 ~%&+\-\uAC00-\uD7A3\u3131-\u318E]/gu;

/** The rules of management-api 8.3. `decomposed`: Hangul letters that are not composed to syllables. */
export const NAME_RULES = ["characters", "decomposed", "tooShort", "tooLong", "outerSpace"] as const;

/** Why a name is invalid: every rule that it breaks. */
export interface NameProblem {
  readonly rules: readonly (typeof NAME_RULES)[number][];
  /** In code points, counted after composing its Hangul. */
  readonly length: number;
  /** The distinct characters that are not allowed, in order; absent if all are allowed. */
  readonly characters?: readonly string[] | undefined;
}

/**
 * Checks a targeting or option name against management-api 8.3. Takes the name as it would be sent. Returns every rule
 * that it breaks; undefined if it is valid.
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

/** Composes Hangul letters to syllables, and nothing else. macOS decomposes the names of files. */
function composeHangul(name: string): string {
  return name.replaceAll(/[\u1100-\u11FF\uAC00-\uD7A3]+/g, (letters) => letters.normalize("NFC"));
}

/** The length of a text in Unicode code points. */
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

/** An object with a name. */
interface Named {
  readonly _id: string;
  readonly name: string;
}

/** The result of looking up a name that a caller wrote: one object, several, or none with suggestions. */
export type NameMatch<Thing extends Named> =
  | { readonly kind: "one"; readonly thing: Thing; readonly isExact: boolean }
  | { readonly kind: "unknown" | "ambiguous"; readonly candidates: readonly Thing[] };

const CANDIDATES = 5;
/** The maximum number of unknown names for which similar ones are searched: each search compares all names. */
const MAX_LOOKED_FOR = 20;

/**
 * Finds objects by name. The exact name comes first; if there is none, case and outer spaces are ignored, provided that
 * only one object then fits. Returns the nearest candidates if several fit, or none does.
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

  /**
   * Names that contain the wanted one or are contained in it, then those that share the most pairs of letters with it.
   */
  #near(name: string): readonly Thing[] {
    this.#lookedFor += 1;
    if (this.#lookedFor > MAX_LOOKED_FOR) return [];
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

/** Names below this similarity have little more in common than any two names. */
const LEAST_LIKENESS = 0.3;

/** The form in which names are compared if no name matches exactly. */
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
