import * as z from "zod";
import type { ToolDefinition } from "./definition.ts";
import { confirmationArgument, dryRunArgument, runOutput, write } from "./write.ts";

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
  handler: ({ ids, confirmation, dryRun }, context) =>
    write(ids && { tool: "delete_targeting", input: { ids } }, { dryRun, confirmation }, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
