import { randomBytes } from "node:crypto";
import * as z from "zod";
import type { ManagementApi } from "../api/management.ts";
import { thousands } from "../platform/text.ts";
import { type Hit, scanOptions, type Walked, type WalkPosition, type Wanted } from "../reads/option-lists.ts";
import { untilStable } from "../reads/pages.ts";
import type { OptionRecord } from "../spec/records.ts";
import { DeadlineExceeded, managementOf } from "./apis.ts";
import { type ToolContext, ToolError, timeLeft } from "./define-tool.ts";
import { type ListForm, type OptionsQuery, type Part, placeOf } from "./option-page.ts";

export interface Counted extends Walked {
  readonly found: number;
}

interface FoundOption extends Hit {
  readonly counted: Counted;
}

/** The options that a search has found. `next` is absent if all options were read. */
interface Found {
  readonly hits: readonly FoundOption[];
  readonly counted: Counted;
  readonly next: WalkPosition | undefined;
  readonly stopped: boolean;
}

interface SearchJob {
  readonly query: OptionsQuery;
  readonly from: WalkPosition;
  /** Reading ends after this number of matches, unless `countsAll` is set. */
  readonly most: number;
  readonly countsAll?: boolean;
  readonly counted: Counted;
  readonly fresh: boolean | undefined;
}

/** Reads until `most` options match, all were read, or time is up. Starts again if a list changes meanwhile. */
export function searchOptions(
  api: ManagementApi,
  context: ToolContext,
  { query, from, most, countsAll = false, counted: before, fresh }: SearchJob,
): Promise<Found> {
  const { clock, signal, contents: store } = context;
  const { targetingId, parent } = query;
  const end = clock.now() + timeLeft(context);
  return untilStable(async (mayChange) => {
    const hits: FoundOption[] = [];
    let counted = before;
    let next: WalkPosition | undefined;
    const walk = { targetingId, parent, signal, ...mayChange };
    const scan = scanOptions(api, { walk, from, wanted: query, contents: { store, fresh } });
    try {
      for await (const { from: step, value } of scan) {
        const { walked } = step;
        counted = {
          topLevel: before.topLevel + walked.topLevel,
          subOptions: before.subOptions + walked.subOptions,
          found: counted.found + (value === undefined ? 0 : 1),
        };
        next = step.next;
        if (value !== undefined && hits.length < most) hits.push({ ...value, counted });
        if (hits.length >= most && !countsAll) return { hits, counted, next, stopped: false };
        if (clock.now() >= end) return { hits, counted, next, stopped: true };
      }
    } catch (thrown) {
      if (thrown instanceof DeadlineExceeded && next !== undefined) return { hits, counted, next, stopped: true };
      throw thrown;
    }
    return { hits, counted, next: undefined, stopped: false };
  });
}

const key = z.tuple([z.union([z.string(), z.number()]), z.string(), z.string()]);
/** The cursor of a sorted list. `after`: the last option's sort key. `scan`: where reading continues. */
const place = z.strictObject({
  after: key.optional(),
  scan: z
    .strictObject({
      id: z.string(),
      top: z.int().min(0),
      inside: z.int().min(0).optional(),
      counted: z.tuple([z.int(), z.int(), z.int()]),
    })
    .optional(),
});
type Place = z.output<typeof place>;
type Key = z.output<typeof key>;

const MAX_SORTED = 100;
const MAX_SCANS = 16;

/** By ID: the matches of searches that take several calls. They are too large for a cursor. */
const begun = new Map<string, readonly FoundOption[]>();

function keep(id: string, hits: readonly FoundOption[]): void {
  begun.set(id, hits);
  for (const oldest of [...begun.keys()].slice(0, Math.max(0, begun.size - MAX_SCANS))) begun.delete(oldest);
}

/**
 * Returns the next options of a list that is sorted by name, or with the most Context IDs first. All options must be
 * read before. If one call is too short for that, returns a cursor.
 */
export async function sortedPart(
  query: OptionsQuery & { readonly sortBy: "contextCount" | "name" },
  { limit, cursor, fresh }: Pick<ListForm, "limit" | "cursor" | "fresh">,
  api: ManagementApi,
  context: ToolContext,
): Promise<Part<Place>> {
  const { sortBy } = query;
  const start = placeOf("list", cursor, query, { schema: place, beginning: {} });
  const { after } = start;
  const keptAs = (id: string): string => JSON.stringify([context.caller, id]);
  const kept = start.scan && begun.get(keptAs(start.scan.id));
  const scan = kept === undefined ? undefined : start.scan;
  const [top, sub, before] = scan?.counted ?? [0, 0, 0];
  const found = await searchOptions(api, context, {
    query,
    from: { top: scan?.top ?? 0, inside: scan?.inside },
    most: Number.POSITIVE_INFINITY,
    counted: { topLevel: top, subOptions: sub, found: before },
    fresh,
  });
  const compare = ([one, ...rest]: Key, [other, ...others]: Key): number =>
    (sortBy === "name" ? byCodePoints(String(one), String(other)) : Number(other) - Number(one)) ||
    byCreation(rest, others);
  const isBehind = (hit: FoundOption): boolean => after === undefined || compare(keyOf(hit, sortBy), after) > 0;
  // An option that moved between two calls is read twice, so options are collected by ID.
  const all = new Map([...(kept ?? []), ...found.hits.filter(isBehind)].map((hit) => [hit.step.option._id, hit]));
  const rest = [...all.values()].sort((one, other) => compare(keyOf(one, sortBy), keyOf(other, sortBy)));
  const { topLevel, subOptions } = found.counted;
  const scanned = topLevel + subOptions;
  if (found.stopped && found.next !== undefined) {
    const id = randomBytes(6).toString("base64url");
    keep(keptAs(id), rest.slice(0, MAX_SORTED + 1));
    const { top: at, inside } = found.next;
    const counted: [number, number, number] = [topLevel, subOptions, found.counted.found];
    const next: Place = {
      ...(after !== undefined && { after }),
      scan: { id, top: at, ...(inside !== undefined && { inside }), counted },
    };
    return { hits: [], next, limit, scanned, complete: false, note: soFar(scanned, start, kept), isFiltered: true };
  }
  const shown = rest.slice(0, kept === undefined ? limit : Math.min(limit, MAX_SORTED));
  const hits = shown.map((hit) => ({ ...hit, behind: { after: keyOf(hit, sortBy) } }));
  return {
    hits,
    next: rest.length > hits.length ? hits.at(-1)?.behind : undefined,
    limit,
    total: found.counted.found,
    topLevel,
    subOptions,
    scanned,
    complete: true,
    isFiltered: true,
  };
}

function soFar(scanned: number, start: Place, kept: readonly FoundOption[] | undefined): string {
  const again =
    start.scan !== undefined && kept === undefined
      ? " What was found before no longer exists, so the search started again."
      : "";
  return `One call was too short: ${scanned} options were read so far, and they can be sorted only when all are read. The cursor continues.${again}`;
}

function keyOf({ step: { option } }: FoundOption, sortBy: "contextCount" | "name"): Key {
  const { _id, name, contextCount = 0, createdAt = "" }: OptionRecord = option;
  return [sortBy === "name" ? name : contextCount, createdAt, _id];
}

/** Compares options by ID. IDs begin with the time of creation. */
function byCreation(one: readonly [string, string], other: readonly [string, string]): number {
  return byCodePoints(one[0], other[0]) || byCodePoints(one[1], other[1]);
}

/** Compares texts by code points. `<` compares UTF-16 units, which gives a wrong order for some characters. */
function byCodePoints(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let at = 0; at < length; at += 1) {
    const [a, b] = [one.charCodeAt(at), other.charCodeAt(at)];
    if (a !== b) return inOrder(a) - inOrder(b);
  }
  return one.length - other.length;
}

/** Returns a sort key for a UTF-16 unit. Surrogates come after all other units, as their code points do. */
function inOrder(unit: number): number {
  if (unit >= 0xe000) return unit - 0x800;
  return unit >= 0xd800 ? unit + 0x2000 : unit;
}

/** Returns all options that match. Throws a ToolError if one call is too short; the next call continues. */
export async function everyOption(
  targetingId: string,
  { contextIds }: Pick<Wanted, "contextIds">,
  context: ToolContext,
): Promise<readonly Hit[]> {
  const { hits, counted, stopped } = await searchOptions(managementOf(context), context, {
    query: { targetingId, parent: undefined, all: true, sortBy: undefined, contextIds },
    from: { top: 0 },
    most: Number.POSITIVE_INFINITY,
    counted: { topLevel: 0, subOptions: 0, found: 0 },
    fresh: undefined,
  });
  if (!stopped) return hits;
  throw new ToolError(
    `only ${thousands(counted.topLevel + counted.subOptions)} options could be read in one call; nothing was changed`,
    "Make the same call again: the data that was read is stored, so the next call continues from there.",
  );
}
