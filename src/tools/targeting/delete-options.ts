import * as z from "zod";
import { ARGUMENTS } from "../../changes/call.ts";
import { type ToolDefinition, ToolError } from "../definition.ts";
import { confirmationArgument, confirmed } from "../writing/confirmed.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";
import { findTargeting, noting, targetingArguments, targetingArgumentsOf } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    ...ARGUMENTS.delete_options(),
    ...confirmationArgument(),
    ...dryRunArgument(),
  });

/** Deletes options, option groups and sub-options. */
export const deleteOptions = {
  name: "delete_options",
  title: "Delete options",
  description:
    "Deletes options, option groups and sub-options by ID or name. Sub-options of a deleted group that are not named " +
    "become top-level options. The person is asked first.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ confirmation: token, dryRun, ...given }, context) {
    const tool = "delete_options";
    const { reference, others } = targetingArgumentsOf(given);
    const { ids, names } = others;
    const { _id: targetingId, note } = (await findTargeting(reference, context)) ?? {};
    if (names !== undefined && targetingId === undefined) {
      throw new ToolError("names were given without their targeting", "Give targetingId (or targetingName) too.");
    }
    const isGiven = ids !== undefined || names !== undefined;
    const call = isGiven ? ({ tool, input: { ...others, targetingId } } as const) : undefined;
    if (token !== undefined) return noting(note, await confirmed({ tool, token, call, targetingId, dryRun }, context));
    return noting(note, await write(call, { dryRun }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
