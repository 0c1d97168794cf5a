import * as z from "zod";
import { AmbiguousError, BusyError, RejectedError } from "../../api/errors.ts";
import type { EventAnswer, EventApi } from "../../api/events.ts";
import type { Clock } from "../../platform/clock.ts";
import { EVENT_MESSAGES } from "../../spec/events.ts";
import type { Verdict } from "../catalogue.ts";
import { runEndOf } from "../run/verdicts.ts";
import { BASES, CASE_KINDS, type EventCase, type EventSuite, eventsOf } from "./suite.ts";

const verdict = z.enum(["recorded", "ignored", "rejected", "uncertain"]);

const caseResult = z.object({
  id: z.string(),
  title: z.string(),
  kind: z.enum(CASE_KINDS),
  expected: verdict,
  basis: z.enum(BASES),
  rule: z.string().exactOptional(),
  /** `unobservable`: nothing that could be seen speaks for or against the expected verdict. */
  status: z.enum(["matched", "mismatched", "unobservable"]),
  /** The verdict seen; `accepted` where the service said `ok`, which it says of ignored events too. */
  observed: z.union([verdict, z.literal("accepted")]).exactOptional(),
  reason: z.enum(["answerLost", "answerNotUnderstood", "notRun"]).exactOptional(),
  milliseconds: z.number(),
});

/** What was expected of a case, and what was seen. */
export type CaseResult = Readonly<z.output<typeof caseResult>>;

/** How a case went. */
type CaseStatus = CaseResult["status"];

/** The form of a report on a suite, as it is kept. */
export const suiteReport = z.object({
  cases: z.number(),
  matched: z.number(),
  mismatched: z.number(),
  unobservable: z.number(),
  results: z.array(caseResult),
});

/** What running a suite gave; `cases` is the sum of the three counts. */
export type SuiteReport = Readonly<z.output<typeof suiteReport>>;

/** What running a suite needs. */
export interface RunSuiteOptions {
  readonly api: EventApi;
  readonly clock: Clock;
  /**
   * Gives the verdict that the sandbox kept for an event that was just sent. Left out for a live service, whose
   * recorded and ignored events cannot be told apart.
   */
  readonly observe?: ((event: Readonly<Record<string, unknown>>) => Promise<Verdict | undefined>) | undefined;
  /** Once aborted no other event is sent; what was not run is unobservable. */
  readonly signal?: AbortSignal;
  /** Called after each case. */
  readonly onProgress?: (done: number, cases: number) => void;
}

type Observation = Pick<CaseResult, "observed" | "reason">;

/** How many cases are run at once. */
const CONCURRENCY = 8;
const BUSY_ATTEMPTS = 20;
const BUSY_PAUSE_MS = 50;

/**
 * Runs the cases of a suite, some at once, as they are: also those that are expected to be ignored or rejected. The
 * events of a case are sent one after another, each once; a lost answer makes its case unobservable. Throws the
 * ApiError that shows that nothing can be tested (not sent, 401, 403, wrong route, busy throughout).
 */
export async function runSuite({ cases }: EventSuite, options: RunSuiteOptions): Promise<SuiteReport> {
  const results: CaseResult[] = [];
  let begun = 0;
  let done = 0;
  const worker = async (): Promise<void> => {
    for (let index = begun++; index < cases.length; index = begun++) {
      const one = cases[index];
      if (one === undefined) return;
      results[index] = await runCase(one, options);
      done += 1;
      options.onProgress?.(done, cases.length);
    }
  };
  await Promise.all(
    Array.from({ length: CONCURRENCY }, () =>
      worker().finally(() => {
        begun = cases.length;
      }),
    ),
  );
  const count = (status: CaseStatus) => results.filter((result) => result.status === status).length;
  return {
    cases: results.length,
    matched: count("matched"),
    mismatched: count("mismatched"),
    unobservable: count("unobservable"),
    results,
  };
}

async function runCase(one: EventCase, options: RunSuiteOptions): Promise<CaseResult> {
  const { id, title, kind, expected, basis, rule } = one;
  const startedAt = options.clock.now();
  const observations: Observation[] = [];
  for (const event of eventsOf(one)) observations.push(await observeEvent(event, options));
  const telling = mostTelling(expected, observations);
  return {
    ...{ id, title, kind, expected, basis },
    ...(rule !== undefined && { rule }),
    ...telling,
    status: statusOf(expected, telling.observed),
    milliseconds: options.clock.now() - startedAt,
  };
}

/** Of several events the one that decides the case: a mismatch, else one of which nothing can be told, else any. */
function mostTelling(expected: Verdict, observations: readonly Observation[]): Observation {
  const withStatus = (status: CaseStatus) =>
    observations.find(({ observed }) => statusOf(expected, observed) === status);
  return withStatus("mismatched") ?? withStatus("unobservable") ?? observations[0] ?? {};
}

/** Compares what was expected with what was seen. */
function statusOf(expected: Verdict, observed: CaseResult["observed"]): CaseStatus {
  if (observed === undefined) return "unobservable";
  if (observed === "accepted") return expected === "rejected" ? "mismatched" : "unobservable";
  // Nothing is predicted of an uncertain event, so whatever becomes of it agrees.
  return expected === "uncertain" || expected === observed ? "matched" : "mismatched";
}

async function observeEvent(
  event: Readonly<Record<string, unknown>>,
  { api, clock, observe, signal }: RunSuiteOptions,
): Promise<Observation> {
  if (signal?.aborted === true) return { reason: "notRun" };
  try {
    const { message } = await sendPatiently(api, clock, JSON.stringify(event), signal);
    const kept = await observe?.(event);
    if (kept !== undefined) return { observed: kept };
    if (message === EVENT_MESSAGES.invalid) return { observed: "rejected" };
    return message === EVENT_MESSAGES.ok ? { observed: "accepted" } : { reason: "answerNotUnderstood" };
  } catch (error) {
    if (error instanceof AmbiguousError) return { reason: "answerLost" };
    if (error === signal?.reason) return { reason: "notRun" };
    if (error instanceof RejectedError && runEndOf(error) === undefined) return { reason: "answerNotUnderstood" };
    throw error;
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
