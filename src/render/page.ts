import type * as z from "zod";

/** What an answer may hold in all, data and text together. */
const PAGE_TOKENS = 3500;

/** What the sentences and fields around the rows take at most. */
const AROUND_TOKENS = 350;

/**
 * How many of the rows fit an answer: at least one, where there is one. A row travels as data, and as the line that
 * `lineOf` gives for it; `beside` is what else the answer holds as data.
 */
export function rowsThatFit<Row>(rows: readonly Row[], lineOf: (row: Row) => string, beside: unknown = null): number {
  let left = PAGE_TOKENS - AROUND_TOKENS - tokensOf(JSON.stringify(beside));
  let count = 0;
  for (const row of rows) {
    left -= tokensOf(JSON.stringify(row)) + tokensOf(lineOf(row)) + 2;
    if (left < 0) break;
    count += 1;
  }
  return Math.max(count, Math.min(rows.length, 1));
}

/** An upper estimate of the tokens of a text; models differ, so each kind of character counts at its dearest. */
export function tokensOf(text: string): number {
  let tokens = 0;
  for (const weight of weightsOf(text)) tokens += weight;
  return Math.ceil(tokens);
}

/** A text, or as much of its beginning as fits so many tokens, and an ellipsis. */
export function withinTokens(text: string, most: number): string {
  const characters = [...text];
  let left = most;
  let end = 0;
  for (const weight of weightsOf(text)) {
    left -= weight;
    if (left < 0) return `${characters.slice(0, end).join("")}…`;
    end += 1;
  }
  return text;
}

/** No word of a language goes on for longer in lower-case letters. */
const LONGEST_WORD = 12;

/**
 * The weight of each character in tokens, measured with o200k: words are cheap; identifiers (letters mixed with digits
 * and signs, or endless) are dear; a rare letter of any script but Latin takes a token for each of its bytes in UTF-8.
 */
function* weightsOf(text: string): Generator<number> {
  let previous = " ";
  let word = 0;
  for (const character of text) {
    const isLower = /[a-z]/.test(character);
    word = isLower ? word + 1 : 0;
    if (character === " ") yield 0.3;
    else if (isLower) yield /[a-z "_]/.test(previous) && word <= LONGEST_WORD ? 0.3 : 0.7;
    else if (/[\x21-\x7e]/.test(character)) yield 0.7;
    else yield character.length > 1 ? 4 : 3;
    previous = character;
  }
}

/**
 * A cursor: where a list goes on. `query` is what was asked, so that a cursor cannot go on with another question.
 */
export function writeCursor(query: unknown, position: unknown): string {
  return Buffer.from(JSON.stringify([query, position])).toString("base64url");
}

/** The position in a cursor of the same query; undefined when it is no such cursor. */
export function readCursor<Schema extends z.ZodType>(
  cursor: string,
  query: unknown,
  position: Schema,
): z.output<Schema> | undefined {
  const content = parseBase64Json(cursor);
  if (!Array.isArray(content) || JSON.stringify(content[0]) !== JSON.stringify(query)) return undefined;
  return position.safeParse(content[1]).data;
}

function parseBase64Json(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
  } catch {
    return undefined;
  }
}
