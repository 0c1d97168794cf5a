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
  // If a call swaps two names and identifies the targetings by name, the same call again swaps them back.
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
