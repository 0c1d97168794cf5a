import * as z from "zod";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import { RULES, type Verdict } from "../catalogue.ts";

/** What a case of a suite is about. */
export const CASE_KINDS = [
  "minimal",
  "full",
  "missing",
  "limit",
  "type",
  "unknown",
  "misspelt",
  "item",
  "sequence",
] as const;

/** How the uid of a generated event begins, unless another was chosen: no user of an app has such a uid. */
export const TEST_UID_PREFIX = "event-tests-";

/** How an expected verdict is known. */
export const BASES = ["documented", "assumed", "notShown"] as const;

/** What a case of a suite is about. */
export type CaseKind = (typeof CASE_KINDS)[number];

/** The greatest seed: seeds are 32-bit numbers. */
export const MOST_SEED = 0xffff_ffff;

const verdicts = ["recorded", "ignored", "rejected", "uncertain"] as const satisfies readonly Verdict[];
const body = z.record(z.string(), z.unknown()).describe("An event, as it is sent.");

const common = {
  id: z.string().describe("Stable for the same event, kind and rule."),
  title: z.string(),
  expected: z.enum(verdicts).describe("What becomes of each event of the case."),
  basis: z.enum(BASES).describe("How the expected verdict is known."),
  rule: z.enum(Object.keys(RULES)).optional().describe("The rule that the case tries; absent where all rules hold."),
};

const singleCase = z.strictObject({ ...common, kind: z.enum(CASE_KINDS).exclude(["sequence"]), body });
const sequenceCase = z.strictObject({
  ...common,
  kind: z.literal("sequence"),
  events: z.array(body).min(1).describe("Events of one user, sent one after another."),
});

/** The schema of a suite of event tests, which is also published as JSON Schema. */
export const eventSuite = z.strictObject({
  seed: z.int().min(0).max(MOST_SEED).describe("The same seed and choice of cases give the same suite."),
  uid: z.string(),
  cases: z.array(z.union([singleCase, sequenceCase])),
});

/** A suite of event tests. */
export type EventSuite = z.infer<typeof eventSuite>;

/** One case of a suite. */
export type EventCase = EventSuite["cases"][number];

/** The published JSON Schema of a suite. */
export function eventSuiteJsonSchema(): Record<string, unknown> {
  return { title: "A suite of event tests", ...z.toJSONSchema(eventSuite) };
}

/** The events of a case, in the order in which they are sent. */
export function eventsOf(eventCase: EventCase): readonly Readonly<Record<string, unknown>>[] {
  return eventCase.kind === "sequence" ? eventCase.events : [eventCase.body];
}

/** What an answer must be for a verdict to hold; what is left out may be anything. */
export interface ExpectedAnswer {
  readonly statusCode?: number;
  readonly message?: string;
}

/**
 * The answer that goes with each verdict (event-tracking-api 4, 7). An ignored event gives HTTP 200 like a recorded
 * one; the status of `!invalid` is not shown.
 */
export const ANSWERS = {
  recorded: { statusCode: 200, message: EVENT_MESSAGES.ok },
  ignored: { statusCode: 200 },
  rejected: { message: EVENT_MESSAGES.invalid },
  uncertain: {},
} as const satisfies Record<Verdict, ExpectedAnswer>;
