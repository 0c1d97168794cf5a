import { hash } from "node:crypto";
import * as z from "zod";
import { joinNotes } from "../answers/budget.ts";
import { quoteUntrusted } from "../answers/fence.ts";
import { EMPTY_WORDS, many } from "../answers/message-words.ts";
import { isApiError, ListError } from "../api/errors.ts";
import type { ManagementApi } from "../api/management.ts";
import { undefinedIf } from "../platform/files.ts";
import { firstOf, thousands } from "../platform/text.ts";
import { type Hit, idEnd, positionNow, type WalkPosition } from "../reads/option-lists.ts";
import { isLastPage } from "../reads/pages.ts";
import { MANY_UNREAD, sideBySide } from "../reads/side-by-side.ts";
import { LIMITS } from "../spec/limits.ts";
import { contextIdProblem, trimContextId } from "../spec/names-and-contexts.ts";
import type { OptionPage } from "../spec/records.ts";
import { managementOf } from "./apis.ts";
import { neededTargeting, placeOf, saveArguments, targetingArguments, ulidArgument, withNote } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError } from "./define-tool.ts";
import {
  type Counted,
  type ListForm,
  type OptionsQuery,
  optionsAnswer,
  type Part,
  rowsOf,
  savedList,
  searchOptions,
  sortedPart,
  walkCounts,
  walkPosition,
} from "./option-search.ts";

const MAX_CONTEXT_IDS = 50;

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    parent: z.string().optional().describe("ULID of a group: its sub-options"),
    all: z.boolean().optional().describe("Include sub-options"),
    search: z.string().optional().describe("Part of a name, any case"),
    contextIds: z
      .array(z.string())
      .min(1)
      .max(MAX_CONTEXT_IDS)
      .optional()
      .describe("Only options that hold any of them"),
    contextId: z.string().optional().describe("Or one"),
    empty: z.boolean().optional().describe("Only options without Context IDs or sub-options"),
    sortBy: z.enum(["contextCount", "name"]).optional(),
    limit: z.int().min(1).max(LIMITS.listLimit.value).default(50),
    cursor: z.string().optional().describe("From the last answer, with the same arguments"),
    detail: z.enum(["concise", "detailed"]).default("concise"),
    fresh: z.boolean().optional().describe("Read again, use nothing stored"),
    ...saveArguments("File to create: .xlsx, .csv, .tsv, .ndjson, .yaml or .json"),
  });

const output = () =>
  z.looseObject({
    environment: z.string(),
    options: z.array(z.looseObject({})).optional(),
    total: z.number().optional(),
    topLevel: z.number().optional(),
    subOptions: z.number().optional(),
    complete: z.boolean().optional(),
    cursor: z.string().optional(),
    note: z.string().optional(),
    savedTo: z.string().optional(),
  });

export const listOptions = {
  name: "list_options",
  title: "List or find options",
  description:
    "Lists every top-level option of a targeting, or the sub-options of a group. Find options, also among sub-options, with search (part of a name), contextIds, empty (options without Context IDs) and sortBy (largest first). An answer holds about 50; saveTo exports all.",
  toolset: "targeting",
  effect: "reads",
  idempotent: true,
  input,
  output,
  async handler({ limit, detail, cursor, saveTo, delimiter, ...given }, context) {
    const { _id: targetingId, note } = await neededTargeting(given, context);
    const query: OptionsQuery = {
      targetingId,
      parent: given.parent ? ulidArgument("parent", given.parent) : undefined,
      all: given.all || undefined,
      search: given.search || undefined,
      contextIds: wantedContextIds(given),
      empty: given.empty || undefined,
      sortBy: given.sortBy,
    };
    const form = { limit, detail, cursor, fresh: given.fresh };
    const answer = saveTo
      ? await savedList(query, { saveTo, delimiter: delimiter || undefined }, form.fresh, context)
      : await listedOptions(query, form, context);
    return withNote(note, query.empty && !saveTo && !cursor ? withEmptyNote(answer) : answer);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

const EMPTY_NOTE = `Empty: ${EMPTY_WORDS}. delete_options with onlyEmpty also deletes groups with only empty sub-options.`;

function withEmptyNote({ structured, text, isError }: ToolAnswer): ToolAnswer {
  const note = typeof structured.note === "string" ? `${structured.note} ${EMPTY_NOTE}` : EMPTY_NOTE;
  return { structured: { ...structured, note }, text: `${text}\n${EMPTY_NOTE}`, isError };
}

function wantedContextIds({
  contextId,
  contextIds = [],
}: Pick<z.output<ReturnType<typeof input>>, "contextId" | "contextIds">): readonly string[] | undefined {
  const all = [...(contextId ? [contextId] : []), ...contextIds].map(trimContextId);
  for (const id of all) {
    if (contextIdProblem(id) === undefined) continue;
    const list = id.includes(",") ? " Give several Context IDs as an array: contextIds." : "";
    throw new ToolError(
      `${quoteUntrusted(id)} cannot be a Context ID`,
      `A Context ID has 1 to ${LIMITS.contextIdBytes.value} bytes in UTF-8.${list}`,
    );
  }
  return all.length === 0 ? undefined : [...new Set(all)];
}

const MAX_ROWS = 100;
const FIRST_CONTEXT_IDS = 5;

const position = walkPosition.extend({
  /** Set if options before this position may have been missed. */
  isLost: z.literal(true).optional(),
  page: z.string().optional(),
  /** How many top-level options, sub-options and matches come before this position. */
  before: walkCounts.optional(),
  /** How many top-level options, sub-options and matches the whole list has. Only set after it was read completely. */
  whole: walkCounts.optional(),
});
type Position = z.output<typeof position>;

async function listedOptions(query: OptionsQuery, form: ListForm, context: ToolContext): Promise<ToolAnswer> {
  const api = managementOf(context);
  const { parent, sortBy } = query;
  const show = async <P>(reading: Promise<Part<P>>): Promise<ToolAnswer> => {
    // A list can be returned without the name of its group, so a failed read of the group is ignored.
    const group =
      parent === undefined
        ? undefined
        : undefinedIf(isApiError, api.getOption(parent, { limit: 1 }, { signal: context.signal }));
    const [part, found] = await Promise.all([reading, group]);
    const contexts = form.detail === "detailed" ? await firstContextIds(part, api, context) : undefined;
    return optionsAnswer(
      query,
      part,
      rowsOf(part.hits, { detail: form.detail, contexts, groupName: found?.option.name }),
      context,
    );
  };
  if (sortBy !== undefined) return show(sortedPart({ ...query, sortBy }, form, api, context));
  const from = placeOf("list", form.cursor, query, { schema: position, beginning: { top: 0 } });
  const isWalk = query.all ?? query.empty ?? query.search ?? query.contextIds;
  return show((isWalk === undefined ? pageOf : scanned)(query, from, { form, api, context }));
}

interface Reading {
  readonly form: ListForm;
  readonly api: ManagementApi;
  readonly context: ToolContext;
}

async function pageOf(
  { targetingId, parent }: OptionsQuery,
  { page: pageBefore, isLost: wasLost, ...from }: Position,
  { form: { limit }, api, context: { signal } }: Reading,
): Promise<Part<Position>> {
  const now = await positionNow(api, { targetingId, parent, signal }, from);
  const isLost = wasLost ?? (now.isLost || undefined);
  const { top } = now.from;
  const query = { limit, offset: top, ...(parent !== undefined && { parent }) };
  const page = await api.listOptions(targetingId, query, { signal });
  const { items, total } = page;
  const end = top + items.length;
  const digest = digestOf(page);
  if (items.length > 0 && digest === pageBefore) throw new ListError("listOptions", "repeats");
  const behind = (place: number): Position => ({
    top: place,
    last: items
      .slice(0, place - top)
      .map(idEnd)
      .at(-1),
    isLost,
    page: digest,
  });
  const next = isLastPage(page, end, limit) ? undefined : behind(end);
  const isShort = next !== undefined && items.length < limit;
  const subOptions =
    items.length === total ? items.reduce((sum, { childCount = 0 }) => sum + childCount, 0) : undefined;
  return {
    hits: items.map((option, index) => ({
      step: { option, next: { top: end }, walked: { topLevel: 0, subOptions: 0 } },
      behind: behind(top + index + 1),
    })),
    next,
    limit,
    total,
    ...(parent === undefined ? { topLevel: total, subOptions } : { subOptions: total }),
    complete: next === undefined && !isLost,
    note: joinNotes([
      isLost && LOST,
      isShort && `The service gave ${items.length} options at a time; the cursor continues.`,
    ]),
    isFiltered: false,
  };
}

const LOST =
  "The list changed since the last call, so some of its options may be missing in these answers. To read all, make the call without cursor.";

const DIGEST_DIGITS = 6;

/** Returns a digest of a page. It covers the total as well, because the list can grow while the page stays the same. */
function digestOf({ items, total }: OptionPage): string {
  const content = JSON.stringify([total, items.map(({ _id }) => _id)]);
  return hash("sha256", content, "hex").slice(0, DIGEST_DIGITS).toUpperCase();
}

async function scanned(query: OptionsQuery, from: Position, reading: Reading): Promise<Part<Position>> {
  const { form, api, context } = reading;
  const [topLevel = 0, subOptions = 0, found = 0] = from.before ?? [];
  const { hits, counted, next, stopped, ...walk } = await searchOptions(api, context, {
    query,
    from,
    most: form.limit,
    countsAll: query.empty === true && query.contextIds === undefined && from.whole === undefined,
    counted: { topLevel, subOptions, found },
    fresh: form.fresh,
  });
  const whole = next === undefined && !stopped ? tupleOf(counted) : from.whole;
  const isFull = hits.length >= form.limit;
  const isLost = from.isLost ?? (walk.isLost || undefined);
  const at = (place: WalkPosition, before: Counted): Position => ({
    ...place,
    isLost,
    before: tupleOf(before),
    ...(whole !== undefined && { whole }),
  });
  const all = hits.map((hit) => ({ ...hit, behind: at(hit.step.next, hit.counted) }));
  const last = isFull && counted.found > found + hits.length ? all.at(-1)?.behind : undefined;
  const complete = whole !== undefined && !isLost;
  return {
    hits: all,
    next: last ?? (next && at(next, counted)),
    limit: form.limit,
    ...(whole !== undefined && { total: whole[2], topLevel: whole[0], subOptions: whole[1] }),
    scanned: whole === undefined ? counted.topLevel + counted.subOptions : whole[0] + whole[1],
    complete,
    note: noteOf(query, {
      stopped,
      isLost,
      isWhole: complete && from.before === undefined,
      hits,
      read: counted.topLevel + counted.subOptions - topLevel - subOptions,
    }),
    isFiltered: true,
  };
}

function tupleOf({ topLevel, subOptions, found }: Counted): [number, number, number] {
  return [topLevel, subOptions, found];
}

interface SearchEnd extends Readonly<Record<"stopped" | "isWhole", boolean>> {
  readonly isLost: true | undefined;
  readonly hits: readonly Hit[];
  /** How many options this call has read. */
  readonly read: number;
}

/** If a targeting has this many options, searching them by Context ID takes seconds. */
const MANY_OPTIONS = 1000;

function noteOf(query: OptionsQuery, end: SearchEnd): string | undefined {
  const { contextIds, search, parent } = query;
  const { stopped, read } = end;
  const isSlow = contextIds !== undefined && search === undefined && (stopped || read >= MANY_OPTIONS);
  const faster = parent === undefined ? "search (part of a name) or parent (one group)" : "search (part of a name)";
  return joinNotes([
    end.isLost && LOST,
    isSlow && !stopped && `The Context IDs of ${thousands(read)} options were checked.`,
    stopped &&
      `The call reached its time limit after ${many(read, "option")}; the options after this point were not read yet. The cursor continues.`,
    isSlow && `Faster: ${faster}.`,
    !stopped && nowhereNote(query, end),
  ]);
}

/** Returns a note about the searched Context IDs that no option has. Undefined if not all options were read. */
function nowhereNote(query: OptionsQuery, { isWhole, hits }: SearchEnd): string | undefined {
  const { contextIds = [], search, empty, parent } = query;
  const held = new Set(hits.flatMap(({ matched = [] }) => matched));
  const nowhere = contextIds.filter((id) => !held.has(id));
  if (!isWhole || nowhere.length === 0) return undefined;
  const some = firstOf(nowhere, 20, quoteUntrusted);
  const list = nowhere.some((id) => id.includes(",")) ? " Give several Context IDs as an array: contextIds." : "";
  const filters = [search !== undefined && "search", empty === true && "empty", parent !== undefined && "parent"];
  const given = filters.filter((filter) => filter !== false);
  const among = given.length === 0 ? "" : ` that matches ${given.join(" and ")}`;
  const others =
    given.length === 0 ? "" : ` Other options were not checked: to check all, leave out ${given.join(" and ")}.`;
  return `No option${among} holds ${some}.${others}${list}`;
}

/** Returns the first Context IDs of each option, by option ID. Options that cannot be read are omitted. */
async function firstContextIds<P>(
  { hits }: Part<P>,
  api: ManagementApi,
  { signal }: ToolContext,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const first = new Map<string, readonly string[]>();
  const read = sideBySide({
    source: () => hits.slice(0, MAX_ROWS),
    map: async ({ step: { option } }, within, withoutRead) => {
      if (option.contextCount === 0) {
        withoutRead();
        return [];
      }
      const query = { limit: FIRST_CONTEXT_IDS };
      return (await undefinedIf(isApiError, api.getOption(option._id, query, { signal: within })))?.contexts;
    },
    unreadAhead: MANY_UNREAD,
    signal,
    pace: api.pace,
  });
  for await (const { from, value } of read) if (value !== undefined) first.set(from.step.option._id, value);
  return first;
}
