import { amount, thousands } from "../platform/text.ts";
import type { SeenTargeting } from "../runs/backend.ts";
import type { Saved } from "../saves/save-state.ts";
import type { OptionRecord, TargetingRecord } from "../spec/records.ts";
import {
  fenced,
  fenceIfForeign,
  namedInSentence,
  quoteUntrusted,
  quoteUntrustedLast,
  withForeignLast,
} from "./fence.ts";
import { EMPTY_WORDS, many } from "./message-words.ts";

/** The fields of an option in a concise answer. Fields that the API document does not mention are never shown. */
const CONCISE = ["_id", "name", "type", "contextCount", "childCount", "parent"] as const;
const DETAILED = [...CONCISE, "exposeChildren", "createdAt", "updatedAt", "targeting", "children"] as const;
const TARGETING = ["_id", "name", "optionCount", "createdAt", "updatedAt"] as const;

export function optionRow(option: OptionRecord, detail: "concise" | "detailed"): OptionRow {
  return { _id: option._id, name: option.name, ...fieldsOf(option, detail === "concise" ? CONCISE : DETAILED) };
}

export function targetingRow(targeting: TargetingRecord): Readonly<Record<string, unknown>> {
  return fieldsOf(targeting, TARGETING);
}

function fieldsOf(record: Readonly<Record<string, unknown>>, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(
    names.flatMap((name) => (record[name] === undefined || record[name] === null ? [] : [[name, record[name]]])),
  );
}

export interface OptionsTotals {
  readonly total?: number | undefined;
  readonly topLevel?: number | undefined;
  readonly subOptions?: number | undefined;
  readonly scanned?: number | undefined;
  readonly complete?: boolean | undefined;
  readonly note?: string | undefined;
  readonly isFiltered: boolean;
}

interface OptionsPage extends OptionsTotals {
  readonly rows: readonly OptionRow[];
  readonly cursor?: string | undefined;
  readonly brief?: BriefList | undefined;
}

export function optionsText(page: OptionsPage): string {
  const { rows, total, scanned, topLevel, subOptions, complete, note, cursor, brief, isFiltered } = page;
  const counted = `${amount(rows.length, "option")}${total === undefined || total === rows.length ? "" : ` of ${thousands(total)}`}`;
  const kinds =
    topLevel !== undefined &&
    subOptions !== undefined &&
    (subOptions === 0 ? "no sub-options" : `${thousands(topLevel)} top-level, ${many(subOptions, "sub-option")}`);
  const parts = [
    scanned !== undefined && `${thousands(scanned)} scanned`,
    kinds,
    complete !== undefined && isFiltered && (complete ? "complete" : "not complete"),
  ].filter((part) => part !== false);
  const about = parts.length === 0 ? "" : ` (${parts.join("; ")})`;
  const columns = rows.length === 0 ? "." : ": ID:Context IDs, name.";
  const cut = brief?.beginning ? ` Each ID begins with ${brief.beginning}, which is omitted here.` : "";
  return lines([
    `${counted}${about}${columns}${cut}`,
    ...fenceIfForeign(rows.map(listLines(brief))),
    note,
    cursor !== undefined && goOn(cursor),
  ]);
}

export function optionText(page: {
  readonly row: OptionRow;
  readonly contexts: readonly string[];
  readonly total: number;
  readonly note?: string | undefined;
  readonly cursor: string | undefined;
}): string {
  const { row, contexts, total, note, cursor } = page;
  const { _id, name, ...rest } = row;
  const option = [_id, quoteUntrusted(name), ...fieldWords(rest)].join(" ");
  return lines([
    `The option and ${contexts.length === total ? `all its ${many(total, "Context ID")}` : `${thousands(contexts.length)} of its ${many(total, "Context ID")}`}:`,
    fenced([option, ...contexts.map(quoteUntrusted)]),
    note,
    cursor !== undefined && goOn(cursor),
  ]);
}

interface ContextList {
  readonly total: number;
  readonly contexts: readonly string[];
  readonly complete: boolean;
}

interface ComparedOptions extends Readonly<Record<"onlyHere" | "onlyThere", ContextList>> {
  /** The number of Context IDs that both options have. If the call requested it, also these Context IDs. */
  readonly shared: Pick<ContextList, "total"> & Partial<ContextList>;
  readonly row: OptionRow;
  readonly other: OptionRow;
  readonly note?: string | undefined;
  readonly cursor: string | undefined;
}

export function comparedText({ row, other, shared, onlyHere, onlyThere, note, cursor }: ComparedOptions): string {
  const isWhole = onlyHere.complete && onlyThere.complete;
  const list = (what: string, { total, contexts }: Pick<ContextList, "total" | "contexts">) => [
    `${what}: ${total}${contexts.length < total ? `, of which ${contexts.length} here` : ""}`,
    ...contexts.map(quoteUntrusted),
  ];
  return lines([
    `${many(onlyHere.total, "Context ID")} only in the first option, ${thousands(onlyThere.total)} only in the second, ` +
      `${thousands(shared.total)} in both.${isWhole ? " The differences are complete." : ""}`,
    fenced([
      `first: ${listLine(row)}`,
      `second: ${listLine(other)}`,
      ...list("only in the first", onlyHere),
      ...list("only in the second", onlyThere),
      ...(shared.contexts === undefined ? [] : list("in both", { total: shared.total, contexts: shared.contexts })),
    ]),
    note,
    cursor !== undefined && goOn(cursor),
  ]);
}

export function savedText({ savedTo, base, counts, largest = [], option }: Saved): string {
  const { options, contextIds } = counts;
  const ids = many(contextIds, "Context ID");
  const what = option === undefined ? `${many(options, "option")} with ${ids}` : ids;
  const of = option === undefined ? "" : ` of the option ${namedInSentence(option.name, option._id)}`;
  const { groups = 0, subOptions = 0, withoutContexts = 0 } = counts;
  const found = [
    groups > 0 && many(groups, "group"),
    subOptions > 0 && many(subOptions, "sub-option"),
    withoutContexts > 0 && `${thousands(withoutContexts)} empty (${EMPTY_WORDS})`,
  ].filter((part) => part !== false);
  const none = "no group, sub-option or empty option";
  const kinds = counts.groups !== undefined && `Of these: ${found.length === 0 ? none : found.join(", ")}.`;
  return lines([
    `Saved ${what}${of} to ${quoteUntrusted(savedTo)}.`,
    base !== undefined &&
      `Its base is ${quoteUntrusted(base)}. Later plans compare with it to find what has changed since.`,
    kinds,
    largest.length > 0 && `The largest (ID:number of Context IDs, name):\n${fenced(largest.map(listLine))}`,
  ]);
}

/** The counts of a targeting. If not `complete`, only a part of it was read and counted. */
export interface TargetingSummary {
  readonly topLevel: number;
  readonly groups: number;
  readonly subOptions: number;
  readonly withoutContexts: number;
  readonly contextIds: number;
  readonly complete: boolean;
}

export function targetingText(
  row: Readonly<Record<string, unknown>>,
  summary?: TargetingSummary,
  cursor?: string,
): string {
  return lines([
    "The targeting:",
    ...fenceIfForeign([fieldWords(row).join(" ")]),
    summary !== undefined &&
      `It holds ${many(summary.topLevel, "top-level option")} (${many(summary.groups, "group")}), ` +
        `${many(summary.subOptions, "sub-option")} and ${many(summary.contextIds, "Context ID")} (summed over the options). ` +
        `Empty (${EMPTY_WORDS}): ${thousands(summary.withoutContexts)}.`,
    summary?.complete === false &&
      "These counts are not complete: reading the whole targeting takes more than one call.",
    cursor !== undefined && `To continue counting: the same call with cursor ${cursor}`,
  ]);
}

/** Returns a list of targetings whose names contain the given text. `candidates`: the lines of the list. */
export function candidatesText(part: string, candidates: readonly string[], omitted: number): string {
  return lines([
    `No targeting seen before is named exactly ${quoteUntrusted(part)}; these names contain it:`,
    ...withForeignLast([], candidates),
    omitted > 0 && `${thousands(omitted)} more contain it; give more of the name.`,
  ]);
}

/** Returns a list of other targetings whose names contain the name of the one in the answer. */
export function othersText(others: readonly SeenTargeting[]): string {
  return lines(["Names of other targetings that contain this name:", ...withForeignLast([], others.map(seenLine))]);
}

export function seenLine({ _id, name, seenAt }: SeenTargeting): string {
  return `${_id} ${quoteUntrusted(name)} ${new Date(seenAt).toISOString().slice(0, 16)}Z`;
}

/**
 * Returns a list of targetings that were seen before. `seen`: its lines. `mayChange`: a sentence that says which
 * targetings the caller may change; absent if all.
 */
export function seenText(seen: readonly string[], omitted: number, mayChange?: string): string {
  if (seen.length === 0) {
    const otherwise = mayChange === undefined ? ", or create one" : `. ${mayChange}`;
    return (
      "No targeting has been seen yet, and the service cannot list them: ask the person for the ID (a ULID, shown in " +
      `the web console)${otherwise}.`
    );
  }
  return lines([
    `${many(seen.length, "targeting")} seen before, with the time of the last look; names may have changed since:`,
    ...withForeignLast([], seen),
    omitted > 0 && `${thousands(omitted)} more were seen earlier; give targetingName to find one of them.`,
  ]);
}

function goOn(cursor: string): string {
  return `More: the same call with cursor ${cursor}`;
}

function lines(parts: readonly (string | false | undefined)[]): string {
  return parts.filter((part) => part !== false && part !== undefined).join("\n");
}

export type OptionRow = Readonly<Record<string, unknown>> & { readonly _id: string; readonly name: string };

function fieldWords(fields: Readonly<Record<string, unknown>>): readonly string[] {
  return Object.entries(fields).map(([field, value]) => `${field}=${plain(value)}`);
}

/** Returns an option as a line: its ID, its number of Context IDs, its name, and fields that few options have. */
export function listLine({ _id, name, type, contextCount, parent, parentName, ...rest }: OptionRow): string {
  const { childCount, contextCountWithChildren, matched, contexts, ...fields } = rest;
  const all =
    contextCountWithChildren === undefined
      ? ""
      : ` with ${many(Number(contextCountWithChildren), "Context ID")} in all`;
  const more = [
    type === "collection" &&
      `group of ${childCount === undefined ? "? sub-options" : many(Number(childCount), "sub-option")}${all}`,
    typeof parentName === "string" && `in ${quoteUntrusted(parentName)}`,
    typeof parent === "string" && typeof parentName !== "string" && `in ${parent}`,
    Array.isArray(matched) && `holds ${plain(matched)}`,
    Array.isArray(contexts) && `first ${plain(contexts)}`,
    ...fieldWords(fields),
  ].filter((part) => part !== false);
  const count = contextCount === undefined ? "?" : plain(contextCount);
  // Quotation marks cost tokens on each line. A safe name at the end of a line needs none.
  return [`${_id}:${count}`, more.length > 0 ? quoteUntrusted(name) : quoteUntrustedLast(name), ...more].join(" ");
}

/** What the lines of a list omit to save tokens. `beginning`: the letters with which all IDs begin; may be empty. */
export interface BriefList {
  readonly beginning: string;
}

/** Returns a function that formats rows one by one. When the group changes, it first adds a line for the new group. */
export function listLines(brief?: BriefList): (row: OptionRow) => string {
  const known = new Map<string, unknown>();
  let last: string | undefined;
  return ({ parent, parentName, ...row }) => {
    const place =
      brief !== undefined && typeof parentName === "string"
        ? { key: parentName, words: `in ${quoteUntrustedLast(parentName)}` }
        : groupWords(parent, parentName, known);
    known.set(row.name, row._id);
    const line = listLine({ ...row, _id: row._id.slice(brief?.beginning.length) });
    const isAsBefore = place.key === last;
    last = place.key;
    return isAsBefore ? line : `${place.words}\n${line}`;
  };
}

/**
 * Returns the letters with which all IDs of a list begin, so that its lines can omit them. At most the ten letters of a
 * ULID that contain the time of creation are omitted.
 */
export function briefList(rows: readonly OptionRow[]): BriefList {
  const [first = "", ...others] = rows.map(({ _id }) => _id);
  let length = Math.min(first.length, ULID_TIME_LETTERS);
  for (const id of others) while (!id.startsWith(first.slice(0, length))) length -= 1;
  return { beginning: first.slice(0, length < FEWEST_LEFT_OUT ? 0 : length) };
}

const ULID_TIME_LETTERS = 10;
/** At least this many letters are omitted. For fewer, explaining it would cost more tokens than it saves. */
const FEWEST_LEFT_OUT = 3;

/** Returns words for the group of a row. Omits the group's ID if the list has shown it before. */
function groupWords(
  id: unknown,
  name: unknown,
  known: Map<string, unknown>,
): { readonly key: string | undefined; readonly words: string } {
  const key = typeof id === "string" ? id : typeof name === "string" ? name : undefined;
  if (key === undefined) return { key, words: "at the top level:" };
  if (typeof name !== "string") return { key, words: `in ${key}:` };
  const isKnown = key === name || known.get(name) === id;
  known.set(name, id);
  return { key, words: `in ${quoteUntrusted(name)}${isKnown ? "" : ` ${key}`}:` };
}

/** Quotes a text from the service, unless all its characters are safe. */
function plain(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(plain).join(",")}]`;
  if (typeof value === "string") return /^[\w.:+-]*$/.test(value) ? value : quoteUntrusted(value);
  return JSON.stringify(value);
}
