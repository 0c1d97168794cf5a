import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { dryRunArgument, runOutput, write } from "../writing/write.ts";
import { optionFields } from "./option-arguments.ts";

const input = () =>
  z.strictObject({
    items: z
      .array(
        z.strictObject({
          name: z.string().describe("2 to 36 Korean or English letters, digits, spaces, ~ % & + -"),
          options: z.array(z.strictObject(optionFields())).optional(),
        }),
      )
      .min(1),
    ...dryRunArgument(),
  });

/** Creates targetings, with options inside where wanted. */
export const createTargetings = {
  name: "create_targetings",
  title: "Create targetings",
  description: "Creates (makes, sets up) context targetings, with options and groups where given.",
  toolset: "targeting",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  handler: ({ items, dryRun }, context) => write({ tool: "create_targetings", input: { items } }, { dryRun }, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
