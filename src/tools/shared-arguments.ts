import * as z from "zod";
import { confirmationArgument } from "./write/confirmed.ts";

/** The arguments with which a tool saves rows to a file. */
export const saveArguments = (saveTo: string) => ({
  saveTo: z.string().optional().describe(saveTo),
  delimiter: z.string().optional().describe("Of .csv"),
});

/** Where a call saves to, and what separates the cells of a text file. */
export interface SaveArguments {
  readonly saveTo: string;
  readonly delimiter?: string | undefined;
}

const VERDICTS = ["recorded", "ignored", "rejected"] as const;
const MOST_EXPECTATIONS = 30;

const expectation = () =>
  z.strictObject({
    eventName: z.string().max(64),
    where: z.record(z.string(), z.unknown()).optional().describe("Its parameters"),
    count: z.int().min(0).optional().describe("Exactly so many; default: at least one"),
    verdict: z.enum(VERDICTS).optional().describe("Default: recorded, and none ignored or rejected"),
  });

/** What `inspect_events` takes. */
export const inspectInput = () =>
  z.strictObject({
    uid: z.string().optional(),
    uids: z.array(z.string()).min(1).max(50).optional(),
    platform: z.string().optional(),
    eventName: z.string().optional(),
    verdict: z.enum(VERDICTS).optional(),
    since: z.union([z.string(), z.number()]).optional().describe("ISO 8601, or milliseconds since 1970"),
    limit: z.int().min(1).max(1000).default(20).describe("Events of one answer, the newest"),
    cursor: z.string().optional(),
    expect: z.array(expectation()).max(MOST_EXPECTATIONS).optional(),
    inOrder: z.boolean().optional(),
    withinMs: z.int().min(0).optional().describe("All within so many milliseconds of the first"),
    coverage: z.boolean().optional().describe("Counts for each event, instead of the list"),
  });

/** What an inspection is asked for. */
export type InspectInput = z.output<ReturnType<typeof inspectInput>>;

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
