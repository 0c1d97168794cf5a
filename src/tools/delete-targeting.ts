import * as z from "zod";
import { ARGUMENTS } from "../changes/call.ts";
import { findTargeting, seenTargeting, targetingArguments, withNote } from "./arguments.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { confirmationArgument, confirmed } from "./write/confirmed.ts";
import { dryRunArgument, runOutput, write } from "./write/write.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    ...ARGUMENTS.delete_targeting(),
    ...confirmationArgument(),
    ...dryRunArgument(),
  });

export const deleteTargeting = {
  name: "delete_targeting",
  title: "Delete targetings",
  description: "Deletes whole targetings, and gets rid of all their options. The person is asked first.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ ids: several, names, confirmation: token, dryRun, targetingId, targetingName, ...others }, context) {
    const tool = "delete_targeting";
    const one = await findTargeting({ targetingId, targetingName }, context);
    const ids = one === undefined ? several : [...(several ?? []), one._id];
    const named = await Promise.all((names ?? []).map((name) => seenTargeting(name, context)));
    const input = { ...others, ids: ids ?? [], ...(named.length > 0 && { names: named }) };
    const call = (ids ?? names) && ({ tool, input } as const);
    if (token !== undefined) return withNote(one?.note, await confirmed({ tool, token, call, dryRun }, context));
    return withNote(one?.note, await write(call, { dryRun }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
