import { BASES, BASIS_WORDS } from "../events/catalogue.ts";
import type { contentsOf, SuiteFormat } from "../events/suites/emit.ts";
import { eventsWords, isUnanswered } from "../events/suites/run-suite.ts";
import type { CaseResult, SuiteReport } from "../events/suites/suite.ts";
import { type EventSuite, eventsOf } from "../events/suites/suite.ts";
import { defined } from "../platform/by-key.ts";
import { amount, capitalized, cutText } from "../platform/text.ts";
import { type Approval, approvalLines, type Effect, effectPart, shortName } from "./approvals.ts";
import { pageBudget, renderAnswer, takeRows, tokensOf } from "./budget.ts";
import { basisNote, suiteReportUri, suiteUri } from "./event-suites.ts";
import { escapeInvisible, fenced, plain, quoteUntrusted } from "./fence.ts";
import { many } from "./message-words.ts";
import { planningFailure } from "./request-messages.ts";

export function liveTestsEffect({ cases }: EventSuite): Effect {
  const events = cases.flatMap(eventsOf);
  const purchases = events.filter(({ eventName }) => eventName === "purchase").length;
  const times = new Map<string, number>();
  for (const { eventName } of events) {
    const name = typeof eventName === "string" ? eventName : "(no event name)";
    times.set(name, (times.get(name) ?? 0) + 1);
  }
  const objects = [...times].map(([name, count]) => ({ name: shortName(name), says: many(count, "event") }));
  const sentence =
    `This sends ${amount(events.length, "test event")} to the LIVE event API, ${purchases} of them purchases. Events that the ` +
    "service records count as conversions and feed audiences. They cannot be deleted.";
  return { sentence, parts: effectPart("Event names sent", objects) };
}

export function suiteReportAnswer(run: {
  readonly environment: string;
  readonly suiteId: string;
  readonly target: string;
  readonly report: SuiteReport;
  readonly approval?: Approval | undefined;
  /** All test events arrived before this time. Set if inspect_events shows them. */
  readonly shownBefore?: string | undefined;
  /** The file with the report. `notSaved`: why it could not be written. */
  readonly savedTo?: string;
  readonly notSaved?: string;
}) {
  const { environment, suiteId, target, report, approval, shownBefore, savedTo, notSaved } = run;
  const { results, ended, isUnstored, ...counts } = report;
  const failure = ended && planningFailure(ended);
  const all = results.filter(({ status }) => status === "mismatched").map(mismatchRow);
  const budget = pageBudget();
  const mismatches = takeRows(all, mismatchLine, budget);
  const lost = results.filter(isUnanswered).map(unansweredRow);
  const unanswered = takeRows(lost, unansweredLine, budget);
  const byVerdict = countsByGroup(results, ({ expected }) => expected);
  const byBasis = countsByGroup(results, ({ basis }) => basis);
  const byBasisWords = countsByGroup(results, ({ basis }) => BASIS_WORDS[basis]);
  const notRun = results.filter(({ reason }) => reason === "notRun").length;
  // On a live service, each test counts again. So the answer does not suggest it there.
  const mayRepeat =
    failure === undefined && notRun === 0 && lost.length > 0 && (target === "sandbox" || environment === "sandbox");
  const nextSteps = [
    failure?.remedy,
    notRun > 0 &&
      failure === undefined &&
      "run smaller suites (eventNames, kinds): there was no time for all tests in one call",
    mayRepeat && `run_event_tests ${JSON.stringify({ suiteId, target })} runs all tests again`,
  ].filter((step) => typeof step === "string");
  const omitted = all.length - mismatches.length;
  const notes = [
    ...(failure === undefined
      ? []
      : [`${failure.message}; this ended the tests after other test events had been sent`]),
    ...(notSaved === undefined ? [] : [`the report was not saved: ${plain(notSaved)}`]),
    ...(isUnstored
      ? ["the report was not stored in time: the store is slow or fails, or your share of it is full"]
      : []),
    ...notesOf(report),
    ...(shownBefore === undefined
      ? []
      : [`inspect_events now counts these test events too; with "since":"${shownBefore}" it counts only later events`]),
    ...basisNote(results.map(({ basis }) => basis)),
  ];
  const reportUri = isUnstored ? undefined : suiteReportUri(suiteId);
  return renderAnswer(
    {
      environment,
      suiteId,
      target,
      approval,
      ...counts,
      ...(notRun > 0 && { notRun }),
      byVerdict,
      byBasis,
      mismatches,
      ...(notes.length > 0 && { notes }),
      ...(omitted > 0 && { mismatchesOmitted: omitted }),
      ...(lost.length > 0 && { unanswered }),
      resourceUri: suiteUri(suiteId),
      reportUri,
      savedTo,
      ...(nextSteps.length > 0 && { nextSteps }),
    },
    [
      `${many(counts.cases, "test")} against target ${target} (${environment}): ${resultWords(counts)}${notRun > 0 ? ` (${notRun} not run)` : ""}.`,
      ...approvalLines(approval),
      `By expected verdict: ${countsText(byVerdict)}. By how the verdict is known: ${countsText(byBasisWords)}.`,
      ...notes.map((note) => `${note}.`),
      ...(mismatches.length > 0 ? ["Not as expected:", fenced(mismatches.map(mismatchLine))] : []),
      omitted > 0 && `(${omitted} more)`,
      ...(lost.length > 0 ? ["Without a usable answer:", fenced(unanswered.map(unansweredLine))] : []),
      lost.length > unanswered.length && `(${lost.length - unanswered.length} more)`,
      `The suite: ${suiteUri(suiteId)}${reportUri === undefined ? "" : `, the report on every case: ${reportUri}`}`,
      savedTo !== undefined && `The report is saved to ${quoteUntrusted(savedTo)}`,
      ...nextSteps.map((step) => `Next: ${step}`),
    ],
  );
}

function resultWords({ cases, matched, mismatched, unobservable }: Omit<SuiteReport, "results">): string {
  if (matched === cases) return "all as expected";
  const parts = [
    `${matched} as expected`,
    mismatched > 0 && `${mismatched} not`,
    unobservable > 0 && `${unobservable} whose verdict cannot be seen`,
  ];
  return parts.filter((part) => part !== false).join(", ");
}

type StatusCounts = Partial<Record<CaseResult["status"], number>>;

function countsByGroup(results: readonly CaseResult[], groupOf: (result: CaseResult) => string) {
  const groups: Record<string, StatusCounts> = {};
  for (const result of results) {
    const counts = groups[groupOf(result)] ?? {};
    groups[groupOf(result)] = { ...counts, [result.status]: (counts[result.status] ?? 0) + 1 };
  }
  return groups;
}

const STATUS_WORDS = [
  ["matched", "as expected"],
  ["mismatched", "not as expected"],
  ["unobservable", "cannot be seen"],
] as const;

function countsText(groups: Readonly<Record<string, StatusCounts>>): string {
  const words = (counts: StatusCounts): string =>
    STATUS_WORDS.flatMap(([status, word]) => (counts[status] ? [`${counts[status]} ${word}`] : [])).join(", ");
  return wordsOf(groups, words, "; ");
}

function wordsOf<Value>(
  values: Readonly<Record<string, Value>>,
  words: (value: Value) => string,
  separator: string,
): string {
  const entries = Object.entries(values).map(([name, value]) => `${name} ${words(value)}`);
  return entries.join(separator);
}

type Mismatch = ReturnType<typeof mismatchRow>;

function mismatchRow({ id, title, expected, basis, rule, observed, events, finding }: CaseResult) {
  return {
    id: cutText(id, LONGEST),
    title: cutText(title, LONGEST),
    expected,
    basis,
    ...(rule !== undefined && { rule }),
    observed,
    ...defined({ events }),
    ...(finding !== undefined && { finding: cutText(plain(finding), LONGEST) }),
  };
}

function mismatchLine({ id, title, expected, basis, rule, observed, events, finding }: Mismatch): string {
  const known = BASIS_WORDS[basis];
  const why = rule === undefined ? known : `${known}, ${rule}`;
  return `${quoteUntrusted(id)} ${quoteUntrusted(title)}: expected ${expected} (${why}), observed ${observed}${eventsWords(events)}${finding === undefined ? "" : `: ${finding}`}`;
}

function unansweredRow({ id, title, expected, reason, statusCode, said, events }: CaseResult) {
  const answer = defined({ statusCode, events, said: said === undefined ? undefined : cutText(plain(said), LONGEST) });
  return { id: cutText(id, LONGEST), title: cutText(title, LONGEST), expected, reason, ...answer };
}

function unansweredLine(row: ReturnType<typeof unansweredRow>): string {
  const { id, title, expected, said, events } = row;
  const words = said === undefined ? "" : `; it says ${quoteUntrusted(said)}`;
  return `${quoteUntrusted(id)} ${quoteUntrusted(title)}: expected ${expected}; ${unansweredWords(row)}${eventsWords(events)}${words}`;
}

function unansweredWords({ reason, statusCode }: ReturnType<typeof unansweredRow>): string {
  if (reason === "notSent") return "the service could not be reached";
  const answer = statusCode === undefined ? "no answer came" : `the service answered with status ${statusCode}`;
  if (reason === "answerLost") return `${answer}; the event may have been recorded`;
  const isError = statusCode !== undefined && statusCode >= 300;
  return isError
    ? `${answer}; the event was not recorded`
    : `${answer}, but the message is neither "ok" nor "!invalid"`;
}

const LONGEST = 200;

function notesOf({ results }: SuiteReport): readonly string[] {
  const uncertain = results.filter(({ status, expected }) => status === "matched" && expected === "uncertain").length;
  const accepted = results.some(({ status, observed }) => status === "unobservable" && observed === "accepted");
  const accept = uncertain === 1 ? "accepts" : "accept";
  const unanswered = results.filter(isUnanswered).length;
  return [
    unanswered > 0 && `${amount(unanswered, "case")} got no usable answer, which the JUnit report counts as errors`,
    accepted && "the service answers ok to recorded and to ignored events: only a sandbox shows the difference",
    uncertain > 0 &&
      `${amount(uncertain, "case")} that ended as expected ${accept} any result, because the documents do not state it`,
  ].filter((note) => note !== false);
}

/** The maximum tokens of the first lines of a file, which are in an answer twice: as data and as text. */
const PREVIEW_TOKENS = 1100;
const LINE_LETTERS = 160;

export function previewOf(file: string): string {
  const lines: string[] = [];
  let left = PREVIEW_TOKENS;
  for (const whole of file.slice(0, PREVIEW_TOKENS * 10).split("\n")) {
    const line = cutText(whole, LINE_LETTERS);
    left -= tokensOf(JSON.stringify(line)) + 1;
    if (left < 0) break;
    lines.push(line);
  }
  return lines.join("\n");
}

const HOW_TO_RUN = {
  json: "run_event_tests takes it as file.",
  vitest: "If vitest is installed and the name ends in .test.ts or .spec.ts, npx vitest run runs it.",
  playwright:
    "If @playwright/test is installed and the name ends in .spec.ts, npx playwright test runs it. Set PAGE_URL, and " +
    "EXPECTED_EVENTS so that a missing event fails.",
  curl: "sh runs it.",
} as const satisfies Record<SuiteFormat, string>;

const SERVICE_TESTS =
  "It tests the service, not the app, in a sandbox that it starts itself. To test another service, set EVENT_API_URL.";

/** Returns the note that the generated file tests a page, and that it does not contain the cases of the suite. */
export function pageTestNote(cases: number): string {
  return `the file opens a page and checks the events that the page itself sends; it does not contain the ${many(cases, "case")} of the suite, and kinds, uid and seed do not change it`;
}

interface GeneratedSuite extends ReturnType<typeof contentsOf> {
  readonly suiteId: string;
  readonly resourceUri: string;
  readonly format: SuiteFormat;
  readonly notes?: readonly string[];
  readonly target?: string;
  readonly savedTo?: string;
  readonly note?: string;
  readonly preview: string;
}

export function suiteText(suite: GeneratedSuite): string {
  const { suiteId, resourceUri, format, cases, byKind, byVerdict, byBasis, target, savedTo, note, preview } = suite;
  const { notes = [] } = suite;
  const counted = (counts: Readonly<Record<string, number>>): string => wordsOf(counts, String, ", ");
  const known = BASES.flatMap((basis) => (byBasis[basis] ? [`${BASIS_WORDS[basis]} ${byBasis[basis]}`] : []));
  return [
    `${cases} ${cases === 1 ? "event test" : "event tests"}, suite ${suiteId}: ${counted(byKind)}.`,
    ...(note === undefined ? [] : [`${capitalized(note)}.`]),
    `Expected verdicts of ${note === undefined ? "its" : "the suite's"} cases: ${counted(byVerdict)}; how they are known: ${known.join(", ")}.`,
    ...notes.map((one) => `${one}.`),
    ...(savedTo === undefined ? [] : [`Saved to ${quoteUntrusted(savedTo)}. ${HOW_TO_RUN[format]}`]),
    ...(target === undefined
      ? []
      : [`It checks what the page sends to the sandbox at ${target}. To use another address, set EVENT_API_URL.`]),
    ...(format === "vitest" || format === "curl" ? [SERVICE_TESTS] : []),
    `The whole file (${format}) is the resource ${resourceUri}; it begins:`,
    fenced(preview.split("\n").map(escapeInvisible)),
    `Next: run_event_tests {"suiteId":"${suiteId}"} runs ${note === undefined ? "them" : "the suite's cases"} against a sandbox.`,
  ].join("\n");
}
