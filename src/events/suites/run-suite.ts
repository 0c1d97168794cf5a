import {
  AmbiguousError,
  type ApiError,
  BusyError,
  isApiError,
  NotSentError,
  problemOf,
  RejectedError,
} from "../../api/errors.ts";
import type { EventAnswer, EventApi } from "../../api/events.ts";
import { defined } from "../../platform/by-key.ts";
import type { Clock } from "../../platform/clock.ts";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import { BASIS_WORDS, type Verdict } from "../catalogue.ts";
import { runEndOf } from "../run/verdicts.ts";
import { type CaseResult, type EventCase, type EventSuite, eventsOf, type SuiteReport } from "./suite.ts";

type CaseStatus = CaseResult["status"];

export interface RunSuiteOptions {
  readonly api: EventApi;
  readonly clock: Clock;
  /** Returns the sandbox's verdict on an event that was just sent. Absent for a live service. */
  readonly observe?: ((event: Readonly<Record<string, unknown>>) => Promise<Verdict | undefined>) | undefined;
  /** Explains the verdict on an event. The report contains this if the verdict is not the expected one. */
  readonly explain?: (event: unknown) => string | undefined;
  /** If aborted, the remaining cases are not run, and are `unobservable`. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (done: number, cases: number) => void;
}

type Observation = Pick<CaseResult, "observed" | "reason" | "statusCode" | "said">;

interface ObservedEvent extends Observation {
  readonly event: Readonly<Record<string, unknown>>;
}

const CONCURRENCY = 8;
const BUSY_ATTEMPTS = 20;
const BUSY_PAUSE_MS = 50;

interface SuiteRun extends RunSuiteOptions {
  /** Whether the service has answered, or may have received, an event that did not end the run. */
  hasOtherResults: boolean;
  /** The error that ended the run. */
  ended?: ApiError;
}

/**
 * Runs a suite, several cases at the same time. The events of a case are sent in order. An error that concerns all
 * cases, such as an invalid key, ends the run. It is thrown if no other event was sent.
 */
export async function runSuite({ cases }: EventSuite, options: RunSuiteOptions): Promise<SuiteReport> {
  const run: SuiteRun = { ...options, hasOtherResults: false };
  const results: CaseResult[] = [];
  let begun = 0;
  let done = 0;
  const worker = async (): Promise<void> => {
    for (let index = begun++; index < cases.length; index = begun++) {
      const one = cases[index];
      if (one === undefined) return;
      results[index] = await runCase(one, run);
      done += 1;
      options.onProgress?.(done, cases.length);
    }
  };
  const stopAll = (): void => {
    begun = cases.length;
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, () => worker().finally(stopAll)));
  const { ended, hasOtherResults } = run;
  if (ended !== undefined && !hasOtherResults) throw ended;
  const count = (status: CaseStatus) => results.filter((result) => result.status === status).length;
  const counts = { matched: count("matched"), mismatched: count("mismatched"), unobservable: count("unobservable") };
  return { cases: results.length, ...counts, results, ...(ended !== undefined && { ended: problemOf(ended) }) };
}

async function runCase(one: EventCase, run: SuiteRun): Promise<CaseResult> {
  const { id, title, kind, expected, basis, rule } = one;
  const startedAt = run.clock.now();
  const observations: ObservedEvent[] = [];
  for (const event of eventsOf(one)) observations.push({ ...(await observeEvent(event, run)), event });
  const { event, ...telling } = decisiveObservation(expected, observations);
  const status = statusOf(expected, telling.observed);
  const isAlike = (one: Observation): boolean =>
    statusOf(expected, one.observed) === status && isUnanswered(one) === isUnanswered(telling);
  const events = observations.flatMap((one, at) => (isAlike(one) ? [at + 1] : []));
  const finding = status === "mismatched" ? run.explain?.(event) : undefined;
  return {
    id,
    title,
    kind,
    expected,
    basis,
    ...(rule !== undefined && { rule }),
    ...telling,
    status,
    ...(kind === "sequence" && status !== "matched" && { events }),
    ...(finding !== undefined && { finding }),
    milliseconds: run.clock.now() - startedAt,
  };
}

/**
 * Returns the observation that decides the result of a case. The order: a mismatch, no usable answer, unobservable. If
 * all events matched, it is the first one.
 */
function decisiveObservation(
  expected: Verdict,
  observations: readonly ObservedEvent[],
): Observation & Partial<ObservedEvent> {
  const withStatus = (status: CaseStatus) =>
    observations.find(({ observed }) => statusOf(expected, observed) === status);
  return (
    withStatus("mismatched") ?? observations.find(isUnanswered) ?? withStatus("unobservable") ?? observations[0] ?? {}
  );
}

function statusOf(expected: Verdict, observed: CaseResult["observed"]): CaseStatus {
  if (observed === undefined) return "unobservable";
  if (observed === "accepted") return expected === "rejected" ? "mismatched" : "unobservable";
  // If the expected verdict is uncertain, every verdict is correct.
  return expected === "uncertain" || expected === observed ? "matched" : "mismatched";
}

async function observeEvent(event: Readonly<Record<string, unknown>>, run: SuiteRun): Promise<Observation> {
  const { api, clock, signal } = run;
  if (signal?.aborted === true || run.ended !== undefined) return { reason: "notRun" };
  try {
    const { message, statusCode } = await sendPatiently(api, clock, JSON.stringify(event), signal);
    run.hasOtherResults = true;
    const kept = await verdictOn(event, run);
    if (kept !== undefined) return { observed: kept };
    if (message === EVENT_MESSAGES.invalid) return { observed: "rejected" };
    if (message === EVENT_MESSAGES.ok) return { observed: "accepted" };
    return { reason: "answerNotUnderstood", statusCode, ...defined({ said: message }) };
  } catch (error) {
    if (error === signal?.reason) return { reason: "notRun" };
    if (!isApiError(error)) throw error;
    const isOfOne = error instanceof RejectedError && runEndOf(error) === undefined;
    const isLost = error instanceof AmbiguousError;
    if (isOfOne || isLost) run.hasOtherResults = true;
    else run.ended ??= error;
    const { statusCode } = error;
    const answer = defined({ statusCode, said: "messages" in error ? error.messages[0] : undefined });
    if (isLost) return { reason: "answerLost", ...answer };
    return { reason: error instanceof NotSentError ? "notSent" : "answerNotUnderstood", ...answer };
  }
}

/** Returns the sandbox's verdict on an event that was answered. Undefined if it cannot be read. */
async function verdictOn(event: Readonly<Record<string, unknown>>, run: SuiteRun): Promise<Verdict | undefined> {
  try {
    return await run.observe?.(event);
  } catch (error) {
    if (!isApiError(error)) throw error;
    if (!(error instanceof AmbiguousError)) run.ended ??= error;
    return undefined;
  }
}

async function sendPatiently(
  api: EventApi,
  clock: Clock,
  body: string,
  signal: AbortSignal | undefined,
): Promise<EventAnswer> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await api.track(body, signal === undefined ? {} : { signal });
    } catch (error) {
      if (!(error instanceof BusyError) || attempt === BUSY_ATTEMPTS) throw error;
      await clock.sleep(Math.max(BUSY_PAUSE_MS, error.retryAfterMs), signal);
    }
  }
}

/** Returns a report as JUnit XML. Cases without a usable answer are errors. Other unobservable cases are skipped. */
export function junitXml(report: SuiteReport, name: string): string {
  const { cases, mismatched, unobservable, results } = report;
  const time = seconds(results.reduce((sum, { milliseconds }) => sum + milliseconds, 0));
  const errors = results.filter(isUnanswered).length;
  const counts = `tests="${cases}" failures="${mismatched}" errors="${errors}" skipped="${unobservable - errors}" time="${time}"`;
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${counts}>`,
    `  <testsuite name="${escaped(name)}" ${counts}>`,
    ...results.map(testCase),
    "  </testsuite>",
    "</testsuites>",
    "",
  ].join("\n");
}

function testCase(result: CaseResult): string {
  const { id, title, kind, milliseconds } = result;
  const head = `    <testcase classname="${escaped(kind)}" name="${escaped(`${id}: ${title}`)}" time="${seconds(milliseconds)}"`;
  const outcome = outcomeOf(result);
  return outcome === undefined ? `${head}/>` : `${head}>\n      ${outcome}\n    </testcase>`;
}

/** Returns whether an event of a case got no usable answer, for instance because the service failed. */
export function isUnanswered({ reason }: Pick<CaseResult, "reason">): boolean {
  return reason !== undefined && reason !== "notRun";
}

function outcomeOf(result: CaseResult): string | undefined {
  const { status, expected, basis, observed, reason, statusCode, events, finding } = result;
  const answer = statusCode === undefined ? "" : ` (status ${statusCode})`;
  const seen = `${observed ?? reason ?? "nothing"}${answer}${eventsWords(events)}${finding === undefined ? "" : `: ${finding}`}`;
  const message = escaped(`expected ${expected} (${BASIS_WORDS[basis]}), seen: ${seen}`);
  if (status === "mismatched") return `<failure type="mismatch" message="${message}"/>`;
  if (isUnanswered(result)) return `<error type="noAnswer" message="${message}"/>`;
  return status === "unobservable" ? `<skipped message="${message}"/>` : undefined;
}

/** Returns which events of a sequence a result is about. Empty for other cases. */
export function eventsWords([first, ...others]: readonly number[] = []): string {
  if (first === undefined) return "";
  const more = others.length === 0 ? "" : `; also ${others.length === 1 ? "event" : "events"} ${others.join(", ")}`;
  return ` (event ${first} of the sequence${more})`;
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(3);
}

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "\t": "&#9;",
  "\n": "&#10;",
  "\r": "&#13;",
};

/** Escapes a text for XML. Characters that XML does not allow become U+FFFD. */
function escaped(text: string): string {
  return text
    .replace(/[&<>"\t\n\r]/g, (letter) => ENTITIES[letter] ?? letter)
    .replace(/[^\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu, "\u{FFFD}");
}
