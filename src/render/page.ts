import { createHash } from "node:crypto";
import type * as z from "zod";
import { parseJson } from "../platform/json.ts";

/** What an answer may hold in all, data and text together. */
const PAGE_TOKENS = 3500;

/** What the sentences and fields around the rows take at most, where it is not said what they are. */
const AROUND_TOKENS = 350;

/**
 * How many of the rows fit an answer: at least one, where there is one. A row travels as data, and as the line that
 * `lineOf` gives for it; `beside` is what else the answer holds as data. `around`: the tokens of all sentences and fields
 * but the rows, where they are known.
 */
export function rowsThatFit<Row>(
  rows: readonly Row[],
  lineOf: (row: Row) => string,
  beside: unknown = null,
  around = AROUND_TOKENS,
): number {
  let left = PAGE_TOKENS - around - tokensOf(JSON.stringify(beside));
  let count = 0;
  for (const row of rows) {
    // The line feed is paid for by the signs between two rows, which are one token where they were counted as two.
    left -= tokensOf(JSON.stringify(row)) + tokensOf(lineOf(row));
    if (left < 0) break;
    count += 1;
  }
  return Math.max(count, Math.min(rows.length, 1));
}

/** An upper estimate of the tokens of a text; models differ, so each kind of character counts at its dearest. */
export function tokensOf(text: string): number {
  return Math.ceil(measure(text, Number.POSITIVE_INFINITY).tokens);
}

/** A text, or as much of its beginning as fits so many tokens, and an ellipsis. */
export function withinTokens(text: string, most: number): string {
  const { end } = measure(text, most);
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/** No word of a language goes on for longer in lower-case letters. */
const LONGEST_WORD = 12;
const LONGEST_NUMBER = 3;
const WORD_WEIGHT = 0.3;
/** A sign or letter that follows one of its kind; many pairs of capitals are one token. */
const FURTHER_WEIGHT = 0.7;
const SECOND_CAPITAL_WEIGHT = 0.4;
const FURTHER_CAPITAL_WEIGHT = 0.6;
const OUTSIDE_BMP = 0xffff;

/** What stands together in the JSON of our answers, with its tokens. */
const KNOWN: ReadonlyMap<string, number> = new Map([
  ...['{"', '{"_', '":"', '","', '":', ',"', '"}', '":["', '"]', '"],"'].map((signs) => [signs, 1] as const),
  ...["id", "name", "type", "atomic", "collection", "parent", "matched", "in"].map((word) => [word, 1] as const),
  ...["contextCount", "childCount", "parentName", "contexts", "targeting"].map((word) => [word, 2] as const),
]);
/** Characters of a kind: a token spans one kind only, but for the space before a word. */
const RUNS =
  /(?<![a-z])(?:contextCount|childCount|parentName)(?![a-z])|\d+|(?<=[ "])[A-Z][a-z]+|[A-Z]+|[a-z]+|[!-/:-@[-`{-~]+|./gsu;

/**
 * The tokens of a text as far as they are no more than `most`, and where that is. Measured with o200k: words are cheap,
 * and so are digits (three a token); identifiers (letters mixed with digits and signs, or endless) are dear; a rare
 * letter of any script but Latin takes a token for each of its bytes in UTF-8.
 */
function measure(text: string, most: number): { readonly tokens: number; readonly end: number } {
  let tokens = 0;
  let before = " ";
  for (const { 0: run, index } of text.matchAll(RUNS)) {
    const known = KNOWN.get(run);
    let end = index;
    for (const [at, character] of [...run].entries()) {
      const weight = known === undefined ? weightOf(character, at, before) : known / run.length;
      if (tokens + weight > most) return { tokens, end };
      tokens += weight;
      end += character.length;
    }
    before = run.at(-1) ?? "";
  }
  return { tokens, end: text.length };
}

/** What a character adds that is the `at`th of its run; `before` stands in front of the run. */
function weightOf(character: string, at: number, before: string): number {
  if (character === " ") return WORD_WEIGHT;
  if (character >= "0" && character <= "9") return at % LONGEST_NUMBER === 0 ? 1 : 0;
  const isLower = character >= "a" && character <= "z";
  if (isLower && /[ "_]/.test(before) && at < LONGEST_WORD) return WORD_WEIGHT;
  if (character >= "A" && character <= "Z" && at > 0) return at === 1 ? SECOND_CAPITAL_WEIGHT : FURTHER_CAPITAL_WEIGHT;
  if (character > " " && character <= "~") return at === 0 ? 1 : FURTHER_WEIGHT;
  return (character.codePointAt(0) ?? 0) > OUTSIDE_BMP ? 4 : 3;
}

/**
 * A cursor: where a list goes on. It begins with a digest of what was asked, so that it cannot go on with another
 * question, and stays short.
 */
export function writeCursor(query: unknown, position: unknown): string {
  return `${digestOf(query)}${Buffer.from(JSON.stringify(position)).toString("base64url")}`;
}

/** The position in a cursor of the same query; undefined when it is no such cursor. */
export function readCursor<Schema extends z.ZodType>(
  cursor: string,
  query: unknown,
  position: Schema,
): z.output<Schema> | undefined {
  const digest = digestOf(query);
  if (!cursor.startsWith(digest)) return undefined;
  const content = parseJson(Buffer.from(cursor.slice(digest.length), "base64url").toString("utf8"));
  return position.safeParse(content).data;
}

function digestOf(query: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(query) ?? "")
    .digest("base64url")
    .slice(0, 8);
}
