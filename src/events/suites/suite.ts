import * as z from "zod";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import { BASES, RULES, VERDICTS, type Verdict } from "../catalogue.ts";

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

/** The prefix of the default `uid` in test events. No real user's `uid` should start with it. */
export const TEST_UID_PREFIX = "event-tests-";

export type CaseKind = (typeof CASE_KINDS)[number];

export const MAX_SEED = 0xffff_ffff;

const body = z.record(z.string(), z.unknown()).describe("An event, as it is sent.");

const common = {
  id: z.string().describe("Identifies the case. The same case has the same ID in every suite."),
  title: z.string(),
  expected: z.enum(VERDICTS).describe("What the service does with each event of the case."),
  basis: z.enum(BASES).describe("How the expected verdict is known."),
  rule: z
    .enum(Object.keys(RULES))
    .optional()
    .describe("The rule that the case breaks. Absent if the case breaks none."),
};

const singleCase = z.strictObject({ ...common, kind: z.enum(CASE_KINDS).exclude(["sequence"]), body });
const sequenceCase = z.strictObject({
  ...common,
  kind: z.literal("sequence"),
  events: z.array(body).min(1).describe("Events of one user, sent one after another."),
});

/** The schema of a suite of event tests. It is also published as JSON Schema. */
export const eventSuite = z.strictObject({
  seed: z.int().min(0).max(MAX_SEED).describe("The same seed and choice of cases give the same suite."),
  uid: z.string(),
  cases: z.array(z.discriminatedUnion("kind", [singleCase, sequenceCase])),
});

export type EventSuite = z.infer<typeof eventSuite>;

export type EventCase = EventSuite["cases"][number];

export function eventSuiteJsonSchema(): Record<string, unknown> {
  return { title: "A suite of event tests", ...z.toJSONSchema(eventSuite) };
}

export function eventsOf(eventCase: EventCase): readonly Readonly<Record<string, unknown>>[] {
  return eventCase.kind === "sequence" ? eventCase.events : [eventCase.body];
}

/** What an answer must contain to match an expected verdict. Fields that are absent here may have any value. */
export interface ExpectedAnswer {
  readonly statusCode?: number;
  readonly message?: string;
}

/** The expected answer for each verdict (event-tracking-api 4, 7). For `ignored`, any message is accepted. */
export const ANSWERS = {
  recorded: { statusCode: 200, message: EVENT_MESSAGES.ok },
  ignored: { statusCode: 200 },
  rejected: { message: EVENT_MESSAGES.invalid },
  uncertain: {},
} as const satisfies Record<Verdict, ExpectedAnswer>;

const caseResult = z.object({
  id: z.string(),
  title: z.string(),
  kind: z.enum(CASE_KINDS),
  expected: z.enum(VERDICTS),
  basis: z.enum(BASES),
  rule: z.string().exactOptional(),
  /** The result of a case. `unobservable`: the answers do not show what the verdict was. */
  status: z.enum(["matched", "mismatched", "unobservable"]),
  /** The verdict that was observed. `accepted`: the answer was `ok`, which ignored events get as well. */
  observed: z.enum([...VERDICTS, "accepted"]).exactOptional(),
  reason: z.enum(["answerLost", "answerNotUnderstood", "notSent", "notRun"]).exactOptional(),
  /** The status of an answer that was not usable, and the first message in it. */
  statusCode: z.number().exactOptional(),
  said: z.string().exactOptional(),
  /** If a sequence is not matched: the numbers of its events with this result. The answer is that of the first one. */
  events: z.array(z.number()).exactOptional(),
  /** If the case is mismatched: the finding that decides the verdict, as a sentence. Absent if there is no finding. */
  finding: z.string().exactOptional(),
  milliseconds: z.number(),
});

export type CaseResult = Readonly<z.output<typeof caseResult>>;

export const suiteReport = z.object({
  cases: z.number(),
  matched: z.number(),
  mismatched: z.number(),
  unobservable: z.number(),
  results: z.array(caseResult),
  /** Set if an error that concerns all cases, such as an invalid key, ended the run: the stored fields of the error. */
  ended: z.record(z.string(), z.unknown()).exactOptional(),
  /** Set if the report could not be stored with its suite after the tests had been sent. */
  isUnstored: z.literal(true).exactOptional(),
});

/** The report of a suite that was run. `cases` is the sum of `matched`, `mismatched` and `unobservable`. */
export type SuiteReport = Readonly<z.output<typeof suiteReport>>;
