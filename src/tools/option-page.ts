import type * as z from "zod";
import { pageBudget, readCursor, renderAnswer, sizeOf, takeRows, writeCursor } from "../answers/budget.ts";
import {
  type BriefList,
  briefList,
  listLines,
  type OptionRow,
  type OptionsTotals,
  optionRow,
  optionsText,
} from "../answers/reading.ts";
import { findFreePlace } from "../files/folders.ts";
import { freePlaceFor } from "../files/save-file.ts";
import type { Hit, Wanted } from "../reads/option-lists.ts";
import { asksDesired, isPart } from "../saves/save-options.ts";
import type { ListAsked, SaveCall } from "../saves/save-state.ts";
import { savesOf } from "./apis.ts";
import type { FoundByName, SaveArguments } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, ToolError } from "./define-tool.ts";
import { reportedRun } from "./run-reports.ts";
import { followRun } from "./write/planned.ts";

export interface Part<Position> extends OptionsTotals {
  /** Each option with the position at which the list continues after it. */
  readonly hits: readonly (Hit & { readonly behind: Position })[];
  /** The position at which the list continues. Undefined at the end. */
  readonly next: Position | undefined;
  readonly limit: number;
}

interface RowForm {
  readonly detail: "concise" | "detailed";
  readonly contexts?: ReadonlyMap<string, readonly string[]> | undefined;
  /** The name of the group, if all options are its sub-options. */
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

/** Returns an answer with as many options as fit. If there are more, adds a cursor and the reason. */
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
    const note = part.note ?? fullNote(wanted, wanted);
    const frame = answer([], { cursor: position && writeCursor(query, position), note, brief });
    // The marks around the rows are not counted, because the estimate for the rest is too high by about as much.
    return takeRows(all, listLines(brief), pageBudget({ around: sizeOf(frame) })).length;
  };
  // If the rows do not fit with complete IDs, shortened IDs are used.
  const whole = fitting(undefined);
  const brief = whole < all.length ? briefList(all.slice(0, MAX_IN_BRIEF)) : undefined;
  const rows = all.slice(0, brief === undefined ? whole : Math.min(fitting(brief), MAX_IN_BRIEF));
  const behind = rows.length < all.length ? hits[rows.length - 1]?.behind : next;
  const note = rows.length < all.length ? fullNote(rows.length, wanted) : part.note;
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

/** How options are listed. With `fresh`, everything is read again. */
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

const REMEDIES = {
  list: "Take cursor from the last answer and leave the other arguments as they were, or leave it out to start again.",
  option: "Leave cursor out to start at the beginning.",
} as const;

/** Returns the position in a cursor, or the beginning. Throws a ToolError for the cursor of another query. */
export function placeOf<Schema extends z.ZodType>(
  of: keyof typeof REMEDIES,
  cursor: string | undefined,
  query: unknown,
  { schema, beginning }: { readonly schema: Schema; readonly beginning: z.output<Schema> },
): z.output<Schema> {
  const place = cursor ? readCursor(cursor, query, schema) : beginning;
  if (place !== undefined) return place;
  throw new ToolError(`cursor does not come from this ${of}`, REMEDIES[of]);
}

/** Saves the options that match a query. The work is a run that may continue after the answer. */
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
