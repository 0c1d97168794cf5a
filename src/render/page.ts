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
  for (const character of text) tokens += weightOf(character);
  return Math.ceil(tokens);
}

function weightOf(character: string): number {
  if (/[a-z ]/.test(character)) return 0.3;
  if (/[\x21-\x7e]/.test(character)) return 0.6;
  return character.charCodeAt(0) < 0x3000 ? 1 : 1.5;
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
