import * as z from "zod";
import type { ManagementApi } from "../../api/management.ts";
import { readCursor } from "../../render/page.ts";
import type { OptionRecord } from "../../spec/records.ts";
import type { ToolContext } from "../context.ts";
import type { Part } from "./option-page.ts";
import { type ListForm, type OptionsQuery, strangeCursor } from "./option-query.ts";
import { type FoundOption, searchOptions } from "./option-search.ts";

/** What decides the order of two options: of the last one shown, so that a cursor stays right while others change. */
const place = z.strictObject({ after: z.tuple([z.union([z.string(), z.number()]), z.string(), z.string()]) });
type Place = z.output<typeof place>;

/**
 * The next options in order of their Context IDs, the most first, or of their names by code points; what is the same goes
 * by creation. All are looked at first: where one wait is too short for that, none is given. Throws ApiErrors, and a
 * ToolError for a cursor of another list.
 */
export async function sortedPart(
  query: OptionsQuery & { readonly sortBy: "contextCount" | "name" },
  { limit, cursor, fresh }: Pick<ListForm, "limit" | "cursor" | "fresh">,
  api: ManagementApi,
  context: ToolContext,
): Promise<Part<Place>> {
  const { targetingId, parent, sortBy } = query;
  const start = cursor ? readCursor(cursor, query, place) : undefined;
  if (cursor && start === undefined) throw strangeCursor();
  const found = await searchOptions(api, context, {
    walk: { targetingId, parent, signal: context.signal },
    from: { top: 0 },
    wanted: query,
    most: Number.POSITIVE_INFINITY,
    fresh,
  });
  const { topLevel, subOptions } = found.counted;
  const scanned = topLevel + subOptions;
  if (found.stopped) {
    const note =
      `One wait was too short to look at all options, and nothing is sorted before that: ${scanned} were looked at. ` +
      "Narrow it down with parent or search, or let TARGETING_MCP_WAIT_MS be longer.";
    return { hits: [], next: undefined, limit, scanned, complete: false, note, isFiltered: true };
  }
  const compare = sortBy === "name" ? byName : byContextCount;
  const sorted = [...found.hits].sort((one, other) => compare(keyOf(one, sortBy), keyOf(other, sortBy)));
  const rest = start === undefined ? sorted : sorted.filter((hit) => compare(keyOf(hit, sortBy), start.after) > 0);
  const hits = rest.slice(0, limit).map((hit) => ({ ...hit, behind: { after: keyOf(hit, sortBy) } }));
  return {
    hits,
    next: rest.length > hits.length ? hits.at(-1)?.behind : undefined,
    limit,
    total: sorted.length,
    topLevel,
    subOptions,
    scanned,
    complete: true,
    isFiltered: true,
  };
}

type Key = Place["after"];

function keyOf({ step: { option } }: FoundOption, sortBy: "contextCount" | "name"): Key {
  const { _id, name, contextCount = 0, createdAt = "" }: OptionRecord = option;
  return [sortBy === "name" ? name : contextCount, createdAt, _id];
}

function byContextCount([one, ...rest]: Key, [other, ...others]: Key): number {
  return Number(other) - Number(one) || byCreation(rest, others);
}

function byName([one, ...rest]: Key, [other, ...others]: Key): number {
  return byCodePoints(String(one), String(other)) || byCreation(rest, others);
}

/** An ID begins with when it was made. */
function byCreation(one: readonly [string, string], other: readonly [string, string]): number {
  return byCodePoints(one[0], other[0]) || byCodePoints(one[1], other[1]);
}

/** Compares as code points, where `<` compares the halves of a character outside of the basic plane. */
function byCodePoints(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const [a, b] = [one.charCodeAt(at), other.charCodeAt(at)];
    if (a !== b) return inOrder(a) - inOrder(b);
  }
  return one.length - other.length;
}

/** Halves of characters come behind all other code units, as their code points do. */
function inOrder(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}
