import { randomBytes } from "node:crypto";
import * as z from "zod";
import { joinNotes, pageBudget, renderAnswer, sizeOf, takeRows, writeCursor } from "../answers/budget.ts";
import {
  type BriefList,
  briefList,
  listLines,
  type OptionRow,
  type OptionsTotals,
  optionRow,
  optionsText,
} from "../answers/reading.ts";
import type { ManagementApi } from "../api/management.ts";
import type { WriteCall } from "../changes/call.ts";
import { findFreePlace } from "../files/folders.ts";
import { freePlaceFor } from "../files/save-file.ts";
import { thousands } from "../platform/text.ts";
import {
  type Hit,
  positionNow,
  scanOptions,
  type Walked,
  type WalkPosition,
  type Wanted,
} from "../reads/option-lists.ts";
import { untilStable } from "../reads/pages.ts";
import { asksDesired, isPart } from "../saves/save-options.ts";
import type { ListAsked, SaveCall } from "../saves/save-state.ts";
import type { OptionRecord } from "../spec/records.ts";
import { DeadlineExceeded, managementOf, savesOf } from "./apis.ts";
import { type FoundByName, placeOf, type SaveArguments } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, ToolError, timeLeft } from "./define-tool.ts";
import { reportedRun } from "./run-reports.ts";
import { followRun } from "./write/within-call.ts";

export interface Counted extends Walked {
  readonly found: number;
}

interface FoundOption extends Hit {
  readonly counted: Counted;
}

interface SearchJob {
  readonly query: OptionsQuery;
  readonly from: WalkPosition;
  readonly most: number;
  readonly countsAll?: boolean;
  readonly counted: Counted;
  readonly fresh: boolean | undefined;
}

/** How many options a search reads between two reports of progress. */
const PROGRESS_INTERVAL = 500;

/**
 * Reads options until `most` of them match, all were read, or the call must be answered. With `countsAll`, goes on
 * after `most` matches, to count the others. If the list changes meanwhile, reads it again. `next`: where it stopped,
 * unless all options were read. `isLost`: the list has changed since the previous call, so options may be missing.
 */
export function searchOptions(
  api: ManagementApi,
  context: ToolContext,
  { query, from, most, countsAll = false, counted: before, fresh }: SearchJob,
) {
  const { clock, signal, contents: store, progress } = context;
  const { targetingId, parent } = query;
  const end = clock.now() + timeLeft(context);
  let reported = before.topLevel + before.subOptions;
  return untilStable(async (mayChange) => {
    const { from: start, isLost } = await positionNow(api, { targetingId, parent, signal }, from);
    const hits: FoundOption[] = [];
    let counted = before;
    let next: WalkPosition | undefined;
    const walk = { targetingId, parent, signal, ...mayChange };
    const scan = scanOptions(api, { walk, from: start, wanted: query, contents: { store, fresh } });
    try {
      for await (const { from: step, value } of scan) {
        const { walked } = step;
        counted = {
          topLevel: before.topLevel + walked.topLevel,
          subOptions: before.subOptions + walked.subOptions,
          found: counted.found + (value === undefined ? 0 : 1),
        };
        next = step.next;
        const read = counted.topLevel + counted.subOptions;
        // If the list changes, it is read again from the start, but the reported progress must not go back.
        if (read >= reported + PROGRESS_INTERVAL) {
          reported = read;
          progress?.(read, undefined, `${thousands(read)} options read`);
        }
        if (value !== undefined && hits.length < most) hits.push({ ...value, counted });
        if (hits.length >= most && !countsAll) return { hits, counted, next, stopped: false, isLost };
        if (clock.now() >= end) return { hits, counted, next, stopped: true, isLost };
      }
    } catch (thrown) {
      if (thrown instanceof DeadlineExceeded && next !== undefined)
        return { hits, counted, next, stopped: true, isLost };
      throw thrown;
    }
    return { hits, counted, next: undefined, stopped: false, isLost };
  });
}

export const walkPosition = z.strictObject({
  top: z.int().min(0),
  inside: z.int().min(0).optional(),
  last: z.string().optional(),
});

/** How many top-level options, sub-options and matches there are. */
export const walkCounts = z.tuple([z.int(), z.int(), z.int()]);

const key = z.tuple([z.union([z.string(), z.number()]), z.string(), z.string()]);
/**
 * The content of the cursor of a sorted list. `after`: the sort key of the last returned option. `scan`: where to go on
 * reading, if the previous call could not read all options.
 */
const place = z.strictObject({
  after: key.optional(),
  scan: walkPosition.extend({ id: z.string(), counted: walkCounts }).optional(),
});
type Place = z.output<typeof place>;
type Key = z.output<typeof key>;

const MAX_SORTED = 100;
const MAX_SCANS = 16;

/** The matches of unfinished searches, by the ID in their cursors. A cursor has no room for them. */
const begun = new Map<string, readonly FoundOption[]>();

function keep(id: string, hits: readonly FoundOption[]): void {
  begun.set(id, hits);
  for (const oldest of [...begun.keys()].slice(0, Math.max(0, begun.size - MAX_SCANS))) begun.delete(oldest);
}

/**
 * Returns the next options of a list that is sorted by name, or by the number of Context IDs (largest first). All
 * options must be read before they are sorted. If one call cannot do that, it returns only a cursor with which the next
 * call goes on.
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
    from: scan ?? { top: 0 },
    most: Number.POSITIVE_INFINITY,
    counted: { topLevel: top, subOptions: sub, found: before },
    fresh,
  });
  // Options with an equal name or count are sorted by creation time, then by ID.
  const compare = ([one, ...rest]: Key, [other, ...others]: Key): number =>
    (sortBy === "name" ? byCodePoints(String(one), String(other)) : Number(other) - Number(one)) ||
    byCodePoints(rest[0], others[0]) ||
    byCodePoints(rest[1], others[1]);
  const isBehind = (hit: FoundOption): boolean => after === undefined || compare(keyOf(hit, sortBy), after) > 0;
  // An option that moved between two calls is read twice, so options are collected by their IDs.
  const all = new Map([...(kept ?? []), ...found.hits.filter(isBehind)].map((hit) => [hit.step.option._id, hit]));
  const rest = [...all.values()].sort((one, other) => compare(keyOf(one, sortBy), keyOf(other, sortBy)));
  const { topLevel, subOptions } = found.counted;
  const scanned = topLevel + subOptions;
  if (found.stopped && found.next !== undefined) {
    const id = randomBytes(6).toString("base64url");
    keep(keptAs(id), rest.slice(0, MAX_SORTED + 1));
    const counted: [number, number, number] = [topLevel, subOptions, found.counted.found];
    const next: Place = { ...(after !== undefined && { after }), scan: { id, ...found.next, counted } };
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
    complete: !found.isLost,
    isFiltered: true,
  };
}

function soFar(scanned: number, start: Place, kept: readonly FoundOption[] | undefined): string {
  const again =
    start.scan !== undefined && kept === undefined
      ? " The earlier matches are no longer stored, so the search started again."
      : "";
  return `Reading all options takes more than one call: ${thousands(scanned)} were read so far, and they can be sorted only when all are read. The cursor continues.${again}`;
}

function keyOf({ step: { option } }: FoundOption, sortBy: "contextCount" | "name"): Key {
  const { _id, name, contextCount = 0, createdAt = "" }: OptionRecord = option;
  return [sortBy === "name" ? name : contextCount, createdAt, _id];
}

/** Compares texts by code points. `<` compares UTF-16 units, which puts some characters in another order. */
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

/** Returns all options that match; without `contextIds`, every option. Throws a ToolError if one call is too short. */
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
    contextIds === undefined
      ? "Give the IDs of the options: list_options finds them in several calls."
      : "Make the same call again: it is faster, because Context IDs that were read are stored.",
  );
}

/** Returns items of update_contexts that remove Context IDs from every option of a targeting that holds them. */
export async function removalsFrom(targetingId: string, contextIds: readonly string[], context: ToolContext) {
  const hits = await everyOption(targetingId, { contextIds }, context);
  return hits.map(({ step, matched = [] }) => ({ _id: step.option._id, remove: [...matched] }));
}

/** Returns a call with the options that hold the Context IDs of its removeEverywhere by now. Other calls stay as is. */
export async function withCurrentHolders(call: WriteCall, context: ToolContext): Promise<WriteCall> {
  if (call.tool !== "update_contexts") return call;
  const { everywhere, targetingId } = call.input;
  if (everywhere === undefined || targetingId === undefined) return call;
  const items = await removalsFrom(targetingId, everywhere, context);
  return items.length === 0 ? call : { ...call, input: { ...call.input, items } };
}

export interface Part<Position> extends OptionsTotals {
  readonly hits: readonly (Hit & { readonly behind: Position })[];
  /** The position at which the list goes on. Undefined at the end. */
  readonly next: Position | undefined;
  readonly limit: number;
}

interface RowForm {
  readonly detail: "concise" | "detailed";
  readonly contexts?: ReadonlyMap<string, readonly string[]> | undefined;
  /** The name of the group, if the list contains only its sub-options. */
  readonly groupName?: string | undefined;
}

export function rowsOf(hits: readonly Hit[], { detail, contexts, groupName: only }: RowForm): readonly OptionRow[] {
  return hits.map(({ step: { option, groupName = only, countWithChildren }, matched }) => {
    const first = contexts?.get(option._id);
    return {
      ...optionRow(option, detail),
      ...(groupName !== undefined && { parentName: groupName }),
      ...(option.type === "collection" &&
        countWithChildren !== undefined && { contextCountWithChildren: countWithChildren }),
      ...(matched !== undefined && { matched }),
      ...(first !== undefined && { contexts: first }),
    };
  });
}

/** Returns an answer with as many options as fit. If some do not, adds a cursor and a note that says why. */
export function optionsAnswer<Position>(
  query: unknown,
  part: Part<Position>,
  all: readonly OptionRow[],
  { environment }: Pick<ToolContext, "environment">,
): ToolAnswer {
  const { hits, next, limit, isFiltered } = part;
  const { total, topLevel, subOptions, scanned, complete } = part;
  const counts = { total, topLevel, subOptions, scanned, complete };
  const answer = (rows: readonly OptionRow[], { cursor, note, brief }: Around): ToolAnswer =>
    renderAnswer({ environment, options: rows, ...counts, cursor, note }, [
      optionsText({ rows, ...counts, note, cursor, brief, isFiltered }),
    ]);
  const wanted = Math.min(limit, all.length);
  const position = hits.at(-1)?.behind ?? next;
  const fitting = (brief: BriefList | undefined): number => {
    const note = joinNotes([fullNote(wanted, wanted), part.note]);
    const frame = answer([], { cursor: position && writeCursor(query, position), note, brief });
    // The <untrusted> marks around the rows are not counted. The estimate for the rest is too high by about as much, so
    // the answer fits.
    return takeRows(all, listLines(brief), pageBudget({ around: sizeOf(frame) })).length;
  };
  // If the rows do not fit, the beginning that all IDs share is omitted.
  const whole = fitting(undefined);
  const brief = whole < all.length ? briefList(all.slice(0, MAX_IN_BRIEF)) : undefined;
  const rows = all.slice(0, brief === undefined ? whole : Math.min(fitting(brief), MAX_IN_BRIEF));
  const behind = rows.length < all.length ? hits[rows.length - 1]?.behind : next;
  const note = joinNotes([rows.length < all.length && fullNote(rows.length, wanted), part.note]);
  return answer(rows, { cursor: behind && writeCursor(query, behind), note, brief });
}

interface Around {
  readonly cursor: string | undefined;
  readonly note: string | undefined;
  readonly brief: BriefList | undefined;
}

const MAX_IN_BRIEF = 150;

function fullNote(shown: number, wanted: number): string {
  return `Only ${shown} of the ${wanted} requested options fit into this answer.`;
}

export interface OptionsQuery extends Wanted {
  readonly targetingId: string;
  readonly parent: string | undefined;
  readonly all: boolean | undefined;
  readonly sortBy: "contextCount" | "name" | undefined;
}

/** How options are listed. `fresh`: Context IDs are read from the service, even if this server has stored them. */
export interface ListForm extends PageAsked {
  readonly detail: "concise" | "detailed";
  readonly fresh: boolean | undefined;
}

export interface PageAsked {
  readonly limit: number;
  readonly cursor: string | undefined;
}

export interface RequestedOption extends FoundByName {
  readonly targetingId?: string | undefined;
}

/** Saves the options that match a query to a file. This is a run, which can go on after the call was answered. */
export async function savedList(
  { targetingId, parent, search, contextIds, empty }: OptionsQuery,
  { saveTo, delimiter }: SaveArguments,
  fresh: boolean | undefined,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { allowedDirs: folders } = context;
  const asked: ListAsked = { targetingId, parent, search, contextIds, empty, fresh, saveTo, delimiter, folders };
  if (asksDesired(saveTo) && isPart(asked)) {
    throw new ToolError(
      "a .yaml or .json file holds a whole targeting as a desired state, but only a part was requested",
      "Leave out parent, search, contextIds and empty, or name the file .xlsx, .csv or .ndjson.",
    );
  }
  if (asksDesired(saveTo) && delimiter === undefined) await findFreePlace(saveTo, folders);
  else await freePlaceFor(saveTo, folders, delimiter);
  return savedBy({ tool: "list_options", input: asked }, context);
}

export async function savedContexts(
  { _id: optionId, targetingId }: RequestedOption,
  { saveTo, delimiter }: SaveArguments,
  context: ToolContext,
): Promise<ToolAnswer> {
  const { allowedDirs: folders } = context;
  await freePlaceFor(saveTo, folders, delimiter);
  return savedBy({ tool: "get_option", input: { optionId, targetingId, saveTo, delimiter, folders } }, context);
}

async function savedBy(call: SaveCall, context: ToolContext): Promise<ToolAnswer> {
  const errors: unknown[] = [];
  const run = savesOf(context).start(call, context, (thrown) => errors.push(thrown));
  await followRun(run, context);
  if (errors.length > 0) throw errors[0];
  return reportedRun(run, context);
}
