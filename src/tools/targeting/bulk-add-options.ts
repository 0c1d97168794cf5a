import * as z from "zod";
import { type ToolDefinition, ToolError } from "../definition.ts";
import { fileArguments, fileArgumentsOf, openedFile } from "../input-file.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";
import { aboutTargeting, referenceOf } from "./file-targeting.ts";
import { optionFields } from "./option-arguments.ts";
import { neededTargeting, noting, targetingArguments } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    items: z
      .array(
        z.strictObject({
          ...optionFields(),
          parent: z.string().optional().describe("ULID of the group to add it to"),
          parentName: z.string().optional().describe("Or its name, also a new group's"),
        }),
      )
      .min(1)
      .optional(),
    ...fileArguments("columns name, contexts, parentName"),
    onExisting: z
      .enum(["fail", "skip", "addContexts"])
      .optional()
      .describe("When the name exists: fail (default), leave it, or add the Context IDs to it"),
    ...dryRunArgument(),
  });

/** Adds options, groups and sub-options to a targeting. */
export const bulkAddOptions = {
  name: "bulk_add_options",
  title: "Add options",
  description:
    "Adds or imports any number of options, and creates option groups with sub-options, with their Context IDs, in one targeting. Splits and retries requests.",
  toolset: "targeting",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  async handler({ items, onExisting, dryRun, ...all }, context) {
    const { about, others: given } = fileArgumentsOf(all);
    const { optionRows } = await import("../../changes/rows/input-rows.ts");
    const opened = await openedFile(about, { items }, optionRows, context);
    if (items === undefined && opened === undefined) throw new ToolError("items are missing", "Give items, or a file.");
    const found = await neededTargeting(referenceOf(given, opened), context);
    const { _id: targetingId, note } = found;
    const input = { targetingId, items: items ?? [], file: await aboutTargeting(opened, found, context), onExisting };
    return noting(note, await write({ tool: "bulk_add_options", input }, { dryRun, bytes: opened?.bytes }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
