import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { confirmationArgument, confirmed } from "../writing/confirmed.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";

const input = () =>
  z.strictObject({
    ids: z.array(z.string()).min(1).optional().describe("ULIDs of the targetings"),
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
  async handler({ ids, confirmation: token, dryRun }, context) {
    const tool = "delete_targeting";
    const call = ids && ({ tool, input: { ids } } as const);
    if (token !== undefined) return confirmed({ tool, token, call, dryRun }, context);
    return write(call, { dryRun }, context);
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
