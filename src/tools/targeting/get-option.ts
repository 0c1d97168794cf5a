import * as z from "zod";
import type { ManagementApi } from "../../api/management.ts";
import { freePlaceFor, saveFile } from "../../files/save-file.ts";
import { readOptionContents } from "../../reading/option-contents.ts";
import { contextLines } from "../../reading/saved-rows.ts";
import { shown } from "../../render/fence.ts";
import { readCursor, rowsThatFit, writeCursor } from "../../render/page.ts";
import { optionRow, optionText, savedText } from "../../render/reading.ts";
import { LIMITS } from "../../spec/limits.ts";
import { managementOf } from "../apis.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, type ToolDefinition, ToolError } from "../definition.ts";
import { type AskedOption, type PageAsked, strangeCursor } from "./option-asked.ts";
import { findTargeting, noting, type TargetingReference, targetingArguments, ulidArgument } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    optionId: z.string().optional().describe("ULID"),
    name: z.string().optional().describe("Or its name, with targetingId"),
    ...targetingArguments(),
    compareWith: z.string().optional().describe("ID or name of another: what both hold, and only one"),
    limit: z.int().min(1).max(LIMITS.getLimit.value).default(100).describe("Context IDs of one answer"),
    cursor: z.string().optional().describe("From the last answer"),
    saveTo: z.string().optional().describe("New .csv or .ndjson file for all, as update_contexts reads"),
  });

const position = z.int().min(0).max(LIMITS.getOffset.value);

/** Reads one option with a page of its Context IDs, or compares it with another. */
export const getOption = {
  name: "get_option",
  title: "Get or compare options",
  description:
    "Reads one option, group or sub-option with its Context IDs, page by page, or compares it with another in one call. " +
    "Names match exactly, else whatever the case.",
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
      counts: z.looseObject({}).optional(),
    }),
  async handler({ limit, cursor, saveTo, compareWith, ...given }, context) {
    const api = managementOf(context);
    const found = await optionAsked(given, api, context);
    if (saveTo) return noting(found.note, await saveContexts(found._id, saveTo, api, context));
    if (!compareWith) return noting(found.note, await pageOf(found._id, { limit, cursor }, api, context));
    const { compareOptions, otherOption } = await import("./compare-options.ts");
    const other = await otherOption(compareWith, found, api, context);
    const compared = await compareOptions(found._id, other._id, { limit, cursor }, api, context);
    return noting(found.note, noting(other.note, compared));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

async function optionAsked(
  {
    optionId,
    name,
    ...reference
  }: TargetingReference & { readonly optionId?: string | undefined; readonly name?: string | undefined },
  api: ManagementApi,
  context: ToolContext,
): Promise<AskedOption> {
  if (optionId && name) throw new ToolError("optionId and name were both given", "Give one of the two.");
  const targeting = await findTargeting(reference, context);
  const targetingId = targeting?._id;
  if (optionId) return { _id: ulidArgument("optionId", optionId), targetingId, note: targeting?.note };
  if (!name) throw new ToolError("optionId is missing", "Give optionId, or name with targetingId or targetingName.");
  if (targetingId === undefined) {
    throw new ToolError("name was given without its targeting", "Give targetingId (or targetingName) too.");
  }
  const { optionsNamed } = await import("./option-name.ts");
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
  const offset = given ? readCursor(given, query, position) : 0;
  if (offset === undefined) throw strangeCursor();
  const { option, contexts: page } = await api.getOption(optionId, { limit, offset }, { signal });
  const row = optionRow(option, "detailed");
  const contexts = page.slice(0, rowsThatFit(page, shown, [row, row]));
  const end = offset + contexts.length;
  const total = option.contextCount ?? offset + page.length;
  const hasMore = contexts.length > 0 && (end < total || contexts.length < page.length);
  const cursor = hasMore && end <= LIMITS.getOffset.value ? writeCursor(query, end) : undefined;
  const isShort = contexts.length < page.length;
  const note = isShort
    ? `This page ends after ${contexts.length} of ${limit}, since an answer holds no more.`
    : undefined;
  return {
    structured: {
      environment,
      option: row,
      contexts,
      total,
      ...(note !== undefined && { note }),
      ...(cursor !== undefined && { cursor }),
    },
    text: optionText({ row, contexts, total, note, cursor }),
    isError: false,
  };
}

/** Saves all Context IDs of an option to a file that `update_contexts` reads. */
async function saveContexts(
  optionId: string,
  saveTo: string,
  api: ManagementApi,
  { environment, signal, allowedDirs }: ToolContext,
): Promise<ToolAnswer> {
  const place = await freePlaceFor(saveTo, allowedDirs);
  const { option, contexts } = await readOptionContents(api, optionId, signal);
  await saveFile(place, contextLines(option, contexts, place.format));
  const saved = { savedTo: place.path, counts: { options: 1, contextIds: contexts.length } };
  return {
    structured: { environment, option: optionRow(option, "concise"), total: contexts.length, ...saved },
    text: savedText(saved),
    isError: false,
  };
}
