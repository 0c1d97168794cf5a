import * as z from "zod";
import { quoteUntrusted } from "../answers/fence.ts";
import { contextIdProblem, trimContextId } from "../spec/context-ids.ts";
import { LIMITS } from "../spec/limits.ts";
import type { ToolContext } from "./context.ts";
import { type ToolAnswer, type ToolDefinition, ToolError } from "./define-tool.ts";
import { neededTargeting, targetingArguments, ulidArgument, withNote } from "./names.ts";
import type { ListForm, OptionsQuery } from "./option-page.ts";
import { saveArguments } from "./shared-arguments.ts";

const MOST_CONTEXT_IDS = 50;

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    parent: z.string().optional().describe("ULID of a group"),
    all: z.boolean().optional().describe("Sub-options too"),
    search: z.string().optional().describe("Part of a name, any case"),
    contextIds: z.array(z.string()).min(1).max(MOST_CONTEXT_IDS).optional().describe("Options that hold any of them"),
    contextId: z.string().optional(),
    empty: z.boolean().optional().describe("Of groups: no sub-options either"),
    sortBy: z.enum(["contextCount", "name"]).optional(),
    limit: z.int().min(1).max(LIMITS.listLimit.value).default(50),
    cursor: z.string().optional().describe("With the same arguments"),
    detail: z.enum(["concise", "detailed"]).default("concise"),
    fresh: z.boolean().optional().describe("Read again"),
    ...saveArguments("New .xlsx, .csv, .tsv, .ndjson, .yaml or .json file of all"),
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
    counts: z.looseObject({}).optional(),
  });

/** Lists or finds the options of a targeting. */
export const listOptions = {
  name: "list_options",
  title: "List or find options",
  description:
    "Shows and lists every top-level option of a targeting, or the sub-options of a group. Find options with search (part of a name), contextIds, empty (options without Context IDs) and sortBy (largest first); these include sub-options. An answer holds about 50; saveTo exports all.",
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
    return withNote(note, await answerOf(query, { ...form, saveTo, delimiter: delimiter || undefined }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

// Loaded late: what reads and shows options is not needed by a server that is only asked for its tools.
async function answerOf(
  query: OptionsQuery,
  { saveTo, delimiter, ...form }: ListForm & Partial<Record<"saveTo" | "delimiter", string | undefined>>,
  context: ToolContext,
): Promise<ToolAnswer> {
  if (saveTo) {
    const { savedList } = await import("./saved-read.ts");
    return savedList(query, { saveTo, delimiter }, form.fresh, context);
  }
  const { listedOptions } = await import("./option-list.ts");
  return listedOptions(query, form, context);
}

/** The Context IDs that are looked for. Throws a ToolError for one that cannot be one. */
function wantedContextIds({
  contextId,
  contextIds = [],
}: Pick<z.output<ReturnType<typeof input>>, "contextId" | "contextIds">): readonly string[] | undefined {
  const all = [...(contextId ? [contextId] : []), ...contextIds].map(trimContextId);
  for (const id of all) {
    if (contextIdProblem(id) === undefined) continue;
    const list = id.includes(",") ? " A list of several is an array: contextIds." : "";
    throw new ToolError(
      `${quoteUntrusted(id)} cannot be a Context ID`,
      `A Context ID has 1 to ${LIMITS.contextIdBytes.value} bytes in UTF-8.${list}`,
    );
  }
  return all.length === 0 ? undefined : [...new Set(all)];
}
