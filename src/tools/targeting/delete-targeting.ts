import * as z from "zod";
import { ARGUMENTS } from "../../changes/call.ts";
import type { ToolDefinition } from "../definition.ts";
import { confirmationArgument, confirmed } from "../writing/confirmed.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";
import { seenTargeting } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    ...ARGUMENTS.delete_targeting(),
    ...confirmationArgument(),
    ...dryRunArgument(),
  });

/** Deletes targetings with all their options. */
export const deleteTargeting = {
  name: "delete_targeting",
  title: "Delete targetings",
  description: "Deletes targetings with all their options. The person is asked first.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ ids, names, confirmation: token, dryRun, ...others }, context) {
    const tool = "delete_targeting";
    const named = await Promise.all((names ?? []).map((name) => seenTargeting(name, context)));
    const isGiven = ids !== undefined || names !== undefined;
    const input = { ...others, ids: ids ?? [], ...(named.length > 0 && { names: named }) };
    const call = isGiven ? ({ tool, input } as const) : undefined;
    if (token !== undefined) return confirmed({ tool, token, call, dryRun }, context);
    return write(call, { dryRun }, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
