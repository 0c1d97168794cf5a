import { hash } from "node:crypto";
import type * as z from "zod";
import { parseJson } from "../platform/json.ts";

export interface Row {
  readonly data: Readonly<Record<string, unknown>>;
  readonly line: string;
}

export interface RenderedReport {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
}

/** Returns an answer as text and data. Omits undefined fields and lines that are undefined or false. */
export function renderAnswer(
  fields: Readonly<Record<string, unknown>>,
  lines: readonly (string | false | undefined)[],
  isError = false,
): RenderedReport {
  const structured = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  return { structured, text: lines.filter((line) => typeof line === "string").join("\n"), isError };
}

/** The maximum tokens of an answer about a run or a plan (without a page of rows), as data and text together. */
export const ANSWER_TOKENS = 2500;
const PAGE_TOKENS = 3500;

/** By how many tokens the estimate for a page of random IDs can be too low. Measured in 9,000 pages: at most 29. */
const RANDOM_ID_TOKENS = 50;

/** The tokens of everything around the rows of a page. Used if the caller does not measure them. */
const AROUND_TOKENS = 350;

/** How many tokens an answer has left. `least`: how many rows it shows even if they do not fit. */
export interface Budget {
  left: number;
  readonly least?: number;
}

/** Returns how many tokens the rows of a page may take. `beside`: other data. `around`: tokens of everything else. */
export function pageBudget(about: { readonly beside?: unknown; readonly around?: number } = {}): Budget {
  const { beside, around = AROUND_TOKENS } = about;
  const other = beside === undefined ? 0 : tokensOf(JSON.stringify(beside));
  return { left: PAGE_TOKENS - RANDOM_ID_TOKENS - around - other, least: 1 };
}

/** Returns the first items whose data and lines together fit into an answer. Subtracts their tokens from the budget. */
export function takeRows<Item>(
  items: readonly Item[],
  lineOf: (item: Item) => string,
  budget: Budget,
  dataOf: (item: Item) => unknown = (item) => item,
): readonly Item[] {
  const seen = new Set<string>();
  const taken: Item[] = [];
  for (const item of items) {
    const data = JSON.stringify(dataOf(item));
    const cost = estimateOf(data, seen) + estimateOf(lineOf(item), seen) + LINE_FEED;
    if (cost > budget.left && taken.length >= (budget.least ?? 0)) break;
    budget.left -= cost;
    taken.push(item);
    for (const [letters] of data.matchAll(/[A-Z]+/g)) seen.add(beginningOf(letters));
  }
  return taken;
}

export function takeFittingRows<Made extends Pick<Row, "line"> & { readonly data: unknown }>(
  rows: readonly Made[],
  budget: Budget,
): readonly Made[] {
  return takeRows(
    rows,
    ({ line }) => line,
    budget,
    ({ data }) => data,
  );
}

const LINE_FEED = 1;

export function sizeOf({ structured, text }: Pick<RenderedReport, "structured" | "text">): number {
  return tokensOf(JSON.stringify(structured)) + tokensOf(text);
}

/** Returns the first form of an answer that fits, or else the last. The fullest of the `steps` must be first. */
export function fullest<Step, Form>(
  steps: readonly Step[],
  make: (step: Step) => Form,
  costOf: (form: Form) => number,
  tokens: number,
): Form {
  for (const step of steps) {
    const form = make(step);
    if (costOf(form) <= tokens || step === steps.at(-1)) return form;
  }
  throw new RangeError("there is no form");
}

/** Joins notes to one text. Ignores notes that are undefined or false. Undefined if no note is left. */
export function joinNotes(notes: readonly (string | false | undefined)[]): string | undefined {
  return notes.filter((note) => note !== undefined && note !== false).join(" ") || undefined;
}

/** Estimates the tokens of a text (see `measure`). */
export function tokensOf(text: string): number {
  return Math.ceil(estimateOf(text));
}

function estimateOf(text: string, seen?: ReadonlySet<string>): number {
  return measure(text, Number.POSITIVE_INFINITY, seen).tokens;
}

export function withinTokens(text: string, most: number): string {
  const { end } = measure(text, most);
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/** Frequent parts of the JSON in answers, with the number of tokens that each takes. */
const KNOWN: ReadonlyMap<string, number> = new Map([
  ...['{"_', '":["', '"],"', "atomic", "collection", "matched", "parent"].map((piece) => [piece, 1] as const),
  ...["contextCount", "childCount", "parentName", "eventName"].map((word) => [word, 2] as const),
]);

/** Matches the parts of a text that are estimated one by one. A space before a word is counted with the word. */
const PIECES =
  /(?<![A-Za-z])(?:contextCount|childCount|parentName|eventName)(?![A-Za-z])|\d{1,3}|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[!-/:-@[-`{-~]+|./gsu;

/** Pairs of capital letters that take two tokens. All other pairs take one. */
const SPLIT_PAIRS = new Set(
  (
    "EJ FJ FQ FZ GJ GQ GZ IY JH JQ JX JY JZ KJ KQ KX KZ LJ LQ LZ MZ NQ OQ OZ PZ QF QG QH QJ QK QO QW QX QY QZ RZ TQ " +
    "UO UQ VJ VQ VY VZ WJ WQ WZ XG XH XJ XK XQ XU XW YB YF YH YI YJ YQ YV ZB ZC ZJ ZK ZL ZP ZQ ZV"
  ).split(" "),
);
const WORD_LETTER = 0.17;
const LONGEST_WORD = 14;
const FEWEST_VOWELS = 0.15;
const MAX_VOWELS = 0.75;
const JSON_SIGNS_OF_A_TOKEN = 3;
const FURTHER_SIGN = 0.7;
const OUTSIDE_BMP = 0xffff;

/**
 * Estimates the tokens of a text, up to `most`. `end`: where the text must be cut. Based on measurements with the
 * tokenizer o200k: words and digits take few tokens; letters beyond ASCII, 3 or 4 each.
 */
function measure(
  text: string,
  most: number,
  seen?: ReadonlySet<string>,
): { readonly tokens: number; readonly end: number } {
  let tokens = 0;
  let before = " ";
  for (const { 0: piece, index } of text.matchAll(PIECES)) {
    const more = tokensOfPiece(piece, before, text[index + 1], seen);
    if (tokens + more > most) {
      // A part of 1 or 2 code units can be a single character, which must not be cut. A longer part is ASCII and can be
      // cut anywhere.
      const fitting = piece.length > 2 ? Math.floor(((most - tokens) * piece.length) / more) : 0;
      return { tokens: most, end: index + fitting };
    }
    tokens += more;
    before = piece.at(-1) ?? "";
  }
  return { tokens, end: text.length };
}

/**
 * Estimates the tokens of a part. `before`: the character before the part. `after`: the character after its first one.
 * `seen`: how the runs of capital letters in earlier rows begin (see `beginningOf`).
 */
function tokensOfPiece(piece: string, before: string, after = "", seen?: ReadonlySet<string>): number {
  const known = KNOWN.get(piece);
  if (known !== undefined) return known;
  const first = piece.codePointAt(0) ?? 0;
  if (piece === " ") return /[0-9 ]/.test(after) ? 1 : 0;
  if (/^\s/.test(piece) || /^\d/.test(piece)) return 1;
  if (/^[a-z]/i.test(piece)) {
    if (isWord(piece, before)) return Math.max(1, WORD_LETTER * piece.length);
    return tokensOfLetters(piece, seen?.has(beginningOf(piece)));
  }
  if (first >= ASCII_END) return first > OUTSIDE_BMP ? 4 : 3;
  if (/^[[\]{}":,]+$/.test(piece)) return Math.ceil(piece.length / JSON_SIGNS_OF_A_TOKEN);
  return 1 + (piece.length - 1) * FURTHER_SIGN;
}

const ASCII_END = 0x7f;

/** Returns the first letters of a run of letters in an ID. IDs that one request created often share only these. */
const beginningOf = (letters: string): string => letters.slice(0, 3);

/**
 * Estimates the tokens of letters that form no word. If letters in earlier rows begin in the same way (`isRepeated`),
 * returns the maximum, because the error of an estimate would add up over the rows.
 */
function tokensOfLetters(letters: string, isRepeated = false): number {
  if (isRepeated) return mostTokensOfLetters(letters);
  const { length } = letters;
  let pairs = 0;
  for (let at = 0; at < length; pairs += 1) at += isPair(letters, at) ? 2 : 1;
  return pairs * 2 === length ? pairs + (length - 2) * EXTRA_TOKENS_PER_LETTER : pairs;
}

/** Returns the maximum tokens of letters. Of two neighbours that can form a pair, at least one is always in a pair. */
function mostTokensOfLetters(letters: string): number {
  let before = { single: -1, pair: 0 };
  let now = { single: 1, pair: -1 };
  for (let at = 1; at < letters.length; at += 1) {
    const isOne = isPair(letters, at - 1);
    const next = {
      single: Math.max(now.pair, isOne ? -1 : now.single) + 1,
      pair: isOne ? Math.max(before.single, before.pair) + 1 : -1,
    };
    before = now;
    now = next;
  }
  return Math.max(now.single, now.pair);
}

const isPair = (letters: string, at: number): boolean => !SPLIT_PAIRS.has(letters.slice(at, at + 2));

/** Additional tokens for each letter, as measured on average. Tokenizers do not always choose the best pairs. */
const EXTRA_TOKENS_PER_LETTER = 0.1;

/** Returns whether letters look like a word: by their length, their vowels, and the character before them. */
function isWord(letters: string, before: string): boolean {
  if (letters.length > LONGEST_WORD || !/[a-z]$/.test(letters)) return false;
  if (/[0-9]/.test(before) || (/[A-Za-z]/.test(before) && letters.length < SHORTEST_INSIDE)) return false;
  const vowels = letters.replace(/[^aeiouy]/gi, "").length / letters.length;
  return vowels >= FEWEST_VOWELS && vowels <= MAX_VOWELS;
}

/** The minimum length of a word inside a longer name, such as `Cart` in `addToCart`. */
const SHORTEST_INSIDE = 4;

/** Returns a cursor: the position at which a list continues, with a digest of the only query for which it is valid. */
export function writeCursor(query: unknown, position: unknown): string {
  return `${digestOf(query)}${Buffer.from(JSON.stringify(position)).toString("base64url")}`;
}

/** Reads a cursor. Undefined if it is invalid or belongs to another query. */
export function readCursor<Schema extends z.ZodType>(
  cursor: string,
  query: unknown,
  position: Schema,
): z.output<Schema> | undefined {
  const digest = digestOf(query);
  if (!cursor.startsWith(digest)) return undefined;
  const content = Buffer.from(cursor.slice(digest.length), "base64url").toString("utf8");
  return position.safeParse(parseJson(content)).data;
}

function digestOf(query: unknown): string {
  return hash("sha256", JSON.stringify(query) ?? "", "base64url").slice(0, 4);
}
