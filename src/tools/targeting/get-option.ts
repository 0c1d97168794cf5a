import * as z from "zod";
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
import { ulidArgument } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    optionId: z.string().describe("ULID of the option, group or sub-option"),
    limit: z.int().min(1).max(LIMITS.getLimit.value).default(100).describe("Context IDs of one answer"),
    cursor: z.string().optional().describe("From the last answer"),
    saveTo: z.string().optional().describe("New .csv or .ndjson file: all Context IDs, readable by update_contexts"),
  });

const position = z.int().min(0).max(LIMITS.getOffset.value);

/** Reads one option with a page of its Context IDs. */
export const getOption = {
  name: "get_option",
  title: "Get an option",
  description: "Reads one option, option group or sub-option with its Context IDs, page by page.",
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
      cursor: z.string().optional(),
      savedTo: z.string().optional(),
      counts: z.looseObject({}).optional(),
    }),
  async handler({ optionId, limit, cursor: given, saveTo }, context) {
    const { environment, signal } = context;
    const query = { optionId: ulidArgument("optionId", optionId) };
    if (saveTo) return saveContexts(optionId, saveTo, context);
    const offset = given ? readCursor(given, query, position) : 0;
    if (offset === undefined) {
      throw new ToolError("cursor is not one that this option gave", "Leave it out to begin anew.");
    }
    const { option, contexts: page } = await managementOf(context).getOption(optionId, { limit, offset }, { signal });
    const row = optionRow(option, "detailed");
    const contexts = page.slice(0, rowsThatFit(page, shown, [row, row]));
    const end = offset + contexts.length;
    const total = option.contextCount ?? offset + page.length;
    const hasMore = contexts.length > 0 && (end < total || contexts.length < page.length);
    const cursor = hasMore && end <= LIMITS.getOffset.value ? writeCursor(query, end) : undefined;
    return {
      structured: { environment, option: row, contexts, total, ...(cursor !== undefined && { cursor }) },
      text: optionText({ row, contexts, total, cursor }),
      isError: false,
    };
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

/** Saves all Context IDs of an option to a file that `update_contexts` reads. */
async function saveContexts(optionId: string, saveTo: string, context: ToolContext): Promise<ToolAnswer> {
  const { environment, signal, allowedDirs } = context;
  const place = await freePlaceFor(saveTo, allowedDirs);
  const { option, contexts } = await readOptionContents(managementOf(context), optionId, signal);
  await saveFile(place, contextLines(option, contexts, place.format));
  const saved = { savedTo: place.path, counts: { options: 1, contextIds: contexts.length } };
  return {
    structured: { environment, option: optionRow(option, "concise"), total: contexts.length, ...saved },
    text: savedText(saved),
    isError: false,
  };
}
