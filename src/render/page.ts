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
  return Math.ceil(measure(text, Number.POSITIVE_INFINITY).tokens);
}

/** A text, or as much of its beginning as fits so many tokens, and an ellipsis. */
export function withinTokens(text: string, most: number): string {
  const { end } = measure(text, most);
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/** No word of a language goes on for longer in lower-case letters. */
const LONGEST_WORD = 12;
const [SPACE, QUOTE, UNDERSCORE, LOWER_A, LOWER_Z, LAST_PRINTED] = [0x20, 0x22, 0x5f, 0x61, 0x7a, 0x7e] as const;
const OUTSIDE_BMP = 0xffff;

/**
 * The tokens of a text as far as they are no more than `most`, and where that is. Measured with o200k: words are cheap;
 * identifiers (letters mixed with digits and signs, or endless) are dear; a rare letter of any script but Latin takes
 * a token for each of its bytes in UTF-8.
 */
function measure(text: string, most: number): { readonly tokens: number; readonly end: number } {
  let tokens = 0;
  let word = 0;
  let previous: number = SPACE;
  for (let end = 0; end < text.length; ) {
    const character = text.codePointAt(end) ?? 0;
    word = isLower(character) ? word + 1 : 0;
    const goesOn = isLower(previous) || previous === SPACE || previous === QUOTE || previous === UNDERSCORE;
    const weight = word > 0 && goesOn && word <= LONGEST_WORD ? WORD_WEIGHT : weightOf(character);
    if (tokens + weight > most) return { tokens, end };
    tokens += weight;
    end += character > OUTSIDE_BMP ? 2 : 1;
    previous = character;
  }
  return { tokens, end: text.length };
}

const WORD_WEIGHT = 0.3;

function weightOf(character: number): number {
  if (character === SPACE) return WORD_WEIGHT;
  if (character > SPACE && character <= LAST_PRINTED) return 0.7;
  return character > OUTSIDE_BMP ? 4 : 3;
}

function isLower(character: number): boolean {
  return character >= LOWER_A && character <= LOWER_Z;
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
