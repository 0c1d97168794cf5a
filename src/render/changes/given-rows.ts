/** What a page may hold in all, data and text together. */
const PAGE_TOKENS = 3500;
const LEAST_LEFT = 40;

/**
 * How many rows fit a page beside what else it says, at least one where there is one; `beside` are its texts. What was
 * given is measured closely, since much of it is punctuation.
 */
export function rowsBeside<Row>(rows: readonly Row[], lineOf: (row: Row) => string, beside: readonly string[]): number {
  let left = PAGE_TOKENS - LEAST_LEFT - beside.reduce((sum, text) => sum + closely(text), 0);
  let count = 0;
  for (const row of rows) {
    left -= closely(JSON.stringify(row)) + closely(lineOf(row)) + 2;
    if (left < 0) break;
    count += 1;
  }
  return Math.max(count, Math.min(rows.length, 1));
}

const PIECES = /[a-z]+|[A-Z]+|\d{1,3}|[ \n]+|[!-/:-@[-`{-~]+|./gsu;

/** An upper estimate of the tokens of a text, piece by piece: words, digits, runs of signs, anything else. */
function closely(text: string): number {
  let tokens = 0;
  for (const [piece] of text.matchAll(PIECES)) {
    const code = piece.codePointAt(0) ?? 0;
    if (code > LAST_PRINTED) tokens += code > OUTSIDE_BMP ? 4 : 2;
    else if (/[a-z]/.test(piece)) tokens += Math.ceil(piece.length / (isWord(piece) ? 8 : 2));
    else if (/[A-Z]/.test(piece)) tokens += Math.ceil(piece.length / 2);
    else if (/\d/.test(piece)) tokens += 1;
    else if (!/[ \n]/.test(piece)) tokens += Math.ceil(piece.length / 3);
  }
  return tokens;
}

/** Whether letters can be spoken: what cannot is no word, and dear. */
function isWord(letters: string): boolean {
  const vowels = letters.replace(/[^aeiouy]/g, "").length / letters.length;
  return letters.length <= LONGEST_WORD && vowels >= FEWEST_VOWELS && vowels <= MOST_VOWELS;
}

const LONGEST_WORD = 14;
const FEWEST_VOWELS = 0.15;
const MOST_VOWELS = 0.75;
const LAST_PRINTED = 0x7e;
const OUTSIDE_BMP = 0xffff;

const LONGEST_TEXT = 300;
const MOST_ENTRIES = 20;
const DEEPEST = 6;

/** What was given, long texts and lists cut, saying so. */
export function shortened(value: unknown, depth = 0): unknown {
  if (typeof value === "string")
    return value.length > LONGEST_TEXT ? `${value.slice(0, LONGEST_TEXT)}… (${value.length} characters)` : value;
  if (typeof value !== "object" || value === null) return value;
  if (depth === DEEPEST) return "…";
  if (Array.isArray(value)) {
    const first = value.slice(0, MOST_ENTRIES).map((entry) => shortened(entry, depth + 1));
    return value.length > MOST_ENTRIES ? [...first, `… (${value.length} entries)`] : first;
  }
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  const cut = entries.slice(0, MOST_ENTRIES * 2).map(([field, entry]) => [field, shortened(entry, depth + 1)] as const);
  return Object.fromEntries(cut);
}
