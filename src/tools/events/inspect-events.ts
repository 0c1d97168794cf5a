import * as z from "zod";
import type { ToolDefinition } from "../definition.ts";
import { inspectInput } from "./inspect-input.ts";

/** Shows the events that a sandbox received, and checks them against expectations. */
export const inspectEvents = {
  name: "inspect_events",
  title: "Look at the events that arrived",
  description:
    "Shows the events that the sandbox received, with their verdicts; checks expectations: that they arrive, in order, " +
    "in time (whatever eventName and verdict are). With uids each check is made for each user.",
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
