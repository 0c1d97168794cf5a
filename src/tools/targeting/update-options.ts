import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";
import { findTargeting, noting, targetingArguments } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    items: z
      .array(
        z.strictObject({
          _id: z.string().optional(),
          currentName: z.string().optional().describe("Or its name"),
          name: z.string().optional().describe("The new name"),
          parent: z.string().nullable().optional().describe("ULID of the group to move it to; null: out of its group"),
          parentName: z.string().optional().describe("Or its name"),
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
    "Renames options, moves them into or out of a group, sets exposeChildren of groups. Exact name first, then case-insensitive. For Context IDs: update_contexts.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ items, dryRun, ...given }, context) {
    const { _id: targetingId, note } = (await findTargeting(given, context)) ?? {};
    return noting(note, await write({ tool: "update_options", input: { targetingId, items } }, { dryRun }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
