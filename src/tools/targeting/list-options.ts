import * as z from "zod";
import { ListError } from "../../api/errors.ts";
import { isLastPage } from "../../reading/pages.ts";
import { readCursor, rowsThatFit, writeCursor } from "../../render/page.ts";
import { optionLine, optionRow, optionsText } from "../../render/reading.ts";
import { trimContextId } from "../../spec/context-ids.ts";
import { LIMITS } from "../../spec/limits.ts";
import type { OptionRecord } from "../../spec/records.ts";
import { managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, type ToolDefinition, ToolError } from "../definition.ts";
import { searchOptions } from "./option-search.ts";
import { saveOptions } from "./save-options.ts";
import { needTargetingId, targetingArguments, ulidArgument } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    parent: z.string().optional().describe("ULID of an option group: its sub-options instead of top-level options"),
    search: z.string().optional().describe("Part of a name; finds sub-options too"),
    contextId: z.string().optional().describe("Finds the options that hold this Context ID; slow, goes on by cursor"),
    limit: z.int().min(1).max(LIMITS.listLimit.value).default(50),
    cursor: z.string().optional().describe("From the last answer; the other arguments stay the same"),
    detail: z.enum(["concise", "detailed"]).default("concise"),
    saveTo: z
      .string()
      .optional()
      .describe("New .csv or .ndjson file: all of it with Context IDs, readable by bulk_add_options"),
  });

/** Lists or finds the options of a targeting. */
export const listOptions = {
  name: "list_options",
  title: "List or find options",
  description:
    "Lists the top-level options of a targeting, or with parent the sub-options of a group. With search or contextId: " +
    "finds options by part of their name, or by a Context ID they hold, sub-options included.",
  toolset: "targeting",
  effect: "reads",
  idempotent: true,
  input,
  output: () =>
    z.looseObject({
      environment: z.string(),
      options: z.array(z.looseObject({})).optional(),
      total: z.number().optional(),
      scanned: z.number().optional(),
      cursor: z.string().optional(),
      note: z.string().optional(),
      savedTo: z.string().optional(),
      counts: z.looseObject({}).optional(),
    }),
  async handler({ limit, detail, cursor, saveTo, ...given }, context) {
    const query = {
      targetingId: await needTargetingId(given, context),
      parent: given.parent ? ulidArgument("parent", given.parent) : undefined,
      search: given.search || undefined,
      contextId: given.contextId ? trimContextId(given.contextId) : undefined,
    };
    if (saveTo) return saveOptions(query, saveTo, context);
    const from = startOf(cursor, query);
    const isSearch = query.search !== undefined || query.contextId !== undefined;
    const part = isSearch ? await find(query, from, limit, context) : await list(query, from, limit, context);
    return answer(query, part, detail, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

interface Query {
  readonly targetingId: string;
  readonly parent: string | undefined;
  readonly search: string | undefined;
  readonly contextId: string | undefined;
}

const position = z.strictObject({
  top: z.int().min(0),
  inside: z.int().min(0).optional(),
  /** What the page before began with, so that one that repeats is noticed. */
  first: z.string().optional(),
});
type Position = z.output<typeof position>;

/** Options in order, each with the position behind it; `next` is where more would be. */
interface Part {
  readonly steps: readonly { readonly option: OptionRecord; readonly next: Position }[];
  readonly next: Position | undefined;
  readonly total?: number | undefined;
  readonly scanned?: number;
  readonly note?: string;
}

function startOf(cursor: string | undefined, query: Query): Position {
  if (!cursor) return { top: 0 };
  const start = readCursor(cursor, query, position);
  if (start !== undefined) return start;
  throw new ToolError(
    "cursor is not one that this list gave",
    "Take cursor from the last answer and leave the other arguments as they were, or leave it out to begin anew.",
  );
}

async function list(query: Query, { top, first }: Position, limit: number, context: ToolContext): Promise<Part> {
  const { targetingId, parent } = query;
  const page = await managementOf(context).listOptions(
    targetingId,
    { limit, offset: top, ...(parent !== undefined && { parent }) },
    { signal: context.signal },
  );
  const end = top + page.items.length;
  const [begin] = page.items;
  if (begin !== undefined && begin._id === first) throw new ListError("listOptions", "repeats");
  const behind = (place: number): Position => ({ top: place, ...(begin !== undefined && { first: begin._id }) });
  return {
    steps: page.items.map((option, index) => ({ option, next: behind(top + index + 1) })),
    next: isLastPage(page, end, limit) ? undefined : behind(end),
    total: page.total,
  };
}

async function find(query: Query, from: Position, most: number, context: ToolContext): Promise<Part> {
  const { targetingId, parent, search, contextId } = query;
  const walk = { targetingId, parent, signal: context.signal };
  const found = await searchOptions(managementOf(context), context, {
    walk,
    from,
    wanted: { search, contextId },
    most,
  });
  const note = "One wait has passed; the options behind this point were not looked at yet. The cursor goes on.";
  return { ...found, ...(found.stopped && { note }) };
}

/** As many options as an answer can hold, and a cursor where there are more. */
function answer(query: Query, part: Part, detail: "concise" | "detailed", { environment }: ToolContext): ToolAnswer {
  const { total, scanned, note } = part;
  const all = part.steps.map(({ option }) => optionRow(option, detail));
  const rows = all.slice(0, rowsThatFit(all, optionLine));
  const next = rows.length < all.length ? part.steps[rows.length - 1]?.next : part.next;
  const cursor = next && writeCursor(query, next);
  return {
    structured: {
      environment,
      options: rows,
      ...(total !== undefined && { total }),
      ...(scanned !== undefined && { scanned }),
      ...(cursor !== undefined && { cursor }),
      ...(note !== undefined && { note }),
    },
    text: optionsText({ rows, total, scanned, note, cursor }),
    isError: false,
  };
}
