import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { confirmationArgument, confirmed } from "../writing/confirmed.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";
import { findTargeting, noting, seenTargeting, targetingArguments } from "./targeting-name.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    ids: z.array(z.string()).min(1).optional().describe("Several"),
    names: z.array(z.string()).min(1).optional().describe("Several, seen before"),
    ...confirmationArgument(),
    ...dryRunArgument(),
  });

/** Deletes targetings with all their options. */
export const deleteTargeting = {
  name: "delete_targeting",
  title: "Delete targetings",
  description: "Deletes (gets rid of) whole targetings with all their options. The person is asked first.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ ids: several, names, confirmation: token, dryRun, ...reference }, context) {
    const tool = "delete_targeting";
    const one = await findTargeting(reference, context);
    const ids = one === undefined ? several : [...(several ?? []), one._id];
    const named = await Promise.all((names ?? []).map((name) => seenTargeting(name, context)));
    const isGiven = ids !== undefined || names !== undefined;
    const input = { ids: ids ?? [], ...(named.length > 0 && { names: named }) };
    const call = isGiven ? ({ tool, input } as const) : undefined;
    if (token !== undefined) return noting(one?.note, await confirmed({ tool, token, call, dryRun }, context));
    return noting(one?.note, await write(call, { dryRun }, context));
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
