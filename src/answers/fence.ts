import { randomUUID } from "node:crypto";
import { amount, thousands } from "../platform/text.ts";
import type { FailureDetail, PlaceRange } from "../runs/report.ts";
import { EVENT_FIELDS, EVENTS, ITEM_FIELDS } from "../spec/events.ts";
import { nameProblem } from "../spec/names-and-contexts.ts";

const LONGEST_SHOWN = 300;
const LONGEST_BRIEF = 60;
const LONGEST_NAME = 36;
/**
 * How many random hexadecimal digits the marks of foreign text have, so that foreign text cannot predict the end mark.
 * The digits are taken from a UUID, because Node creates UUIDs fast.
 */
const TAG_DIGITS = 4;

/** Matches invisible characters, and characters that begin a new line. */
export const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Marks lines as foreign text. Foreign text in them must be quoted, so that no line of it can be the end mark. */
export function fenced(lines: readonly string[]): string {
  const tag = `untrusted-${randomUUID().slice(0, TAG_DIGITS)}`;
  return [`<${tag}>`, ...lines, `</${tag}>`].join("\n");
}

/** Moves the lines with foreign text to the end and marks them. If one of the `rows` has foreign text, all move. */
export function withForeignLast(lines: readonly string[], rows: readonly string[] = []): readonly string[] {
  const areForeign = !rows.every(isOurs);
  const foreign = [...lines.filter((line) => !isOurs(line)), ...(areForeign ? rows : [])];
  const ours = [...lines.filter(isOurs), ...(areForeign ? [] : rows)];
  return foreign.length === 0 ? ours : [...ours, fenced(foreign)];
}

/** If one of the lines quotes foreign text, marks all of them. Quoted texts that are in `own` are ours. */
export function fenceIfForeign(lines: readonly string[], own: readonly string[] = []): readonly string[] {
  const withoutOwn = (line: string): string =>
    own.reduce((left, text) => left.replaceAll(JSON.stringify(text), ""), line);
  return lines.every((line) => isOurs(withoutOwn(line))) ? lines : [fenced(lines)];
}

const QUOTED = /"((?:[^"\\]|\\.)*)"/g;

/**
 * Returns whether a line has no foreign text: everything that it quotes is a valid name (management-api 8.3), a
 * documented name, at most one character, or a list of separators.
 */
export function isOurs(line: string): boolean {
  return [...line.matchAll(QUOTED)].every(
    ([, quoted = ""]) => /^(?:.?|[,;|]+)$/su.test(quoted) || isDocumented(quoted) || nameProblem(quoted) === undefined,
  );
}

function isDocumented(name: string): boolean {
  return [EVENTS, EVENT_FIELDS, ITEM_FIELDS].some((names) => Object.hasOwn(names, name)) || PARAMETERS.has(name);
}

const PARAMETERS: ReadonlySet<string> = new Set(
  Object.values(EVENTS).flatMap(({ parameters }) => Object.keys(parameters)),
);

/** Removes the marks of foreign text, which people do not need: foreign text is quoted as well. */
export function unmarked(text: string): string {
  return text.replaceAll(/^<\/?untrusted-[0-9a-f]+>\n?/gm, "");
}

/** Quotes a foreign text on one line. Escapes invisible characters, and cuts the text after 300 characters. */
export function quoteUntrusted(text: string): string {
  return quoted(text, LONGEST_SHOWN);
}

/** Returns a name for a sentence, with its ID or `other` words. An invalid name may be foreign text, so it is omitted. */
export function namedInSentence(name: string, other: string): string {
  return nameProblem(name) === undefined ? `${quoteUntrusted(name)} (${other})` : other;
}

/** Quotes a foreign text that may be in an answer many times. Cut after 60 characters. */
export function quoteShort(text: string): string {
  return quoted(text, LONGEST_BRIEF);
}

/** Quotes a foreign text at the end of a line, where a short text of plain words needs no quotation marks. */
export function quoteUntrustedLast(text: string): string {
  return text.length <= LONGEST_NAME && /^\p{L}[\p{L}\p{N}]*(?: [\p{L}\p{N}]+)*$/u.test(text)
    ? text
    : quoteUntrusted(text);
}

function quoted(text: string, most: number): string {
  const { kept, cut } = cutAt(text, most);
  return `"${escapeInvisible(kept.replace(/["\\]/g, "\\$&"))}"${cut > 0 ? ` (and ${amount(cut, "more character")})` : ""}`;
}

/** Escapes control, bidirectional and invisible characters. */
export function escapeInvisible(line: string): string {
  return line.replace(UNSEEN, escapeOf);
}

/** Escapes invisible characters in a sentence that may contain foreign text. Cuts it after 300 characters. */
export function plain(text: string): string {
  const { kept, cut } = cutAt(text, LONGEST_SHOWN);
  return `${escapeInvisible(kept)}${cut > 0 ? "…" : ""}`;
}

function cutAt(text: string, most: number): { readonly kept: string; readonly cut: number } {
  // A text has no more characters than code units. So a short one need not be counted.
  if (text.length <= most) return { kept: text, cut: 0 };
  const characters = [...text];
  const cut = Math.max(0, characters.length - most);
  return { kept: cut > 0 ? characters.slice(0, most).join("") : text, cut };
}

function escapeOf(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`;
}

/** Returns positions as people count them: `line 501`, `lines 2-20, 35`, `item 1`, `items 1-5000`. */
export function placesWords(
  places: readonly PlaceRange[],
  { byLine, omitted = false }: { readonly byLine: boolean; readonly omitted?: boolean },
): string {
  const sorted = joinedRanges(places.toSorted(([one], [other]) => one - other));
  const [first] = sorted;
  const isOne = sorted.length === 1 && first !== undefined && first[0] === first[1] && !omitted;
  const ranges = sorted.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
  const noun = byLine ? "line" : "item";
  return `${noun}${isOne ? "" : "s"} ${ranges.join(", ")}${omitted ? ", …" : ""}`;
}

/** Returns the position of an object in the call: its line or item, from 1, and its position inside that. */
export function placeWords({ index, line, child, grandchild }: Omit<FailureDetail, "reason">): string {
  const within = [child, grandchild].flatMap((position) => (position === undefined ? [] : [`.${position + 1}`]));
  return `${line === undefined ? `item ${index + 1}` : `line ${line}`}${within.join("")}`;
}

export function joinedRanges(places: readonly PlaceRange[]): readonly PlaceRange[] {
  const ranges: [from: number, to: number][] = [];
  for (const [from, to] of places) {
    const last = ranges.at(-1);
    if (last !== undefined && from >= last[0] && from <= last[1] + 1) last[1] = Math.max(last[1], to);
    else ranges.push([from, to]);
  }
  return ranges;
}

/** Returns a count with positions: `item 2`, `30 items (21-50)`. */
export function countedPlaces(
  count: number,
  places: readonly PlaceRange[],
  { byLine, omitted = false }: { readonly byLine: boolean; readonly omitted?: boolean },
): string {
  const words = placesWords(places, { byLine, omitted });
  const noun = byLine ? "line" : "item";
  return count === 1 ? words : `${thousands(count)} ${words.replace(/^\w+ (.*)$/, `${noun}s ($1)`)}`;
}

export interface Redactor {
  text(given: string): string;
  /** Returns bytes without secrets. If there are none in them, returns the same buffer. */
  bytes(given: Buffer): Buffer;
  /** Returns a copy without secrets in texts and property names. */
  record(given: Readonly<Record<string, unknown>>): Record<string, unknown>;
  /** Returns whether a value contains a secret. Does not search for secrets that may be ordinary words. */
  holds(given: unknown): boolean;
}

const REPLACEMENT = "[redacted]";

/** Shorter secrets are not hidden, because they occur by chance in many texts. */
const SHORTEST = 4;
/** Secrets of at least this length, except words, are also hidden inside words. Shorter ones occur there by chance. */
const SHORTEST_INSIDE = 8;
/** Matches a short secret of letters, which may also be an ordinary word. */
const WORD = /^[a-z]{1,15}$/i;
const NESTED_JSON = 3;

interface WrittenSecret {
  readonly form: string;
  /** Matches the secret as a whole word. Absent if the secret is hidden inside longer words as well. */
  readonly alone?: RegExp;
  readonly isWord: boolean;
}

/** Creates a redactor, which removes secrets from texts, also as they are written in JSON and in addresses. */
export function redactorFor(secrets: readonly string[]): Redactor {
  const known = new Set(secrets.filter((secret) => secret.length >= SHORTEST));
  // One secret may begin with another. The longer one is replaced first, so that nothing of it remains.
  const written = [...known].flatMap(writtenForms).sort((one, other) => other.form.length - one.form.length);
  const text = (given: string) =>
    written.reduce((clean, { form, alone }) => clean.replaceAll(alone ?? form, REPLACEMENT), given);
  const data = (given: unknown): unknown => {
    if (typeof given === "string") return text(given);
    if (Array.isArray(given)) return given.map(data);
    return typeof given === "object" && given !== null ? record({ ...given }) : given;
  };
  const record = (given: Readonly<Record<string, unknown>>): Record<string, unknown> =>
    Object.fromEntries(Object.entries(given).map(([name, value]) => [text(name), data(value)]));
  const bytes = (given: Buffer): Buffer =>
    written.some(({ form }) => given.includes(form)) ? Buffer.from(text(given.toString("utf8"))) : given;
  const telling = written.filter(({ isWord }) => !isWord);
  const holds = (given: unknown): boolean => {
    if (typeof given === "string")
      return telling.some(({ form, alone }) => (alone === undefined ? given.includes(form) : given.search(alone) >= 0));
    if (typeof given !== "object" || given === null) return false;
    return Object.entries(given).some(([name, value]) => holds(name) || holds(value));
  };
  if (written.length > 0) return { text, bytes, record, holds };
  return { text: (given) => given, bytes: (given) => given, record: (given) => ({ ...given }), holds: () => false };
}

function writtenForms(secret: string): readonly WrittenSecret[] {
  const forms = new Set([
    secret,
    encodeURIComponent(secret),
    encodeURIComponent(secret).replace(/%../g, (text) => text.toLowerCase()),
  ]);
  for (let form = secret, depth = 0; depth < NESTED_JSON; depth += 1) {
    form = JSON.stringify(form).slice(1, -1);
    forms.add(form);
  }
  const isWord = WORD.test(secret);
  const standsAlone = isWord || secret.length < SHORTEST_INSIDE;
  return [...forms].map((form) => (standsAlone ? { form, alone: aloneIn(form), isWord } : { form, isWord }));
}

function aloneIn(form: string): RegExp {
  const letters = form.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&");
  return new RegExp(`(?<![\\w-])${letters}(?![\\w-])`, "g");
}
