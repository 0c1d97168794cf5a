import * as z from "zod";
import type { ToolDefinition } from "./define-tool.ts";
import { sheetReadingArguments } from "./input-file.ts";
import { runOutput } from "./write/write.ts";

const input = () =>
  z.strictObject({
    file: z
      .string()
      .optional()
      .describe("Desired state: .yaml, .json, .ndjson, .xlsx, .csv, .tsv or .txt, as list_options saves it"),
    ...sheetReadingArguments(),
    desired: z
      .looseObject({})
      .optional()
      .describe("Or the state itself: {version: 1, targeting: {_id or name}, options: [{_id?, name, contexts?, …}]}"),
    targetingId: z.string().optional().describe("ULID or name, where the state names none"),
    base: z.string().optional().describe("Base file; default: the one beside file"),
    prune: z.boolean().optional().describe("Delete what is in the base but not in the state"),
    byName: z.boolean().optional().describe("Names alone are identity: one targeting's file onto another"),
    fresh: z.boolean().optional().describe("Read again"),
  });

/** Plans a desired state. */
export const planTargeting = {
  name: "plan_targeting",
  title: "Plan a desired state",
  description:
    "Compares a desired state (file) with a targeting and stores the plan: what would be created, renamed, moved, changed or deleted, conflicts and drift. Sends nothing; apply_plan applies it. Options without contexts keep theirs; options not named stay.",
  toolset: "targeting",
  effect: "reads",
  idempotent: false,
  input,
  output: runOutput,
  async handler(given, context) {
    const { planDesiredState } = await import("./planned-state.ts");
    return planDesiredState(given, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
