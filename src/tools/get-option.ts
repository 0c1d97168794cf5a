import * as z from "zod";
import { LIMITS } from "../spec/limits.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { targetingArguments } from "./names.ts";
import { saveArguments } from "./shared-arguments.ts";

const input = () =>
  z.strictObject({
    optionId: z.string().optional().describe("ULID"),
    name: z.string().optional().describe("Or its name, with targetingId"),
    ...targetingArguments(),
    compareWith: z.string().optional().describe("ID or name of another"),
    detail: z.enum(["concise", "detailed"]).optional().describe("detailed: also list what both hold"),
    limit: z.int().min(1).max(LIMITS.getLimit.value).default(100).describe("Context IDs"),
    cursor: z.string().optional().describe("From the last answer"),
    ...saveArguments("New file of all: .xlsx, .csv, .tsv, .ndjson"),
  });

/** Reads one option with a page of its Context IDs, or compares it with another. */
export const getOption = {
  name: "get_option",
  title: "Get or compare options",
  description:
    "Shows one option, group or sub-option with its Context IDs, page by page. Or compares two: which Context IDs only one holds. Exact name first, then case-insensitive.",
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
  // Loaded late: a server that is only asked for its tools does not need it.
  handler: async (given, context) => (await import("./option-read.ts")).readOption(given, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
