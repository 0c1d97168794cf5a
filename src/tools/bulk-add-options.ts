import * as z from "zod";
import { ARGUMENTS } from "../changes/call.ts";
import { optionRows } from "../changes/rows/input-rows.ts";
import {
  aboutTargeting,
  fileArguments,
  fileArgumentsOf,
  neededTargeting,
  openedFile,
  referenceOf,
  targetingArguments,
  withNote,
} from "./arguments.ts";
import { type ToolDefinition, ToolError } from "./define-tool.ts";
import { dryRunArgument, runOutput, write } from "./write/write.ts";

const input = () => {
  const { items, ...others } = ARGUMENTS.bulk_add_options();
  return z.strictObject({
    ...targetingArguments(),
    items: items.min(1).optional(),
    ...fileArguments("columns name, contextId, parentName"),
    ...others,
    ...dryRunArgument(),
  });
};

export const bulkAddOptions = {
  name: "bulk_add_options",
  title: "Add options",
  description:
    "Adds or imports any number of options, and creates option groups with sub-options, with their Context IDs, in one targeting.",
  toolset: "targeting",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  async handler({ items, dryRun, targetingId, targetingName, ...all }, context) {
    const { about, others } = fileArgumentsOf(all);
    const opened = await openedFile(about, { items }, optionRows, context);
    if (items === undefined && opened === undefined) throw new ToolError("items are missing", "Give items, or a file.");
    const found = await neededTargeting(referenceOf({ targetingId, targetingName }, opened), context);
    const file = await aboutTargeting(opened, found, context);
    const input = { targetingId: found._id, items: items ?? [], file, ...others };
    return withNote(
      found.note,
      await write({ tool: "bulk_add_options", input }, { dryRun, bytes: opened?.bytes }, context),
    );
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
