import * as z from "zod";
import type { ToolDefinition } from "./define-tool.ts";
import { saveArguments } from "./shared-arguments.ts";
import { runOutput } from "./write/write.ts";

/** The longest that a call waits for a run to go on, in milliseconds. */
const LONGEST_WAIT_MS = 25_000;

const STATUSES = [
  "succeeded",
  "partial",
  "failed",
  "unknown",
  "running",
  "interrupted",
  "cancelled",
  "planned",
  "needs_confirmation",
] as const;

const input = () =>
  z.strictObject({
    runId: z.string().optional().describe("Without it: the recent runs"),
    status: z.enum(STATUSES).optional().describe("Filters the list"),
    tool: z.string().optional(),
    targetingId: z.string().optional(),
    outcome: z.enum(["succeeded", "alreadyDone", "skipped", "failed", "notApplied", "unknown", "pending"]).optional(),
    includeInput: z.boolean().optional().describe("Also the input of items that are not done"),
    limit: z.int().min(1).max(1000).optional().describe("Default 20"),
    cursor: z.string().optional(),
    ...saveArguments("New file: its sheet with results"),
    waitMs: z.int().min(0).max(LONGEST_WAIT_MS).optional().describe("Wait for its end"),
  });

const output = () => runOutput().extend({ runs: z.array(z.looseObject({})).optional(), cursor: z.string().optional() });

/** Shows runs: the recent ones, or one with its items. */
export const getRun = {
  name: "get_run",
  title: "Look at runs",
  description:
    "Shows what happened in a run, such as an import: its rows by outcome, such as the failed ones and why, page by page. Or lists recent runs.",
  toolset: "either",
  effect: "reads",
  idempotent: true,
  input,
  output,
  // Loaded late: a server that is only asked for its tools does not need it.
  handler: async ({ runId, ...asked }, context) =>
    (await import("./run-or-list.ts")).showRunOrList({ runId: runId || undefined, ...asked }, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
