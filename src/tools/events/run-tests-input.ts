import * as z from "zod";
import { confirmationArgument } from "../writing/confirmed.ts";

/** What `run_event_tests` takes. */
export const runTestsInput = () =>
  z.strictObject({
    suiteId: z.string().optional().describe("Of generate_event_tests"),
    suite: z.looseObject({}).optional().describe("Or the suite itself, in the form of generate_event_tests' json"),
    file: z.string().optional().describe("Or a file in an allowed folder that holds such a suite"),
    target: z
      .enum(["sandbox", "configured"])
      .default("sandbox")
      .describe("configured: the event API of the settings, where test purchases count as conversions if it is live"),
    saveTo: z.string().optional().describe("New file in an allowed folder for the report, as JUnit XML"),
    ...confirmationArgument(),
  });

/** What running tests is asked for. */
export type RunTestsInput = z.output<ReturnType<typeof runTestsInput>>;
