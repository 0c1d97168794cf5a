import * as z from "zod";
import { ARGUMENTS } from "../changes/call.ts";
import type { ToolDefinition } from "./define-tool.ts";
import { dryRunArgument, runOutput, write } from "./write/write.ts";

const input = () => {
  const { items, ...others } = ARGUMENTS.create_targetings();
  return z.strictObject({ items: items.min(1), ...others, ...dryRunArgument() });
};

export const createTargetings = {
  name: "create_targetings",
  title: "Create targetings",
  description: "Creates context targetings, and sets up their options and groups.",
  toolset: "targeting",
  effect: "adds",
  idempotent: false,
  input,
  output: runOutput,
  handler: ({ dryRun, ...input }, context) => write({ tool: "create_targetings", input }, { dryRun }, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
