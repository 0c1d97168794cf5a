import { LIMITS } from "../spec/limits.ts";
import type { NameProblem } from "../spec/names.ts";

/**
 * Formats a count: 1234567 becomes "1,234,567". `Number.toLocaleString` would load the tables of all locales, which
 * takes a twelfth of the start-up time.
 */
export function thousands(count: number): string {
  return String(count).replace(/(?<=^-?\d+)(?=(?:\d{3})+$)/g, ",");
}

/** Returns a count with its noun: "1 option", "1234 options". */
export function amount(count: number, one: string): string {
  return `${count} ${one}${count === 1 ? "" : "s"}`;
}

/** Writes the first letter of a sentence as a capital. */
export function capitalized(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/**
 * Returns what is wrong with a name, without a subject: `has 1 character that is not allowed: "_"; it has 40 characters
 * …`.
 */
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

/** At most this many distinct characters are listed: more than a valid name has. */
const CHARACTERS_NAMED = 40;

function characterList(characters: readonly string[]): string {
  const more = characters.length - CHARACTERS_NAMED;
  const named = characters.slice(0, CHARACTERS_NAMED).map(characterWords).join(", ");
  return more > 0 ? `${named} and ${more} more` : named;
}

/** Control and format characters, spaces, marks, and letters that are invisible or drawn only together with others. */
const UNSEEN = /[\p{C}\p{Z}\p{M}\p{Default_Ignorable_Code_Point}\u1100-\u11FF]/u;

/** Returns a character in quotes. One that is not visible on its own is escaped, with its code point. */
function characterWords(character: string): string {
  if (!UNSEEN.test(character)) return `"${character.replace(/["\\]/, "\\$&")}"`;
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase();
  return `"\\u{${code}}" (U+${code.padStart(4, "0")})`;
}

/** Returns a copy. Without it, a text that was cut out of a file would keep the surrounding text in memory. */
export function detached(text: string): string {
  return text.isWellFormed() ? Buffer.from(text).toString() : text;
}

/** Returns a text of at most `most` letters unchanged, and of a longer one the beginning with an ellipsis. */
export function cutText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}…`;
}
