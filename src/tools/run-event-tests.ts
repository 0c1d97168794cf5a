import * as z from "zod";
import type { ToolDefinition } from "./define-tool.ts";
import { runTestsInput } from "./shared-arguments.ts";

/** Runs a suite of event tests against a sandbox, or against the configured endpoint. */
export const runEventTestsTool = {
  name: "run_event_tests",
  title: "Run event tests",
  description:
    "Runs a suite of event tests and compares expected with actual results. A live service answers ok to dropped events too, so these are unobservable; the person is asked first.",
  toolset: "events",
  effect: "tests",
  idempotent: false,
  input: runTestsInput,
  output: () =>
    z.looseObject({
      environment: z.string(),
      suiteId: z.string().optional(),
      target: z.string().optional(),
      cases: z.number().optional(),
      matched: z.number().optional(),
      mismatched: z.number().optional(),
      unobservable: z.number().optional(),
      mismatches: z.array(z.looseObject({})).optional(),
      resourceUri: z.string().optional(),
      savedTo: z.string().optional(),
    }),
  // Loaded late: a server that is only asked for its tools does not need it.
  handler: async (given, context) => (await import("./suite-run.ts")).runTests(given, context),
} as const satisfies ToolDefinition<ReturnType<typeof runTestsInput>>;
