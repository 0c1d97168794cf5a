import { LIMITS } from "../spec/limits.ts";
import type { NameProblem } from "../spec/names-and-contexts.ts";

/** Writes 1234567 as "1,234,567". `Number.toLocaleString` would load all locales, and slow down the start by 8 %. */
export function thousands(count: number): string {
  return String(count).replace(/(?<=^-?\d+)(?=(?:\d{3})+$)/g, ",");
}

export function amount(count: number, one: string): string {
  return `${thousands(count)} ${one}${count === 1 ? "" : "s"}`;
}

/**
 * Joins the words for the first `most` items, and says how many more there are: `a, b and 3 more`. `all`: how many
 * items there are, if `items` does not contain all.
 */
export function firstOf<Item>(
  items: readonly Item[],
  most: number,
  wordsOf: (item: Item) => string,
  { all = items.length, separator = "," }: { readonly all?: number; readonly separator?: "," | ";" } = {},
): string {
  const words = items.slice(0, most).map(wordsOf);
  const more = all - words.length;
  const end = separator === ";" ? "; and" : " and";
  return `${words.join(`${separator} `)}${more > 0 ? `${end} ${thousands(more)} more` : ""}`;
}

export function capitalized(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Returns what is wrong with a name, as the end of a sentence: `has 40 characters (at most 36)`. */
export function nameProblemWords({ rules, length, characters = [] }: NameProblem): string {
  const { nameMinLength, nameMaxLength } = LIMITS;
  const are = characters.length === 1 ? "is" : "are";
  const words = {
    characters: `has ${amount(characters.length, "character")} that ${are} not allowed: ${characterList(characters)}`,
    decomposed: "contains decomposed Hangul; convert it to NFC",
    tooShort: length === 0 ? "is empty" : `has ${amount(length, "character")} (at least ${nameMinLength.value})`,
    tooLong: `has ${amount(length, "character")} (at most ${nameMaxLength.value})`,
    outerSpace: "begins or ends with a space",
  };
  return rules.map((rule) => words[rule]).join("; it ");
}

/** How many invalid characters of a name are listed at most. */
const CHARACTERS_NAMED = 40;

export function characterList(characters: readonly string[]): string {
  return firstOf(characters, CHARACTERS_NAMED, characterWords);
}

/** Characters that are invisible on their own: controls, spaces, combining marks, fillers and decomposed Hangul. */
const UNSEEN = /[\p{C}\p{Z}\p{M}\p{Default_Ignorable_Code_Point}\u1100-\u11FF]/u;

/** Returns a character in quotation marks. An invisible character is escaped, and its code point follows. */
function characterWords(character: string): string {
  if (!UNSEEN.test(character)) return `"${character.replace(/["\\]/, "\\$&")}"`;
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return `"\\u{${code}}" (U+${code.padStart(4, "0")})`;
}

/** Copies a text, because a part of a text keeps the whole text in memory. Ill-formed UTF-16 is not copied. */
export function detached(text: string): string {
  return text.isWellFormed() ? Buffer.from(text).toString() : text;
}

/** Cuts a text after `most` letters and adds an ellipsis. Returns a shorter text as it is. */
export function cutText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
