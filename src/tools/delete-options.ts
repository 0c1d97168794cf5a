import * as z from "zod";
import { ARGUMENTS } from "../changes/call.ts";
import { emptyOptions } from "../reads/option-scan.ts";
import type { ToolContext } from "./context.ts";
import { type ToolDefinition, ToolError } from "./define-tool.ts";
import { findTargeting, targetingArguments, targetingArgumentsOf, withNote } from "./names.ts";
import { everyOption } from "./option-search.ts";
import { confirmationArgument, confirmed } from "./write/confirmed.ts";
import { dryRunArgument, runOutput, write } from "./write/write.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    ...ARGUMENTS.delete_options(),
    ...confirmationArgument(),
    ...dryRunArgument(),
  });

async function idsOfEmpty(targetingId: string, context: ToolContext): Promise<string[]> {
  const all = await everyOption(targetingId, {}, context);
  const empty = emptyOptions(all.map(({ step }) => step.option));
  if (empty.length > 0) return empty.map(({ _id }) => _id);
  throw new ToolError("no option of the targeting is empty; nothing was deleted", "Nothing needs to be done.");
}

/** Deletes options, option groups and sub-options. */
export const deleteOptions = {
  name: "delete_options",
  title: "Delete options",
  description:
    "Deletes or removes options, groups and sub-options of a targeting, by ID or name, or those that are empty. Sub-options of a deleted group become top-level options unless they are listed too. The person is asked first.",
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
    const areAllEmpty = !isGiven && token === undefined && others.onlyEmpty === true && targetingId !== undefined;
    const wanted = areAllEmpty ? { ...others, ids: await idsOfEmpty(targetingId, context) } : others;
    const call = isGiven || areAllEmpty ? ({ tool, input: { ...wanted, targetingId } } as const) : undefined;
    if (token !== undefined)
      return withNote(note, await confirmed({ tool, token, call, targetingId, dryRun }, context));
    return withNote(note, await write(call, { dryRun }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
