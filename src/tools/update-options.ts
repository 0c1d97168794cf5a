import * as z from "zod";
import { ARGUMENTS } from "../changes/call.ts";
import { findTargeting, targetingArguments, targetingArgumentsOf, withNote } from "./arguments.ts";
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
  async handler({ dryRun, ...given }, context) {
    const { reference, others } = targetingArgumentsOf(given);
    const { _id: targetingId, note } = (await findTargeting(reference, context)) ?? {};
    const call = { tool: "update_options", input: { targetingId, ...others } } as const;
    return withNote(note, await write(call, { dryRun }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
