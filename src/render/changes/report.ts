import type { PlannedRequest } from "../../changes/rows/entries.ts";
import { amount, thousands } from "../../platform/thousands.ts";
import { type AskedOrDeclined, askedWords } from "../asked.ts";
import { type VerdictRow, verdictLine } from "../events/event-report.ts";
import { failureRow, type ToldFailure } from "../failures/failures.ts";
import { OPERATION_WORDS } from "../failures/messages.ts";
import { fenced, MARKS_MEAN, shown } from "../fence.ts";
import { tokensOf } from "../page.ts";
import type { Row } from "../row.ts";
import { askedOf, countsNote, headline, resumedNote, ringsNote, rowsNote, takenNote, unreadNote } from "./headline.ts";
import { nextStepsOf } from "./next-steps.ts";
import type { ReportedRun } from "./reported-run.ts";
import { resultRow } from "./result-rows.ts";

/** What an answer about a write may hold in all, data and text together. */
const REPORT_TOKENS = 2500;
/** Room for the fields and sentences that every report has. */
const AROUND_TOKENS = 500;
const MOST_FAILURES = 10;
const MOST_FAILURES_BESIDE_PAGE = 3;
const MOST_RESULTS = 50;
const MOST_PLANNED = 10;
const MOST_VERDICTS = 10;

/** An answer as data and as text, which say the same. */
export interface RenderedReport {
  readonly structured: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isError: boolean;
}

/**
 * Tells a run within 2,500 tokens, however many items it has: counts,
 * failures grouped by reason with message and remedy, the results that say most, and what to do next.
 */
export function renderReport(run: ReportedRun): RenderedReport {
  const nextSteps = nextStepsOf(run);
  const notes = notesOf(run);
  const said = tokensOf([...nextSteps, ...notes, run.confirmation?.effect ?? "", run.totals?.name ?? ""].join(" "));
  const budget = { left: REPORT_TOKENS - AROUND_TOKENS - 2 * said };
  const told = { nextSteps, notes, asked: askedOf(run), ...sectionsOf(run, budget) };
  return { structured: structuredOf(run, told), text: textOf(run, told), isError: isError(run) };
}

/** The parts of a report that are told as far as they fit. */
function sectionsOf(run: ReportedRun, budget: { left: number }) {
  const isPage = run.page !== undefined;
  const requests = [...(run.plan ?? []).slice(0, MOST_PLANNED).map(planRow), ...eventPlanRows(run)];
  const plan = requests.length > 0 ? takeWhileItFits(requests, budget) : undefined;
  const failures = failureRows(run.failures.slice(0, isPage ? MOST_FAILURES_BESIDE_PAGE : MOST_FAILURES), budget);
  const mostVerdicts = isPage ? MOST_FAILURES_BESIDE_PAGE : MOST_VERDICTS;
  const verdicts = takeWhileItFits((run.verdicts ?? []).slice(0, mostVerdicts).map(verdictRow), budget);
  const rows = run.results.map(resultRow);
  const results = isPage ? rows : takeWhileItFits(rows.slice(0, MOST_RESULTS), budget);
  return {
    plan,
    planOmitted: (run.plan?.length ?? 0) + eventPlanRows(run).length - (plan?.length ?? 0),
    failures,
    failuresOmitted: run.failures.length - failures.length,
    verdicts,
    verdictsOmitted: (run.verdicts?.length ?? 0) - verdicts.length,
    results,
    resultsOmitted: results.length > 0 ? (run.page?.matching ?? run.counts.items) - results.length : 0,
  };
}

type Told = ReturnType<typeof sectionsOf> & {
  readonly nextSteps: readonly string[];
  readonly notes: readonly string[];
  readonly asked: AskedOrDeclined | undefined;
};

function structuredOf(run: ReportedRun, told: Told): RenderedReport["structured"] {
  const data = (rows: readonly Row[]) => rows.map((row) => row.data);
  const { plan, failures, verdicts, results } = told;
  return {
    environment: run.environment,
    ...(run.runId !== undefined && { runId: run.runId }),
    tool: run.tool,
    status: run.status,
    counts: run.counts,
    ...(run.requests !== undefined && { requests: run.requests }),
    ...(failures.length > 0 && { failures: data(failures) }),
    ...(told.failuresOmitted > 0 && { failuresOmitted: told.failuresOmitted }),
    ...(results.length > 0 && { results: data(results) }),
    ...(told.resultsOmitted > 0 && { resultsOmitted: told.resultsOmitted }),
    ...(run.runId !== undefined && { resultsUri: resultsUri(run.runId) }),
    ...(run.hasRejects && { rejectsUri: `targeting://runs/${run.runId}/rejects` }),
    ...(told.asked !== undefined && { asked: told.asked }),
    ...(run.totals !== undefined && { totals: run.totals }),
    ...(plan !== undefined && { plan: data(plan) }),
    ...(told.planOmitted > 0 && { planOmitted: told.planOmitted }),
    ...(verdicts.length > 0 && { verdicts: data(verdicts) }),
    ...(told.verdictsOmitted > 0 && { verdictsOmitted: told.verdictsOmitted }),
    ...(run.confirmation !== undefined && { confirmation: run.confirmation }),
    ...(run.stale !== undefined && { stale: run.stale }),
    ...(told.notes.length > 0 && { notes: told.notes }),
    ...(told.nextSteps.length > 0 && { nextSteps: told.nextSteps }),
    ...(run.page?.cursor !== undefined && { cursor: run.page.cursor }),
  };
}

function textOf(run: ReportedRun, told: Told): string {
  const { plan = [], failures, verdicts, results, notes, asked } = told;
  const more = `more${run.runId === undefined ? "" : `, all at ${resultsUri(run.runId)}`}`;
  const lines = [
    headline(run),
    ...(asked === undefined ? [] : [askedWords(asked)]),
    ...notes.map((note) => `Note: ${note}.`),
    ...(run.confirmation === undefined ? [] : [confirmationText(run.confirmation)]),
    ...section("What did not succeed:", failures, told.failuresOmitted, "more reasons"),
    ...section("Verdicts:", verdicts, told.verdictsOmitted, "more kinds"),
    ...section("Requests:", plan, told.planOmitted, "more"),
    ...section("Results:", results, told.resultsOmitted, more),
    ...(run.totals === undefined ? [] : [totalsWords(run.totals)]),
    ...(run.page?.cursor === undefined ? [] : [`There is more: call again with cursor ${run.page.cursor}`]),
    ...told.nextSteps.map((step) => `Next: ${step}`),
  ];
  const [first = "", ...rest] = lines;
  // What the marks mean is said once, where there are any.
  const marked = rest.some((line) => line.includes("</data-"));
  return [marked ? first + MARKS_MEAN : first, ...rest].join("\n");
}

function notesOf(run: ReportedRun): readonly string[] {
  return [
    ...(run.notes ?? []),
    ...(run.rows === undefined ? [] : rowsNote(run.rows)),
    ...takenNote(run),
    ...countsNote(run),
    ...unreadNote(run),
    ...resumedNote(run),
    ...ringsNote(run),
  ];
}

function resultsUri(runId: string): string {
  return `targeting://runs/${runId}/results`;
}

function totalsWords({ targetingId, name, optionCount }: NonNullable<ReportedRun["totals"]>): string {
  const count = `${thousands(optionCount)} ${optionCount === 1 ? "option" : "options"}`;
  return `The targeting ${shown(name)} (${targetingId}) has ${count} now.`;
}

/** How many of a failure's details are told, where there is room for so many. */
const DETAILS_TOLD = [20, 10, 5, 2] as const;
/** What details may take of the room that is left. */
const DETAILS_SHARE = 0.6;

/** As many failures as there is room for, each with as many details as leave room for others. */
function failureRows(failures: readonly ToldFailure[], budget: { left: number }): readonly Row[] {
  const rows: Row[] = [];
  for (const failure of failures) {
    const most = DETAILS_TOLD.find((some) => costOf(failureRow(failure, some)) <= budget.left * DETAILS_SHARE) ?? 0;
    const taken = takeWhileItFits([failureRow(failure, most)], budget);
    if (taken.length === 0) break;
    rows.push(...taken);
  }
  return rows;
}

function costOf({ data, line }: Row): number {
  return tokensOf(JSON.stringify(data)) + tokensOf(line);
}

function takeWhileItFits(rows: readonly Row[], budget: { left: number }): readonly Row[] {
  const taken: Row[] = [];
  for (const row of rows) {
    const cost = costOf(row);
    if (cost > budget.left) break;
    budget.left -= cost;
    taken.push(row);
  }
  return taken;
}

function verdictRow(verdict: VerdictRow): Row {
  return { data: { ...verdict }, line: verdictLine(verdict) };
}

function planRow(request: PlannedRequest): Row {
  const { operation, items, contextIds, bytes } = request;
  return {
    data: { operation, items, bytes, contextIds },
    line: `- ${OPERATION_WORDS[operation]}: ${amount(items, "item")}, ${amount(contextIds, "Context ID")}, ${amount(bytes, "byte")}`,
  };
}

function eventPlanRows({ eventRequests }: ReportedRun): readonly Row[] {
  if (eventRequests === undefined) return [];
  const { items, bytes } = eventRequests;
  return [
    {
      data: { operation: "trackEvent", items, requests: items, bytes },
      line: `- send events: ${amount(items, "item")}, ${amount(items, "request")}, ${amount(bytes, "byte")}`,
    },
  ];
}

function section(title: string, rows: readonly Row[], omitted: number, more: string): readonly string[] {
  if (rows.length + omitted === 0) return [];
  const shownRows = rows.length > 0 ? [fenced(rows.map(({ line }) => line))] : [];
  return [title, ...shownRows, ...(omitted > 0 ? [`(${omitted} ${more})`] : [])];
}

/** What an agent is to do with a confirmation. */
export function confirmationText({ token, effect, expiresAt }: NonNullable<ReportedRun["confirmation"]>): string {
  if (token === undefined) return `${effect}\nA person decides on the page of this server, until ${expiresAt}.`;
  return [
    effect,
    "Show exactly this effect to the person and wait for their decision; a yes that they gave before to exactly this " +
      `effect counts. Only then call the tool again with nothing but confirmation set to ${token} (valid until ${expiresAt}).`,
  ].join("\n");
}

/** `isError` is for answers in which nothing good happened. */
function isError({ status, counts }: ReportedRun): boolean {
  return status === "failed" || (status === "unknown" && counts.succeeded + counts.alreadyDone === 0);
}
