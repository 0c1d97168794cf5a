import { hash } from "node:crypto";
import * as z from "zod";
import { joinNotes, pageBudget, renderAnswer, takeRows, writeCursor } from "../answers/budget.ts";
import { quoteUntrusted } from "../answers/fence.ts";
import { many } from "../answers/message-words.ts";
import { comparedText, optionRow, optionText } from "../answers/reading.ts";
import type { ManagementApi } from "../api/management.ts";
import { thousands } from "../platform/text.ts";
import { readOptionContents } from "../reads/option-contents.ts";
import { LIMITS } from "../spec/limits.ts";
import { isUlid } from "../spec/names-and-contexts.ts";
import type { OptionRecord } from "../spec/records.ts";
import { managementOf } from "./apis.ts";
import {
  findTargeting,
  optionsNamed,
  placeOf,
  saveArguments,
  targetingArguments,
  ulidArgument,
  withNote,
} from "./arguments.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError } from "./define-tool.ts";
import { type PageAsked, type RequestedOption, savedContexts } from "./option-search.ts";

const input = () =>
  z.strictObject({
    optionId: z.string().optional().describe("ULID of the option"),
    name: z.string().optional().describe("Or its name, with targetingId"),
    ...targetingArguments(),
    compareWith: z.string().optional().describe("ID or name of another option"),
    detail: z.enum(["concise", "detailed"]).optional().describe("detailed: also list Context IDs that both hold"),
    limit: z.int().min(1).max(LIMITS.getLimit.value).default(100).describe("Context IDs per answer"),
    cursor: z.string().optional().describe("From the last answer"),
    ...saveArguments("File to create: .xlsx, .csv, .tsv or .ndjson"),
  });

type GetOption = z.output<ReturnType<typeof input>>;

export const getOption = {
  name: "get_option",
  title: "Get or compare options",
  description:
    "Shows one option, group or sub-option with its Context IDs, page by page. Or compares two: which Context IDs only one holds.",
  toolset: "targeting",
  effect: "reads",
  idempotent: true,
  input,
  output: () =>
    z.looseObject({
      environment: z.string(),
      option: z.looseObject({}).optional(),
      contexts: z.array(z.string()).optional(),
      total: z.number().optional(),
      shared: z.looseObject({}).optional(),
      onlyHere: z.looseObject({}).optional(),
      onlyThere: z.looseObject({}).optional(),
      cursor: z.string().optional(),
      savedTo: z.string().optional(),
    }),
  handler: readOption,
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

const position = z.strictObject({ at: z.int().min(0).max(LIMITS.getOffset.value), seen: z.string().optional() });

/** Returns a page of an option's Context IDs, saves all of them, or compares them with those of another option. */
export async function readOption(
  { limit, cursor, saveTo, delimiter, compareWith, detail, ...given }: GetOption,
  context: ToolContext,
): Promise<ToolAnswer> {
  if (saveTo && compareWith)
    throw new ToolError(
      "saveTo and compareWith were both given, but saveTo saves the Context IDs of only one option",
      "To compare, leave saveTo out: the pages of the answer have the whole difference. To save, leave compareWith out.",
    );
  const api = managementOf(context);
  const found = await optionAsked(given, api, context);
  if (saveTo)
    return withNote(found.note, await savedContexts(found, { saveTo, delimiter: delimiter || undefined }, context));
  if (!compareWith) return withNote(found.note, await pageOf(found._id, { limit, cursor }, api, context));
  const other = await otherOption(compareWith, found, api, context);
  const compared = await compareOptions(
    found._id,
    other._id,
    { limit, cursor, withShared: detail === "detailed" },
    api,
    context,
  );
  return withNote(found.note, withNote(other.note, compared));
}

async function optionAsked(
  { optionId, name, ...reference }: Pick<GetOption, "optionId" | "name" | "targetingId" | "targetingName">,
  api: ManagementApi,
  context: ToolContext,
): Promise<RequestedOption> {
  if (optionId && name) throw new ToolError("optionId and name were both given", "Give only one of them.");
  const targeting = await findTargeting(reference, context);
  const targetingId = targeting?._id;
  if (optionId) return { _id: ulidArgument("optionId", optionId), targetingId, note: targeting?.note };
  if (!name) throw new ToolError("optionId is missing", "Give optionId, or name with targetingId or targetingName.");
  if (targetingId === undefined) {
    throw new ToolError("name was given without its targeting", "Give targetingId (or targetingName) too.");
  }
  const found = await optionsNamed(targetingId, api, context.signal)(name);
  const notes = [targeting?.note, found.note].filter((note) => note !== undefined);
  return { _id: found._id, targetingId, ...(notes.length > 0 && { note: notes.join(" ") }) };
}

async function pageOf(
  optionId: string,
  { limit, cursor: given }: PageAsked,
  api: ManagementApi,
  { environment, signal }: ToolContext,
): Promise<ToolAnswer> {
  const query = { optionId };
  const from = placeOf("option", given, query, { schema: position, beginning: { at: 0 } });
  const { at: offset } = from;
  const { option, contexts: page } = await api.getOption(optionId, { limit, offset }, { signal });
  const row = optionRow(option, "detailed");
  const contexts = takeRows(page, quoteUntrusted, pageBudget({ beside: [row, row] }));
  const end = offset + contexts.length;
  const total = option.contextCount ?? offset + page.length;
  const isShort = contexts.length < page.length;
  const hasMore = contexts.length > 0 && (end < total || isShort);
  const seen = markOf([option.contextCount, option.updatedAt]);
  const next = { at: end, seen: from.seen ?? seen };
  const cursor = hasMore && end <= LIMITS.getOffset.value ? writeCursor(query, next) : undefined;
  const note = joinNotes([
    next.seen !== seen && CHANGED,
    isShort && `This page ends after ${contexts.length} of ${limit} Context IDs, because an answer cannot hold more.`,
  ]);
  return renderAnswer({ environment, option: row, contexts, total, note, cursor }, [
    optionText({ row, contexts, total, note, cursor }),
  ]);
}

const CHANGED =
  "The Context IDs may have changed since the first page, so some may be missing in these pages. To read all, make the call without cursor.";

const MARK_LENGTH = 6;

/** Returns a short digest of what was read. It is part of the cursor, so that a change between two pages is noticed. */
function markOf(read: unknown): string {
  return hash("sha256", JSON.stringify(read), "base64url").slice(0, MARK_LENGTH);
}

/** Finds the option to compare with: by ID, or by name in the targeting of the first option. */
async function otherOption(
  given: string,
  { _id, targetingId }: RequestedOption,
  api: ManagementApi,
  { signal }: ToolContext,
): Promise<RequestedOption> {
  if (isUlid(given)) return { _id: given };
  const own = targetingId ?? (await api.getOption(_id, { limit: 1 }, { signal })).option.targeting;
  if (own !== undefined) return optionsNamed(own, api, signal)(given);
  throw new ToolError(
    "compareWith is a name, and its targeting is not known",
    "Give targetingId too, or set compareWith to the ID of the option.",
  );
}

const KINDS = ["onlyHere", "onlyThere", "shared"] as const;
type Kind = (typeof KINDS)[number];
const place = z.strictObject({ shown: z.record(z.enum(KINDS), z.int().min(0)), seen: z.string().optional() });

/**
 * Compares the Context IDs of two options. Returns counts and a page of Context IDs. Context IDs that both options have
 * are only counted, unless `withShared` is set.
 */
async function compareOptions(
  optionId: string,
  otherId: string,
  { limit, cursor: given, withShared = false }: PageAsked & { readonly withShared?: boolean | undefined },
  api: ManagementApi,
  { environment, signal }: ToolContext,
): Promise<ToolAnswer> {
  const query = { optionId, otherId, withShared };
  const start = placeOf("option", given, query, { schema: place, beginning: { shown: ofEach(() => 0) } });
  const from = start.shown;
  const [here, there] = await Promise.all([
    readOptionContents(api, optionId, signal),
    readOptionContents(api, otherId, signal),
  ]);
  const [inHere, inThere] = [new Set(here.contexts), new Set(there.contexts)];
  const all = {
    onlyHere: here.contexts.filter((id) => !inThere.has(id)),
    onlyThere: there.contexts.filter((id) => !inHere.has(id)),
    shared: here.contexts.filter((id) => inThere.has(id)),
  };
  const now = markOf([here.contexts, there.contexts]);
  const seen = start.seen ?? now;
  const listed = withShared ? KINDS : KINDS.filter((kind) => kind !== "shared");
  const [row, other] = [optionRow(here.option, "concise"), optionRow(there.option, "concise")];
  // The Context IDs of the different kinds alternate, so that each page shows some of every kind.
  const rest = inTurn(listed.map((kind) => all[kind].slice(from[kind]).map((id) => ({ kind, id })))).slice(0, limit);
  const budget = pageBudget({ beside: [row, other, row, other] });
  const page = takeRows(
    rest,
    ({ id }) => quoteUntrusted(id),
    budget,
    ({ id }) => id,
  );
  const { shared, onlyHere, onlyThere } = ofEach((kind) => {
    const contexts = page.flatMap((each) => (each.kind === kind ? [each.id] : []));
    const isLast = from[kind] + contexts.length === all[kind].length;
    return { total: all[kind].length, contexts, complete: isLast && seen === now };
  });
  const lists = { onlyHere, onlyThere, shared: withShared ? shared : { total: shared.total } };
  const behind = ofEach((kind) => from[kind] + { onlyHere, onlyThere, shared }[kind].contexts.length);
  const hasMore = listed.some((kind) => behind[kind] < all[kind].length);
  const cursor = hasMore ? writeCursor(query, { shown: behind, seen }) : undefined;
  const note = joinNotes([
    seen !== now && CHANGED,
    subOptionsNote(here.option, there.option),
    hasMore &&
      page.length < rest.length &&
      `This page ends after ${page.length} of ${limit} Context IDs, because an answer cannot hold more.`,
  ]);
  return renderAnswer({ environment, option: row, other, ...lists, note, cursor }, [
    comparedText({ row, other, ...lists, note, cursor }),
  ]);
}

function subOptionsNote(...groups: readonly [OptionRecord, OptionRecord]): string | undefined {
  const [first, second] = groups.map(({ childCount = 0 }) => childCount);
  if (!groups.some(({ type, childCount = 0 }) => type === "collection" || childCount > 0)) return undefined;
  return (
    "Only the options' own Context IDs were compared, not those of sub-options: " +
    `the first has ${many(first ?? 0, "sub-option")}, the second ${thousands(second ?? 0)}.`
  );
}

function ofEach<Value>(value: (kind: Kind) => Value): Readonly<Record<Kind, Value>> {
  return { onlyHere: value("onlyHere"), onlyThere: value("onlyThere"), shared: value("shared") };
}

function inTurn<Entry>(lists: readonly (readonly Entry[])[]): readonly Entry[] {
  const longest = Math.max(...lists.map(({ length }) => length));
  return Array.from({ length: longest }, (_, at) => lists.flatMap((list) => list.slice(at, at + 1))).flat();
}
