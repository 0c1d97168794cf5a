import * as z from "zod";
import type { ToolDefinition } from "./define-tool.ts";
import { inspectInput } from "./shared-arguments.ts";

/** Shows the events that a sandbox received, and checks them against expectations. */
export const inspectEvents = {
  name: "inspect_events",
  title: "Look at the events that arrived",
  description:
    "Shows the received events of the sandbox with their verdicts (recorded, dropped, rejected). Checks whether an event did arrive, order and time, for each user; counts coverage of an app's events.",
  toolset: "events",
  effect: "reads",
  idempotent: true,
  needsSandbox: true,
  input: inspectInput,
  output: () =>
    z.looseObject({
      environment: z.string(),
      events: z.array(z.looseObject({})).optional(),
      total: z.number().optional(),
      expectations: z.array(z.looseObject({})).optional(),
      order: z.looseObject({}).optional(),
      within: z.looseObject({}).optional(),
      findings: z.array(z.looseObject({})).optional(),
      coverage: z.array(z.looseObject({})).optional(),
      cursor: z.string().optional(),
      notes: z.array(z.string()).optional(),
    }),
  // Loaded late: a server that is only asked for its tools does not need it.
  handler: async (given, context) => (await import("./inspection.ts")).inspection(given, context),
} as const satisfies ToolDefinition<ReturnType<typeof inspectInput>>;
