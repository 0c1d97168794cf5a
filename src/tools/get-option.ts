import * as z from "zod";
import { shown } from "../render/fence.ts";
import { readCursor, rowsThatFit, writeCursor } from "../render/page.ts";
import { optionRow, optionText } from "../render/reading.ts";
import { LIMITS } from "../spec/limits.ts";
import { managementOf } from "./apis.ts";
import { type ToolDefinition, ToolError } from "./definition.ts";
import { ulidArgument } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    optionId: z.string().describe("ULID of the option, group or sub-option"),
    limit: z.int().min(1).max(LIMITS.getLimit.value).default(100).describe("Context IDs of one answer"),
    cursor: z.string().optional().describe("From the last answer"),
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
    }),
  async handler({ optionId, limit, cursor: given }, context) {
    const { environment, signal } = context;
    const query = { optionId: ulidArgument("optionId", optionId) };
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
