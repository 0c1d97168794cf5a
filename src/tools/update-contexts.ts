import * as z from "zod";
import { ARGUMENTS } from "../changes/call.ts";
import type { ToolContext } from "./context.ts";
import { type ToolDefinition, ToolError } from "./define-tool.ts";
import { fileArguments, fileArgumentsOf, openedFile } from "./input-file.ts";
import {
  aboutTargeting,
  findTargeting,
  referenceOf,
  targetingArguments,
  targetingArgumentsOf,
  withNote,
} from "./names.ts";
import { fileWithinWait } from "./within-wait.ts";
import { confirmationArgument, confirmed } from "./write/confirmed.ts";
import { dryRunArgument, runOutput, write } from "./write/write.ts";

const input = () => {
  const { items, ...others } = ARGUMENTS.update_contexts();
  const withFiles = items.element.extend({
    addFile: z.string().optional().describe("File: one Context ID a line"),
    removeFile: z.string().optional(),
    setFile: z.string().optional(),
  });
  return z.strictObject({
    ...targetingArguments(),
    items: z.array(withFiles).min(1).optional(),
    removeEverywhere: z.array(z.string()).optional().describe("Context IDs to remove from every option"),
    ...fileArguments("columns _id or name, contexts, op"),
    ...others,
    ...confirmationArgument(),
    ...dryRunArgument(),
  });
};

/** Items with the Context IDs of the files that they name. */
async function listed(items: NonNullable<z.infer<ReturnType<typeof input>>["items"]>, context: ToolContext) {
  const { withListedContexts } = await import("./listed-contexts.ts");
  return fileWithinWait(context, withListedContexts(items, context));
}

/** An item for each option of a targeting that holds some of these Context IDs. */
async function removals(contextIds: readonly string[], targetingId: string | undefined, context: ToolContext) {
  if (targetingId === undefined) {
    throw new ToolError("removeEverywhere was given without a targeting", "Give targetingId (or targetingName) too.");
  }
  const { everyOption } = await import("./every-option.ts");
  const hits = await everyOption(targetingId, { contextIds }, context);
  if (hits.length === 0) {
    throw new ToolError(
      "no option of the targeting holds any of these Context IDs; nothing was changed",
      "Nothing needs to be done.",
    );
  }
  return hits.map(({ step, matched = [] }) => ({ _id: step.option._id, remove: [...matched] }));
}

/** Changes which Context IDs options hold. */
export const updateContexts = {
  name: "update_contexts",
  title: "Change Context IDs",
  description:
    "Adds, removes, moves or sets Context IDs of any number of options. The person is asked before over 100 are removed, or all of an option.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ items: given, removeEverywhere, confirmation: token, dryRun, ...all }, context) {
    const tool = "update_contexts";
    const { about, others: named } = fileArgumentsOf(all);
    const { reference, others } = targetingArgumentsOf(named);
    const { contextRows } = await import("../changes/rows/input-rows.ts");
    const opened = await openedFile(about, { items: given }, contextRows, context);
    const listedItems = given === undefined ? undefined : await listed(given, context);
    const found = await findTargeting(referenceOf(reference, opened), context);
    const { _id: targetingId, note } = found ?? {};
    if (removeEverywhere !== undefined && (given ?? opened) !== undefined) {
      throw new ToolError("removeEverywhere was given beside items or file", "Make two calls.");
    }
    const isEverywhere = removeEverywhere !== undefined && token === undefined;
    const items = isEverywhere ? await removals(removeEverywhere, targetingId, context) : listedItems;
    const file = await aboutTargeting(opened, found, context);
    const call = (items ?? opened) && ({ tool, input: { targetingId, items: items ?? [], file, ...others } } as const);
    if (token !== undefined)
      return withNote(note, await confirmed({ tool, token, call, targetingId, dryRun }, context));
    return withNote(note, await write(call, { dryRun, bytes: opened?.bytes }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
