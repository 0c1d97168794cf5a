import { createHash } from "node:crypto";
import type * as z from "zod";
import { parseJson } from "../platform/json.ts";

/** A row of an answer: as data, and as a line of text. */
export interface Row {
  readonly data: Readonly<Record<string, unknown>>;
  readonly line: string;
}

/** An answer as data and as text, which say the same. */
export interface RenderedReport {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
}

/** Makes an answer of its fields and lines. A field that is undefined, and a line that is missing, is left out. */
export function renderAnswer(
  fields: Readonly<Record<string, unknown>>,
  lines: readonly (string | false | undefined)[],
  isError = false,
): RenderedReport {
  const structured = Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
  return { structured, text: lines.filter((line) => typeof line === "string").join("\n"), isError };
}

/** What an answer about a run or a plan may hold in all, data and text together. */
export const ANSWER_TOKENS = 2500;
/** What a page of a list may hold. */
const PAGE_TOKENS = 3500;

/** How far the tokens of a page of random IDs may go beyond their estimate: 29 was the most in 9,000 such pages. */
const UNLUCKY_TOKENS = 50;

/** The most that sentences and fields around rows take, unless they are measured. */
const AROUND_TOKENS = 350;

/** The tokens that are left of an answer, and how many rows it shows in any case. */
export interface Budget {
  left: number;
  readonly least?: number;
}

/** The budget of a page of a list: `beside` is other data of the answer, `around` the tokens of all but the rows. */
export function pageBudget({
  beside,
  around = AROUND_TOKENS,
}: {
  readonly beside?: unknown;
  readonly around?: number;
} = {}): Budget {
  const other = beside === undefined ? 0 : tokensOf(JSON.stringify(beside));
  return { left: PAGE_TOKENS - UNLUCKY_TOKENS - around - other, least: 1 };
}

/** Takes the first items that fit a budget, and what they need out of it. An item travels as data, and as its line. */
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

/** The same of rows that are made already. */
export function takeMade<Made extends Pick<Row, "line"> & { readonly data: unknown }>(
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

/** The tokens of an answer. */
export function sizeOf({ structured, text }: Pick<RenderedReport, "structured" | "text">): number {
  return tokensOf(JSON.stringify(structured)) + tokensOf(text);
}

/** The first of several forms, from the fullest to the shortest, that fits so many tokens; the last where none does. */
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

/** An upper estimate of the tokens of a text; models differ, so each kind of character counts at its dearest. */
export function tokensOf(text: string): number {
  return Math.ceil(estimateOf(text));
}

function estimateOf(text: string, seen?: ReadonlySet<string>): number {
  return measure(text, Number.POSITIVE_INFINITY, seen).tokens;
}

/** A text, or as much of its beginning as fits so many tokens, and an ellipsis. */
export function withinTokens(text: string, most: number): string {
  const { end } = measure(text, most);
  return end === text.length ? text : `${text.slice(0, end)}…`;
}

/** What stands together in the JSON of our answers, with its tokens. */
const KNOWN: ReadonlyMap<string, number> = new Map([
  ...['{"_', '":["', '"],"', "atomic", "collection", "matched", "parent"].map((piece) => [piece, 1] as const),
  ...["contextCount", "childCount", "parentName", "eventName"].map((word) => [word, 2] as const),
]);

/** What a token never goes beyond, but for the space before a word: letters, three digits, signs, anything else. */
const PIECES =
  /(?<![A-Za-z])(?:contextCount|childCount|parentName|eventName)(?![A-Za-z])|\d{1,3}|[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[!-/:-@[-`{-~]+|./gsu;

/** Pairs of capitals that are two tokens. */
const SPLIT_PAIRS = new Set(
  (
    "EJ FJ FQ FZ GJ GQ GZ IY JH JQ JX JY JZ KJ KQ KX KZ LJ LQ LZ MZ NQ OQ OZ PZ QF QG QH QJ QK QO QW QX QY QZ RZ TQ " +
    "UO UQ VJ VQ VY VZ WJ WQ WZ XG XH XJ XK XQ XU XW YB YF YH YI YJ YQ YV ZB ZC ZJ ZK ZL ZP ZQ ZV"
  ).split(" "),
);
const WORD_LETTER = 0.17;
const LONGEST_WORD = 14;
const FEWEST_VOWELS = 0.15;
const MOST_VOWELS = 0.75;
const JSON_SIGNS_OF_A_TOKEN = 3;
const FURTHER_SIGN = 0.7;
const OUTSIDE_BMP = 0xffff;

/**
 * The tokens of a text as far as they are no more than `most`, and where that is. Measured with o200k: words are cheap,
 * and so are digits (three a token); identifiers (letters mixed with digits and signs, or endless) are dear; a rare
 * letter of any script but Latin takes a token for each of its bytes in UTF-8.
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
      // Pieces of more than two are of ASCII alone, and may be cut anywhere.
      const fitting = piece.length > 2 ? Math.floor(((most - tokens) * piece.length) / more) : 0;
      return { tokens: most, end: index + fitting };
    }
    tokens += more;
    before = piece.at(-1) ?? "";
  }
  return { tokens, end: text.length };
}

/** The tokens of a piece between the character before it and the one after its first. */
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

/** What tells letters that come again: others may follow what the IDs of a request have in common. */
const beginningOf = (letters: string): string => letters.slice(0, 3);

/**
 * Letters without a meaning are taken in pairs, more or less. Those that come in row after row count at their dearest,
 * since what is missing in one would add up.
 */
function tokensOfLetters(letters: string, isRepeated = false): number {
  if (isRepeated) return mostTokensOfLetters(letters);
  const { length } = letters;
  let pairs = 0;
  for (let at = 0; at < length; pairs += 1) at += isPair(letters, at) ? 2 : 1;
  return pairs * 2 === length ? pairs + (length - 2) * BETWEEN_PAIRS : pairs;
}

/** Of all ways to take letters in pairs that leave no pair untaken, the one of most tokens. */
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

/** Where all letters have found their pair, others might have been better: measured, on average. */
const BETWEEN_PAIRS = 0.1;

/** Whether letters can be spoken, and begin where words do: what cannot, or follows a digit, is dear. */
function isWord(letters: string, before: string): boolean {
  if (letters.length > LONGEST_WORD || !/[a-z]$/.test(letters)) return false;
  if (/[0-9]/.test(before) || (/[A-Za-z]/.test(before) && letters.length < SHORTEST_INSIDE)) return false;
  const vowels = letters.replace(/[^aeiouy]/gi, "").length / letters.length;
  return vowels >= FEWEST_VOWELS && vowels <= MOST_VOWELS;
}

/** Of the words that follow another without a sign between them, such as `Cart` in `addToCart`. */
const SHORTEST_INSIDE = 4;

/**
 * A cursor: where a list goes on. It begins with a digest of what was asked, so that it cannot go on with another
 * question, and holds letters, digits, - and _ alone.
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
  const content = Buffer.from(cursor.slice(digest.length), "base64url").toString("utf8");
  return position.safeParse(parseJson(content)).data;
}

function digestOf(query: unknown): string {
  return createHash("sha256")
    .update(JSON.stringify(query) ?? "")
    .digest("base64url")
    .slice(0, 4);
}
