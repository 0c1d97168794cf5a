import * as z from "zod";
import { EMPTY_WORDS, many } from "../answers/message-words.ts";
import { ARGUMENTS } from "../changes/call.ts";
import { RunState } from "../changes/change-state.ts";
import { emptyOptions, isEmpty } from "../reads/option-lists.ts";
import { countsOf } from "../runs/report.ts";
import { findTargeting, targetingArguments, withNote } from "./arguments.ts";
import { type ToolAnswer, type ToolContext, type ToolDefinition, ToolError } from "./define-tool.ts";
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

/** The empty options to delete. `counted`: a sentence for the answer, with their number. */
interface EmptyOptions {
  readonly ids?: string[];
  readonly counted?: string;
}

/** Returns the empty options of a targeting. If it has none, returns the answer to the call. */
async function findEmpty(targetingId: string, context: ToolContext): Promise<EmptyOptions | ToolAnswer> {
  const all = await everyOption(targetingId, {}, context);
  const empty = emptyOptions(all.map(({ step }) => step.option));
  if (empty.length > 0) return { ids: empty.map(({ _id }) => _id), counted: countedWords(empty) };
  const { environment } = context;
  const found =
    all.length > 1
      ? `None of the ${many(all.length, "option")} is empty (${EMPTY_WORDS})`
      : `The targeting has ${all.length === 0 ? "no options" : `1 option, which is not empty (${EMPTY_WORDS})`}`;
  const text = `${found}; nothing was deleted. Environment: ${environment}.`;
  const counts = countsOf(new RunState());
  const structured = { environment, tool: "delete_options", status: "succeeded", counts, note: text };
  return { structured, text, isError: false };
}

/** Counts empty options, as `get_targeting` does, and separately the groups that have only empty sub-options. */
function countedWords(found: ReturnType<typeof emptyOptions>): string {
  const groups = found.filter((option) => !isEmpty(option)).length;
  const also = groups === 0 ? "" : `, and ${many(groups, "group")} with only empty sub-options`;
  return `Found ${many(found.length - groups, "empty option")} (${EMPTY_WORDS})${also}.`;
}

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
  async handler({ confirmation: token, dryRun, targetingId: givenId, targetingName, ...others }, context) {
    const tool = "delete_options";
    const { ids, names } = others;
    const found = await findTargeting({ targetingId: givenId, targetingName }, context);
    const { _id: targetingId, note } = found ?? {};
    if (names !== undefined && targetingId === undefined) {
      throw new ToolError("names were given without their targeting", "Give targetingId (or targetingName) too.");
    }
    const isGiven = ids !== undefined || names !== undefined;
    const areAllEmpty = !isGiven && token === undefined && others.onlyEmpty === true && targetingId !== undefined;
    const empty: EmptyOptions | ToolAnswer = areAllEmpty ? await findEmpty(targetingId, context) : {};
    if ("text" in empty) return withNote(note, empty);
    const wanted = { ...others, ...(empty.ids && { ids: empty.ids }) };
    const call = isGiven || areAllEmpty ? ({ tool, input: { ...wanted, targetingId } } as const) : undefined;
    if (token !== undefined)
      return withNote(note, await confirmed({ tool, token, call, targetingId, dryRun }, context));
    return withNote(note, withNote(empty.counted, await write(call, { dryRun }, context)));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
