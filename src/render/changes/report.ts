import type { PlannedRequest } from "../../changes/rows/entries.ts";
import { amount } from "../../platform/text.ts";
import { type Approval, approvalLines } from "../approval.ts";
import { type VerdictRow, verdictLine } from "../events/event-report.ts";
import { type FailureForm, failureRow, type ToldFailure } from "../failures/failures.ts";
import { OPERATION_WORDS } from "../failures/messages.ts";
import { many } from "../failures/words.ts";
import { fenced, MARKS_MEAN, shown } from "../fence.ts";
import { tokensOf } from "../page.ts";
import type { Row } from "../row.ts";
import { sheetNotes } from "../sheet-words.ts";
import {
  countsNote,
  headline,
  nearNote,
  reportedApproval,
  resumedNote,
  ringsNote,
  rowsNote,
  takenNote,
  unansweredNote,
  unreadNote,
} from "./headline.ts";
import { endNotes, nextStepsOf } from "./next-steps.ts";
import type { ReportedRun } from "./reported-run.ts";
import { resultRow } from "./result-rows.ts";

/** What an answer about a write may hold in all, data and text together. */
const REPORT_TOKENS = 2500;
/** Room for the fields and sentences that every report has. */
const AROUND_TOKENS = 500;
/** Room for what is said of a confirmation beside its effect: how it is used, and its token three times. */
const CONFIRMATION_TOKENS = 300;
/** Of verdicts, and requests of a plan. */
const MOST_GROUPS = 10;
const MOST_GROUPS_BESIDE_PAGE = 3;
/** Every reason is told, up to so many. */
const MOST_REASONS = 25;
const MOST_RESULTS = 50;

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
  const around = AROUND_TOKENS + (run.confirmation === undefined ? 0 : CONFIRMATION_TOKENS);
  const budget = { left: REPORT_TOKENS - around - 2 * said };
  const told = { nextSteps, notes, approval: reportedApproval(run), ...sectionsOf(run, budget) };
  return { structured: structuredOf(run, told), text: textOf(run, told), isError: isError(run) };
}

/** The parts of a report that are told as far as they fit. */
function sectionsOf(run: ReportedRun, budget: { left: number }) {
  const { page, verdicts = [], plan = [] } = run;
  const most = page === undefined ? MOST_GROUPS : MOST_GROUPS_BESIDE_PAGE;
  const eventPlan = eventPlanRows(run);
  const failures = failureRows(run.failures.slice(0, MOST_REASONS), budget, run.confirmation !== undefined);
  const requests = takeWhileItFits([...plan.slice(0, MOST_GROUPS).map(planRow), ...eventPlan], budget);
  const judged = takeWhileItFits(verdicts.slice(0, most).map(verdictRow), budget);
  const rows = run.results.map(resultRow);
  const results = page === undefined ? takeWhileItFits(rows.slice(0, MOST_RESULTS), budget) : rows;
  const matching = results.length > 0 ? (page?.matching ?? run.counts.items) : 0;
  return {
    plan: sectionOf(requests, plan.length + eventPlan.length),
    failures: sectionOf(failures, run.failures.length),
    verdicts: sectionOf(judged, verdicts.length),
    results: sectionOf(results, matching),
  };
}

/** Rows that fit, and how many more there are. */
interface Section {
  readonly rows: readonly Row[];
  readonly omitted: number;
}

function sectionOf(rows: readonly Row[], all: number): Section {
  return { rows, omitted: all - rows.length };
}

type Told = ReturnType<typeof sectionsOf> & {
  readonly nextSteps: readonly string[];
  readonly notes: readonly string[];
  readonly approval: Approval | undefined;
};

function structuredOf(run: ReportedRun, told: Told): RenderedReport["structured"] {
  const { plan } = told;
  return {
    environment: run.environment,
    ...(run.runId !== undefined && { runId: run.runId }),
    tool: run.tool,
    status: run.status,
    counts: run.counts,
    ...(run.requests !== undefined && { requests: run.requests }),
    ...sectionData("failures", told.failures),
    ...sectionData("results", told.results),
    ...(run.runId !== undefined && { resultsUri: resultsUri(run.runId) }),
    ...(run.hasRejects && { rejectsUri: `targeting://runs/${run.runId}/rejects` }),
    ...(told.approval !== undefined && { approval: told.approval }),
    ...(run.totals !== undefined && { totals: run.totals }),
    ...(plan.omitted > 0 && { plan: [] }),
    ...sectionData("plan", plan),
    ...sectionData("verdicts", told.verdicts),
    ...(run.confirmation !== undefined && { confirmation: run.confirmation }),
    ...(run.blocked !== undefined && { blocked: run.blocked }),
    ...(run.stale !== undefined && { stale: run.stale }),
    ...(told.notes.length > 0 && { notes: told.notes }),
    ...(told.nextSteps.length > 0 && { nextSteps: told.nextSteps }),
    ...(run.page?.cursor !== undefined && { cursor: run.page.cursor }),
  };
}

function sectionData(name: string, { rows, omitted }: Section): Readonly<Record<string, unknown>> {
  return {
    ...(rows.length > 0 && { [name]: rows.map(({ data }) => data) }),
    ...(omitted > 0 && { [`${name}Omitted`]: omitted }),
  };
}

/** What is skipped by choice has not failed. */
function failuresTitle({ failures }: ReportedRun): string {
  return failures.every(({ outcome }) => outcome === "skipped") ? "What was skipped:" : "What did not succeed:";
}

function textOf(run: ReportedRun, told: Told): string {
  const { plan, failures, verdicts, results, notes, approval } = told;
  const more = `more${run.runId === undefined ? "" : `, all at ${resultsUri(run.runId)}`}`;
  const lines = [
    headline(run),
    ...approvalLines(approval),
    ...(run.blocked === undefined ? [] : [blockedText(run.blocked)]),
    // A note that ends with foreign text ends with its mark.
    ...notes.map((note) => (note.endsWith(">") ? `Note: ${note}` : `Note: ${note}.`)),
    ...(run.confirmation === undefined ? [] : [confirmationText(run.confirmation)]),
    ...sectionText(failuresTitle(run), failures, "more reasons"),
    ...sectionText("Verdicts:", verdicts, "more kinds"),
    ...sectionText("Requests:", plan, "more"),
    ...sectionText("Results:", results, more),
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
    ...endNotes(run),
    ...unansweredNote(run),
    ...sheetNotes(run.file),
    ...(run.rows === undefined ? [] : rowsNote(run.rows)),
    ...takenNote(run),
    ...nearNote(run),
    ...countsNote(run),
    ...unreadNote(run),
    ...resumedNote(run),
    ...ringsNote(run),
  ];
}

/** Why the server that answers may not execute a run. */
export function blockedText({ message, remedy }: NonNullable<ReportedRun["blocked"]>): string {
  return `It cannot go on here: ${message}. ${remedy}`;
}

function resultsUri(runId: string): string {
  return `targeting://runs/${runId}/results`;
}

function totalsWords({ targetingId, name, optionCount }: NonNullable<ReportedRun["totals"]>): string {
  return `The targeting ${shown(name)} (${targetingId}) has ${many(optionCount, "option")} now.`;
}

/** How fully a failure is told, from the fullest form to the shortest. */
const FAILURE_FORMS: readonly FailureForm[] = [
  ...[20, 10, 5, 2, 0].map((details) => ({ details })),
  { details: 0, places: 3, isBare: true },
  { details: 0, places: 1, isBare: true, tokens: 30 },
  { details: 0, places: 1, isBare: true, tokens: 12 },
];
/** What a failure may take beyond its shortest form, of the room that is left. */
const DETAILS_SHARE = 0.6;

/**
 * Every failure, each as fully as leaves room for the others: what is cut are examples. Reasons are left out only where
 * they may be (`mayCut`), beside the effect that a person has to see whole.
 */
function failureRows(failures: readonly ToldFailure[], budget: { left: number }, mayCut: boolean): readonly Row[] {
  const forms = failures.map((failure) => FAILURE_FORMS.map((form) => failureRow(failure, form)));
  // The fullest of the short forms with which all of them fit.
  const [least = -1] = [-3, -2].filter((at) => sum(forms.map((rows) => costOf(rows.at(at)))) <= budget.left);
  let needed = sum(forms.map((rows) => costOf(rows.at(least))));
  return forms.flatMap((rows) => {
    const short = rows.at(least);
    needed -= costOf(short);
    const room = (budget.left - needed) * DETAILS_SHARE;
    const row = rows.slice(0, FAILURE_FORMS.length + least).find((fuller) => costOf(fuller) <= room) ?? short;
    if (row === undefined || (mayCut && costOf(row) > budget.left)) return [];
    budget.left -= costOf(row);
    return row;
  });
}

function sum(costs: readonly number[]): number {
  return costs.reduce((total, cost) => total + cost, 0);
}

function costOf(row: Row | undefined): number {
  if (row === undefined) return 0;
  const { data, line } = row;
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

function sectionText(title: string, { rows, omitted }: Section, more: string): readonly string[] {
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

/** The call that goes on once a person has agreed. */
export function confirmationStep(tool: string, token: string, runId?: string): string {
  const run = runId === undefined ? "" : `runId ${runId} and `;
  return `show the effect to the person; once they have agreed, call ${tool} with ${run}confirmation ${token}`;
}

/** `isError` is for answers in which nothing good happened. */
function isError({ status, counts }: ReportedRun): boolean {
  return status === "failed" || (status === "unknown" && counts.succeeded + counts.alreadyDone === 0);
}
