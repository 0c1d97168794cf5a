import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";
import { seenTargeting } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    items: z
      .array(
        z.strictObject({
          _id: z.string().optional(),
          currentName: z.string().optional().describe("Or its name, if seen before"),
          name: z.string().describe("The new name"),
        }),
      )
      .min(1),
    ...dryRunArgument(),
  });

/** Renames targetings. */
export const renameTargetings = {
  name: "rename_targetings",
  title: "Rename targetings",
  description: "Renames targetings; names may be swapped in one call. Exact name first, then case-insensitive.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ items, dryRun }, context) {
    const named = await Promise.all(
      items.map(async ({ _id, currentName, name }) => ({
        ...(currentName !== undefined && (await seenTargeting(currentName, context))),
        ...(_id && { _id }),
        name,
      })),
    );
    return write({ tool: "rename_targetings", input: { items: named } }, { dryRun }, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
