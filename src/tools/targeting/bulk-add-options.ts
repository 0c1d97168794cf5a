import * as z from "zod";
import { type ToolDefinition, ToolError } from "../definition.ts";
import { fileArguments, openedFile } from "../input-file.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";
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
          parentName: z.string().optional().describe("Or the group's name, also of one created in this call"),
        }),
      )
      .min(1)
      .optional(),
    ...fileArguments("name, contextId or contexts, parentName, type"),
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
    "Adds any number of options, option groups and sub-options with their Context IDs to one targeting. " +
    "Splitting into requests, limits and retries are done here.",
  toolset: "targeting",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  async handler({ items, file, encoding, onExisting, dryRun, ...given }, context) {
    const opened = await openedFile({ file, encoding }, { items }, context);
    if (items === undefined && opened === undefined) throw new ToolError("items are missing", "Give items, or a file.");
    const { _id: targetingId, note } = await neededTargeting(given, context);
    const input = { targetingId, items: items ?? [], file: opened?.file, onExisting };
    return noting(note, await write({ tool: "bulk_add_options", input }, { dryRun, bytes: opened?.bytes }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
