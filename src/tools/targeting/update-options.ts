import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";

const input = () =>
  z.strictObject({
    items: z
      .array(
        z.strictObject({
          _id: z.string(),
          name: z.string().optional().describe("The new name"),
          parent: z.string().nullable().optional().describe("ULID of the group to move it to; null: out of its group"),
          exposeChildren: z.boolean().optional().describe("Groups only"),
        }),
      )
      .min(1),
    ...dryRunArgument(),
  });

/** Renames and moves options, and changes the setting of groups. */
export const updateOptions = {
  name: "update_options",
  title: "Rename and move options",
  description:
    "Renames options, moves them into an option group or out of one, and sets exposeChildren of groups; any number " +
    "at once. Context IDs are changed with update_contexts.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  handler: ({ items, dryRun }, context) => write({ tool: "update_options", input: { items } }, { dryRun }, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
