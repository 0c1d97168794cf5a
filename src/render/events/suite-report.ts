import type { CaseResult, SuiteReport } from "../../events/suites/run-suite.ts";
import { type EventSuite, eventsOf } from "../../events/suites/suite.ts";
import { fenced, plain, shown } from "../fence.ts";
import { rowsThatFit } from "../page.ts";
import { suiteReportUri, suiteUri } from "./suite-reading.ts";

/** What running a suite against a live endpoint would do, for the person who decides. */
export function liveTestsText({ cases }: EventSuite): string {
  const events = cases.flatMap(eventsOf);
  const purchases = events.filter(({ eventName }) => eventName === "purchase").length;
  return (
    `This sends ${events.length} test events to the LIVE event API, ${purchases} of them purchases. What the service ` +
    "records of them counts as conversions and feeds audiences, and cannot be taken back."
  );
}

/** A run of a suite as data and as text, which say the same; mismatches as many as fit. */
export function suiteReportAnswer(run: {
  readonly environment: string;
  readonly suiteId: string;
  readonly target: string;
  readonly report: SuiteReport;
  /** The file that holds the report; or why it was not written. */
  readonly savedTo?: string;
  readonly notSaved?: string;
}) {
  const { environment, suiteId, target, report, savedTo, notSaved } = run;
  const { results, ...counts } = report;
  const all = results.filter(({ status }) => status === "mismatched").map(mismatchRow);
  const mismatches = all.slice(0, rowsThatFit(all, mismatchLine));
  const notRun = results.filter(({ reason }) => reason === "notRun").length;
  const nextSteps = [
    ...(notSaved === undefined ? [] : [`the report was not saved: ${plain(notSaved)}`]),
    ...nextStepsOf(report, notRun),
  ];
  const omitted = all.length - mismatches.length;
  const reportUri = suiteReportUri(suiteId);
  return {
    structured: {
      environment,
      suiteId,
      target,
      ...counts,
      ...(notRun > 0 && { notRun }),
      mismatches,
      ...(omitted > 0 && { mismatchesOmitted: omitted }),
      resourceUri: suiteUri(suiteId),
      reportUri,
      ...(savedTo !== undefined && { savedTo }),
      ...(nextSteps.length > 0 && { nextSteps }),
    },
    text: [
      `${counts.cases} tests against target ${target} (${environment}): ${counts.matched} as expected, ` +
        `${counts.mismatched} not, ${counts.unobservable} that show nothing${notRun > 0 ? ` (${notRun} not run)` : ""}.`,
      ...(mismatches.length > 0 ? ["Not as expected:", fenced(mismatches.map(mismatchLine))] : []),
      ...(omitted > 0 ? [`(${omitted} more)`] : []),
      `The suite: ${suiteUri(suiteId)}, the report on every case: ${reportUri}`,
      ...(savedTo === undefined ? [] : [`The report is saved to ${shown(savedTo)}`]),
      ...nextSteps.map((step) => `Next: ${step}`),
    ].join("\n"),
    isError: false,
  };
}

type Mismatch = ReturnType<typeof mismatchRow>;

function mismatchRow({ id, title, expected, basis, rule, observed }: CaseResult) {
  return { id: cut(id), title: cut(title), expected, basis, ...(rule !== undefined && { rule }), observed };
}

function mismatchLine({ id, title, expected, basis, rule, observed }: Mismatch): string {
  const why = rule === undefined ? basis : `${basis}, ${rule}`;
  return `${shown(id)} ${shown(title)}: expected ${expected} (${why}), observed ${observed}`;
}

const LONGEST = 200;

function cut(text: string): string {
  return text.length <= LONGEST ? text : `${text.slice(0, LONGEST)}…`;
}

function nextStepsOf({ results }: SuiteReport, notRun: number): readonly string[] {
  const accepted = results.some(({ status, observed }) => status === "unobservable" && observed === "accepted");
  return [
    ...(accepted ? ["the service answers ok to recorded and to ignored events: only a sandbox tells them apart"] : []),
    ...(notRun > 0 ? ["the time of one call was over: run smaller suites, by eventNames or kinds"] : []),
  ];
}
