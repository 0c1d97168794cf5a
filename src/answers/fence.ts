import { randomUUID } from "node:crypto";
import { thousands } from "../platform/text.ts";
import type { FailureDetail, PlaceRange } from "../runs/report.ts";
import { EVENT_FIELDS, EVENTS, ITEM_FIELDS } from "../spec/events.ts";
import { nameProblem } from "../spec/names.ts";

const LONGEST_SHOWN = 300;
const LONGEST_BRIEF = 60;
/** Of a valid name (management-api 8.3). */
const LONGEST_NAME = 36;
/** Of a UUID, whose first digits are random: Node has random bytes for many of them at hand, and asks the system for others. */
const TAG_DIGITS = 4;

/** Controls and formats (bidirectional marks, zero-width characters), separators, and all that is drawn as nothing. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/**
 * Marks where foreign text begins and ends: names, Context IDs and messages that the service or its users wrote. Takes
 * lines in which every foreign text is already `shown`, so that none can begin a line and end the part. The mark is
 * random; the server's instructions say what it means.
 */
export function fenced(lines: readonly string[]): string {
  const tag = `untrusted-${randomUUID().slice(0, TAG_DIGITS)}`;
  return [`<${tag}>`, ...lines, `</${tag}>`].join("\n");
}

/**
 * Lines of an answer with all that hold foreign text behind the others, in one part with marks. `rows` come last, and
 * are marked all together where one of them holds foreign text.
 */
export function withForeignLast(lines: readonly string[], rows: readonly string[] = []): readonly string[] {
  const areForeign = !rows.every(isOurs);
  const foreign = [...lines.filter((line) => !isOurs(line)), ...(areForeign ? rows : [])];
  const ours = [...lines.filter(isOurs), ...(areForeign ? [] : rows)];
  return foreign.length === 0 ? ours : [...ours, fenced(foreign)];
}

/** Lines that belong together: marked where one of them holds foreign text. */
export function fencedWhereForeign(lines: readonly string[]): readonly string[] {
  return lines.length === 0 || lines.every(isOurs) ? lines : [fenced(lines)];
}

const QUOTED = /"((?:[^"\\]|\\.)*)"/g;

/**
 * Whether a line may stand among our own sentences: all that it quotes are valid names (management-api 8.3), names of
 * the documents, or single characters. It is one line, and a quotation mark within a foreign text is escaped.
 */
export function isOurs(line: string): boolean {
  return [...line.matchAll(QUOTED)].every(
    ([, quoted = ""]) => [...quoted].length <= 1 || isDocumented(quoted) || nameProblem(quoted) === undefined,
  );
}

function isDocumented(name: string): boolean {
  return [EVENTS, EVENT_FIELDS, ITEM_FIELDS].some((names) => Object.hasOwn(names, name)) || PARAMETERS.has(name);
}

const PARAMETERS: ReadonlySet<string> = new Set(
  Object.values(EVENTS).flatMap(({ parameters }) => Object.keys(parameters)),
);

/** An answer without its marks: they are for models, and people see what stands in quotes. */
export function unmarked(text: string): string {
  return text.replaceAll(/^<\/?untrusted-[0-9a-f]+>\n?/gm, "");
}

/**
 * A foreign text in quotes, on one line: control, bidirectional and invisible characters as escapes, and what is
 * longer than 300 characters cut, saying how much is missing.
 */
export function quoteUntrusted(text: string): string {
  return quoted(text, LONGEST_SHOWN);
}

/** As `shown`, but cut after 60 characters: for what may come many times in one sentence. */
export function quoteShort(text: string): string {
  return quoted(text, LONGEST_BRIEF);
}

/** A foreign text that ends a line: as it is where it is words of letters and digits alone, else in quotes. */
export function quoteUntrustedLast(text: string): string {
  return text.length <= LONGEST_NAME && /^\p{L}[\p{L}\p{N}]*(?: [\p{L}\p{N}]+)*$/u.test(text)
    ? text
    : quoteUntrusted(text);
}

function quoted(text: string, most: number): string {
  const { kept, cut } = cutAt(text, most);
  return `"${seen(kept.replace(/["\\]/g, "\\$&"))}"${cut > 0 ? ` (and ${cut} more characters)` : ""}`;
}

/** A line of code or data as it is, but for control, bidirectional and invisible characters, which become escapes. */
export function seen(line: string): string {
  return line.replace(UNSEEN, escapeOf);
}

/** A sentence that may hold foreign text: on one line, invisible characters as escapes, cut after 300 characters. */
export function plain(text: string): string {
  const { kept, cut } = cutAt(text, LONGEST_SHOWN);
  return `${seen(kept)}${cut > 0 ? "…" : ""}`;
}

function cutAt(text: string, most: number): { readonly kept: string; readonly cut: number } {
  // Most texts have fewer code units than that, and so no more characters.
  if (text.length <= most) return { kept: text, cut: 0 };
  const characters = [...text];
  const cut = Math.max(0, characters.length - most);
  return { kept: cut > 0 ? characters.slice(0, most).join("") : text, cut };
}

function escapeOf(character: string): string {
  return `\\u{${(character.codePointAt(0) ?? 0).toString(16).toUpperCase()}}`;
}

/** Places as a person counts: `line 501`, `lines 2-20, 35`, `item 1`, `items 1-5000`. */
export function placesWords(
  places: readonly PlaceRange[],
  { byLine, omitted = false }: { readonly byLine: boolean; readonly omitted?: boolean },
): string {
  const [first] = places;
  const isOne = places.length === 1 && first !== undefined && first[0] === first[1] && !omitted;
  const ranges = places.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`));
  const noun = byLine ? "line" : "item";
  return `${noun}${isOne ? "" : "s"} ${ranges.join(", ")}${omitted ? ", …" : ""}`;
}

/** Where something stands in the call: the line of a file, or the item counted from 1, and what it is within that. */
export function placeWords({ index, line, child, grandchild }: Omit<FailureDetail, "reason">): string {
  const within = [child, grandchild].flatMap((position) => (position === undefined ? [] : [`.${position + 1}`]));
  return `${line === undefined ? `item ${index + 1}` : `line ${line}`}${within.join("")}`;
}

/** Places one by one as ranges: those that follow each other are one. */
export function rangesOf(places: readonly number[]): readonly PlaceRange[] {
  const ranges: [from: number, to: number][] = [];
  for (const place of places) {
    const last = ranges.at(-1);
    if (last !== undefined && place >= last[0] && place <= last[1] + 1) last[1] = Math.max(last[1], place);
    else ranges.push([place, place]);
  }
  return ranges;
}

/** So many objects and where they stand: `item 2`, `30 items (21-50)`. */
export function countedPlaces(
  count: number,
  places: readonly PlaceRange[],
  { byLine, omitted = false }: { readonly byLine: boolean; readonly omitted?: boolean },
): string {
  const words = placesWords(places, { byLine, omitted });
  const noun = byLine ? "line" : "item";
  return count === 1 ? words : `${thousands(count)} ${words.replace(/^\w+ (.*)$/, `${noun}s ($1)`)}`;
}
