import * as z from "zod";
import type { ToolDefinition } from "./define-tool.ts";
import { runOutput } from "./write/write.ts";

const input = () =>
  z.strictObject({
    runId: z.string(),
    decision: z.enum(["approve", "decline"]),
    secret: z.string().describe("From the _meta of the answer that waits for the decision"),
  });

/** Takes a person's decision in a view; models are not shown it. */
export const decideRun = {
  name: "decide_run",
  title: "Decide on a run",
  description: "For the view of a run alone: carries the person's decision.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  // Loaded late: a server that is only asked for its tools does not need it.
  handler: async (given, context) => (await import("./decided-in-view.ts")).decidedInView(given, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
