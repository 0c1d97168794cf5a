import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";

const input = () =>
  z.strictObject({
    items: z.array(z.strictObject({ _id: z.string(), name: z.string().describe("The new name") })).min(1),
    ...dryRunArgument(),
  });

/** Renames targetings. */
export const renameTargetings = {
  name: "rename_targetings",
  title: "Rename targetings",
  description: "Renames any number of targetings; names may be swapped or passed on within one call.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  handler: ({ items, dryRun }, context) => write({ tool: "rename_targetings", input: { items } }, { dryRun }, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
