import * as z from "zod";
import { once, type ToolDefinition } from "./define-tool.ts";
import { targetingArguments } from "./names.ts";

const input = () =>
  z.strictObject({
    ...targetingArguments(),
    targetingName: z.string().optional().describe("Or the name of one seen before, or a part of it"),
    summary: z.boolean().optional().describe("Also count options by kind, empty ones, Context IDs"),
    cursor: z.string().optional(),
  });

/** Loaded by the first call, since no list of tools needs it. Once: an import costs each call microseconds. */
const reading = once(() => import("./targeting-read.ts"));

/** Reads one targeting, or lists those seen before. */
export const getTargeting = {
  name: "get_targeting",
  title: "Get a targeting",
  description:
    "Reads and shows a targeting by ID or name, and how many options and Context IDs are in it; part of a name finds targetings that contain it. Without arguments: targetings seen before (the service cannot list them).",
  toolset: "targeting",
  effect: "reads",
  idempotent: true,
  input,
  output: () =>
    z.looseObject({
      environment: z.string(),
      targeting: z.looseObject({}).optional(),
      summary: z.looseObject({}).optional(),
      targetings: z.array(z.looseObject({})).optional(),
    }),
  handler: async ({ summary = false, cursor, ...reference }, context) =>
    (await reading()).readTargeting(reference, summary || cursor ? { cursor } : undefined, context),
} as const satisfies ToolDefinition<ReturnType<typeof input>>;
