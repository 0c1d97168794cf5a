import * as z from "zod";
import { ARGUMENTS } from "../changes/call.ts";
import { findTargeting, targetingArguments, withNote } from "./arguments.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { dryRunArgument, runOutput, write } from "./write/write.ts";

const input = () => {
  const { items, ...others } = ARGUMENTS.update_options();
  return z.strictObject({ ...targetingArguments(), items: items.min(1), ...others, ...dryRunArgument() });
};

export const updateOptions = {
  name: "update_options",
  title: "Rename and move options",
  description:
    "Renames options (names may be swapped), moves them into or out of a group, sets exposeChildren of groups. For Context IDs: update_contexts.",
  toolset: "targeting",
  effect: "changes",
  // If items use names for options, repeating the call may undo a swap of two names.
  idempotent: false,
  input,
  output: runOutput,
  async handler({ dryRun, targetingId, targetingName, ...others }, context) {
    const found = await findTargeting({ targetingId, targetingName }, context);
    const call = { tool: "update_options", input: { targetingId: found?._id, ...others } } as const;
    return withNote(found?.note, await write(call, { dryRun }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
