import * as z from "zod";
import { ARGUMENTS } from "../changes/call.ts";
import { seenTargeting } from "./arguments.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { dryRunArgument, runOutput, write } from "./write/write.ts";

const input = () => {
  const { items, ...others } = ARGUMENTS.rename_targetings();
  return z.strictObject({ items: items.min(1), ...others, ...dryRunArgument() });
};

export const renameTargetings = {
  name: "rename_targetings",
  title: "Rename targetings",
  description: "Renames targetings, given by ID or current name; names may be swapped in one call.",
  toolset: "targeting",
  effect: "changes",
  // If items use names for targetings, repeating the call may undo a swap of two names.
  idempotent: false,
  input,
  output: runOutput,
  async handler({ items, dryRun, ...others }, context) {
    const named = await Promise.all(
      items.map(async ({ _id, ...item }) => ({
        ...(item.currentName !== undefined && (await seenTargeting(item.currentName, context))),
        ...(_id && { _id }),
        ...item,
      })),
    );
    return write({ tool: "rename_targetings", input: { ...others, items: named } }, { dryRun }, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
