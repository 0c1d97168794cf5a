import type { PlannedRequest } from "../changes/rows/entries.ts";
import { type Approval, approvalLines } from "./approvals.ts";
import {
  ANSWER_TOKENS,
  type Budget,
  fullest,
  type RenderedReport,
  type Row,
  renderAnswer,
  sizeOf,
  takeFittingRows,
  tokensOf,
} from "./budget.ts";
import { shortVerdictRow, type VerdictForm, type VerdictRow, verdictLine } from "./event-messages.ts";
import {
  type FailureForm,
  type FailureRow,
  failureRow,
  OPERATION_WORDS,
  type SummarizedFailure,
  sharedLine,
} from "./failures.ts";
import { withForeignLast } from "./fence.ts";
import { many } from "./message-words.ts";
import { endNotes, isOfEvents, nextStepsOf, rejectsUri } from "./next-steps.ts";
import {
  countsNote,
  elsewhereNote,
  fuzzyMatchNote,
  headline,
  missingIdsNote,
  nearNote,
  reportedApproval,
  resumedNote,
  rowsNote,
  swapsNote,
  unansweredNote,
  unreadNote,
} from "./run-headline.ts";
import type { ReportedRun } from "./run-results.ts";
import { changeLines, resultRow } from "./run-results.ts";
import { bareNote, joinedNote, sheetNotes, undoFirstNote } from "./sheets.ts";

/** The tokens of headings, marks of foreign text, and lines that say how much was omitted. */
const AROUND_TOKENS = 150;
/** By how many tokens an answer with a page of rows may be longer, without the rows. */
const BESIDE_ROWS_TOKENS = 600;
const MAX_GROUPS = 10;
const MAX_REASONS = 25;
const MAX_RESULTS = 50;
/** For each reason, how many results an answer shows. The failures in the answer contain the total for each reason. */
const MAX_OF_A_REASON = 5;

/** Returns the answer about a run, in at most 2,500 tokens unless it has a page of rows. */
export function renderReport(run: ReportedRun): RenderedReport {
  const nextSteps = nextStepsOf(run);
  const notes = notesOf(run);
  const around = { nextSteps, notes, approval: reportedApproval(run) };
  const bare = { ...around, ...EMPTY_SECTIONS };
  const size = sizeOf(renderAnswer(structuredOf(run, bare), textOf({ ...run, verdicts: [] }, bare)));
  const most = ANSWER_TOKENS + (run.page === undefined ? 0 : BESIDE_ROWS_TOKENS);
  const budget = { left: most - AROUND_TOKENS - size };
  const parts = { ...around, ...sectionsOf(run, budget, nextSteps) };
  return renderAnswer(structuredOf(run, parts), textOf(run, parts), isError(run));
}

const EMPTY = { rows: [], omitted: 0 };
const EMPTY_SECTIONS = { plan: EMPTY, failures: EMPTY, verdicts: EMPTY, results: EMPTY, changes: [] };

function sectionsOf(run: ReportedRun, budget: Budget, nextSteps: readonly string[]) {
  const { page, verdicts = [], plan = [] } = run;
  const eventPlan = eventPlanRows(run);
  // Whether to remove "resume" from the remedies: the run was undone, or a next step already contains the call.
  const resumes = run.isUndone === true || nextSteps.some((step) => step.includes("resume_run {"));
  // Events that were not sent come last, because the failures already explain them.
  const sentFirst = verdicts
    .toSorted((one, other) => Number(isNotSent(one)) - Number(isNotSent(other)))
    .slice(0, MAX_GROUPS);
  const forms = failureForms(run, resumes);
  // Verdicts leave room for readable reasons: it matters more why events fail than what others may become.
  const most = page === undefined ? VERDICT_TOKENS.most : VERDICT_TOKENS.onPage;
  const room = Math.min(most, Math.max(VERDICT_TOKENS.least, budget.left - costIn(forms, READABLE_FORM)));
  const reserve = Math.min(costOfSent(verdictRowsIn(sentFirst, SHORTEST_VERDICT)), room, budget.left);
  budget.left -= reserve;
  const failures = failureRows(forms, budget, run.confirmation !== undefined);
  budget.left += reserve;
  const requests = takeFittingRows([...plan.slice(0, MAX_GROUPS).map(planRow), ...eventPlan], budget);
  // The fullest form in which all events that were sent fit.
  const formed = fullest(VERDICT_FORMS, (form) => verdictRowsIn(sentFirst, form), costOfSent, budget.left);
  const judged = takeFittingRows(formed, budget);
  const some = page === undefined ? fewOfEachReason(run) : run.results;
  const rows = some.map(resultRow);
  const results = page === undefined ? takeFittingRows(rows.slice(0, MAX_RESULTS), budget) : rows;
  const matching = results.length > 0 ? (page?.matching ?? run.counts.items) : 0;
  return {
    plan: sectionOf(requests, plan.length + eventPlan.length),
    failures: sectionOf(failures, run.failures.length),
    verdicts: sectionOf(judged, verdicts.length),
    results: sectionOf(results, matching),
    changes:
      page === undefined
        ? changeLines(some.slice(0, results.length), countsOfKinds(run), {
            done: isOfEvents(run) ? "Sent" : "Done",
            isPlanned: run.status === "planned",
            allAt: run.runId === undefined ? "" : `, all at ${resultsUri(run.runId)}`,
          })
        : [],
  };
}

function fewOfEachReason({ results, failures }: ReportedRun): ReportedRun["results"] {
  const seen = new Map<string, number>();
  const codes = new Set(failures.slice(0, MAX_REASONS).map(({ errorCode }) => errorCode));
  return results.filter(({ outcome, reason }) => {
    if (reason === undefined || !codes.has(reason.code)) return true;
    const kind = `${outcome} ${reason.code}`;
    seen.set(kind, (seen.get(kind) ?? 0) + 1);
    return (seen.get(kind) ?? 0) <= MAX_OF_A_REASON;
  });
}

function countsOfKinds({ did, counts }: ReportedRun): Readonly<Record<string, number>> {
  const { created = 0, changed = 0, deleted = 0, same = 0, gone = 0 } = did ?? {};
  return {
    Created: created,
    Changed: changed,
    Deleted: deleted,
    "Found deleted": gone,
    Unchanged: same,
    Done: counts.succeeded - created - changed - deleted - same,
    "Already done": counts.alreadyDone - gone,
  };
}

interface Section<Part extends Pick<Row, "data"> = Row> {
  readonly rows: readonly Part[];
  readonly omitted: number;
}

function sectionOf<Part extends Pick<Row, "data">>(rows: readonly Part[], all: number): Section<Part> {
  return { rows, omitted: all - rows.length };
}

type Parts = ReturnType<typeof sectionsOf> & {
  readonly nextSteps: readonly string[];
  readonly notes: readonly string[];
  readonly approval: Approval | undefined;
};

function structuredOf(run: ReportedRun, parts: Parts): RenderedReport["structured"] {
  const { plan } = parts;
  return {
    environment: run.environment,
    runId: run.runId,
    tool: run.tool,
    status: run.status,
    counts: run.counts,
    requests: run.requests,
    ...sectionData("failures", parts.failures),
    ...sectionData("results", parts.results),
    resultsUri: run.runId && resultsUri(run.runId),
    ...(run.hasRejects && run.runId !== undefined && { rejectsUri: rejectsUri(run.runId) }),
    approval: parts.approval,
    totals: run.totals,
    ...(plan.omitted > 0 && { plan: [] }),
    ...sectionData("plan", plan),
    ...sectionData("verdicts", parts.verdicts),
    confirmation: run.confirmation,
    blocked: run.blocked,
    stale: run.stale,
    ...(parts.notes.length > 0 && { notes: parts.notes }),
    ...(parts.nextSteps.length > 0 && { nextSteps: parts.nextSteps }),
    cursor: run.page?.cursor,
  };
}

function sectionData(name: string, { rows, omitted }: Section<Pick<Row, "data">>): Readonly<Record<string, unknown>> {
  return {
    ...(rows.length > 0 && { [name]: rows.map(({ data }) => data) }),
    ...(omitted > 0 && { [`${name}Omitted`]: omitted }),
  };
}

function textOf(run: ReportedRun, parts: Parts): readonly (string | false)[] {
  const { plan, failures, verdicts, results, changes, notes, approval, nextSteps } = parts;
  const { runId, confirmation, blocked, page } = run;
  const saying = verdicts.rows.filter(({ data }) => saysMore(data));
  const said = new Set(saying.map(({ data }) => data.index));
  const unsaid = (run.verdicts ?? []).filter((row) => saysMore(row) && !said.has(row.index));
  const body = [
    ...approvalLines(approval),
    ...(blocked === undefined ? [] : [blockedText(blocked)]),
    ...notes.map(sentence),
    ...failureLines(failures.rows),
    ...(runId !== undefined && failures.rows.some(({ isCut }) => isCut)
      ? [`Some of these texts are cut (…). They are whole in ${resultsUri(runId)}.`]
      : []),
    ...moreLine(failures, "reason", runId),
    ...saying.map(({ line }) => line),
    ...moreGroups(unsaid, run),
    ...plan.rows.map(({ line }) => line),
    ...moreLine(plan, "request", runId),
    ...changes,
  ];
  const rows = page === undefined ? [] : results.rows.map(({ line }) => line);
  return [
    headline(run),
    // Not part of `body`, because the names in it are already marked as foreign text.
    confirmation !== undefined && confirmationText(confirmation),
    ...withForeignLast(body, rows),
    page?.cursor !== undefined &&
      `${results.omitted > 0 ? `${many(results.omitted, "more row")}: the` : "More: the"} same call with cursor ${page.cursor}`,
    ...nextSteps.map((step) => `Next: ${step}`),
  ];
}

/**
 * Returns the lines of failures. Reasons below one heading are one entry, so that foreign text in one of them does not
 * separate them. Examples are entries of their own.
 */
function failureLines(rows: readonly FailureRow[]): readonly string[] {
  const entries: string[] = [];
  let heading = -1;
  for (const { lines, heading: its } of rows) {
    const reasons = its === undefined ? [] : lines.filter((line) => !line.startsWith("Examples of "));
    if (its === "above" && heading >= 0) entries[heading] = [entries[heading], ...reasons].join("\n");
    else if (its !== undefined) heading = entries.push(reasons.join("\n")) - 1;
    entries.push(...lines.filter((line) => !reasons.includes(line)));
  }
  return entries;
}

/** Returns a note as a sentence. It gets no full stop after `>`, the end mark of a foreign text. */
function sentence(note: string): string {
  // The name of a tool at the beginning of a note is not capitalized.
  if (/^[a-z]+_[a-z_]+ /.test(note)) return `${note}.`;
  return `${note.charAt(0).toUpperCase()}${note.slice(1)}${/[.>]$/.test(note) ? "" : "."}`;
}

function moreLine(
  { rows, omitted }: Record<"rows", readonly object[]> & Pick<Section, "omitted">,
  noun: string,
  runId?: string,
): readonly string[] {
  if (omitted === 0) return [];
  return [
    `${many(omitted, rows.length === 0 ? noun : `more ${noun}`)}${runId === undefined ? "" : ` in ${resultsUri(runId)}`}.`,
  ];
}

function moreGroups(unsaid: readonly VerdictRow[], { runId, page }: ReportedRun): readonly string[] {
  const where = page === undefined ? `get_run ${JSON.stringify({ runId })}` : resultsUri(runId ?? "");
  const end = runId === undefined ? "." : `: ${where}.`;
  const refused = unsaid.filter(isNotSent).length;
  const sent = unsaid.length - refused;
  return [
    ...(sent > 0 ? [`${many(sent, "more group")} of events, by their expected result${end}`] : []),
    ...(refused > 0
      ? [`${many(refused, "further group")} of failed events ${refused === 1 ? "has" : "have"} other findings${end}`]
      : []),
  ];
}

function notesOf(run: ReportedRun): readonly string[] {
  return [
    ...(run.notes ?? []),
    ...endNotes(run),
    ...unansweredNote(run),
    ...sheetNotes(run.file, run.notes),
    ...undoFirstNote(run),
    ...rowsNote(run),
    ...bareNote(run),
    ...fuzzyMatchNote(run),
    ...nearNote(run),
    ...joinedNote(run),
    ...elsewhereNote(run),
    ...missingIdsNote(run),
    ...countsNote(run),
    ...unreadNote(run),
    ...resumedNote(run),
    ...swapsNote(run),
  ];
}

export function blockedText({ message, remedy }: NonNullable<ReportedRun["blocked"]>): string {
  return `The run cannot continue on this server: ${message}. ${remedy}`;
}

export function resultsUri(runId: string): string {
  return `targeting://runs/${runId}/results`;
}

const FAILURE_FORMS: readonly FailureForm[] = [
  ...[20, 10, 5, 2, 0].map((details) => ({ details })),
  { details: 0, places: 3, isBare: true },
  ...[120, 60, 30, 12].map((tokens) => ({ details: 0, places: 1, isBare: true, tokens })),
];
const SHORTEST_FORM = FAILURE_FORMS.length - 1;
const READABLE_FORM = SHORTEST_FORM - 1;
const DETAILS_SHARE = 0.6;

type FailureForms = readonly (readonly FailureRow[])[];

/** Returns the first `MAX_REASONS` failures, each in all its forms, beginning with the fullest. */
function failureForms(run: ReportedRun, resumes: boolean): FailureForms {
  const failures = run.failures
    .slice(0, MAX_REASONS)
    .toSorted((one, other) => (other.shared ?? "").localeCompare(one.shared ?? ""));
  return failures.map((failure, at) => {
    const alike = failures.filter((other) => isAlike(failure, other));
    const beside = { isNamed: run.page === undefined, resumes, isBelowShared: alike.length > 1 };
    const heading = alike.length < 2 ? undefined : isAlike(failure, failures[at - 1]) ? "above" : "own";
    const above = heading === "own" ? [sharedLine(alike)] : [];
    return FAILURE_FORMS.map((form) => {
      const row = failureRow(failure, form, beside);
      return { ...row, lines: [...above, ...row.lines], heading };
    });
  });
}

function costIn(forms: FailureForms, form: number): number {
  return sum(forms.map((rows) => costOf(rows[form])));
}

/**
 * Returns failures in the fullest form that fits into an answer. Examples are omitted first. Whole failures are omitted
 * only beside a confirmation (`mayCut`), because the effect it states must be complete.
 */
function failureRows(forms: FailureForms, budget: Budget, mayCut: boolean): readonly FailureRow[] {
  // Of the forms without examples, chooses the fullest one in which all failures fit. If none does, chooses the
  // shortest.
  const fitting = FAILURE_FORMS.findIndex(({ isBare }, form) => isBare === true && costIn(forms, form) <= budget.left);
  const least = fitting < 0 ? SHORTEST_FORM : fitting;
  let needed = costIn(forms, least);
  return forms.flatMap((rows) => {
    const short = rows[least];
    needed -= costOf(short);
    const room = (budget.left - needed) * DETAILS_SHARE;
    const row = rows.slice(0, least).find((fuller) => costOf(fuller) <= room) ?? short;
    if (row === undefined || (mayCut && costOf(row) > budget.left)) return [];
    budget.left -= costOf(row);
    return row;
  });
}

function isAlike(one: SummarizedFailure, other: SummarizedFailure | undefined): boolean {
  return one.shared !== undefined && one.shared === other?.shared && one.outcome === other.outcome;
}

function sum(costs: readonly number[]): number {
  return costs.reduce((total, cost) => total + cost, 0);
}

function costOf(row: Row | FailureRow | undefined): number {
  if (row === undefined) return 0;
  return tokensOf(JSON.stringify(row.data)) + tokensOf("lines" in row ? row.lines.join("\n") : row.line);
}

const SHORTEST_VERDICT: VerdictForm = [1, 1];
/** The first form shows all positions and findings that a row has. */
const VERDICT_FORMS: readonly VerdictForm[] = [[10, 20], [3, 20], [3, 5], [3, 1], SHORTEST_VERDICT];
/** How many tokens failures leave to the verdicts on events that were sent. */
const VERDICT_TOKENS = { most: 500, least: 150, onPage: 1200 };

function verdictRowsIn(verdicts: readonly VerdictRow[], form: VerdictForm): readonly Row[] {
  return verdicts.map((verdict) => {
    const short = shortVerdictRow(verdict, form);
    return { data: { ...short }, line: verdictLine(short) };
  });
}

function costOfSent(rows: readonly Row[]): number {
  return sum(rows.filter(({ data }) => saysMore(data)).map(costOf));
}

function isNotSent({ predicted, observed }: { readonly predicted?: unknown; readonly observed?: unknown }): boolean {
  return observed === undefined && (predicted === "ignored" || predicted === "rejected");
}

/** Returns whether a row says more than the failures do: events that were sent, or that have other findings as well. */
function saysMore(row: { readonly findings?: unknown } & Parameters<typeof isNotSent>[0]): boolean {
  return !isNotSent(row) || (Array.isArray(row.findings) && row.findings.length > 0);
}

function planRow(request: PlannedRequest): Row {
  const { operation, items, contextIds, bytes } = request;
  const ids = contextIds > 0 ? `${many(contextIds, "Context ID")}, ` : "";
  const line = `A request to ${OPERATION_WORDS[operation]}: ${many(items, "item")}, ${ids}${many(bytes, "byte")}.`;
  return { data: { operation, items, bytes, contextIds }, line };
}

function eventPlanRows({ eventRequests }: ReportedRun): readonly Row[] {
  if (eventRequests === undefined) return [];
  const { items, bytes } = eventRequests;
  const line = `${many(items, "request")} to send ${many(items, "event")}: ${many(bytes, "byte")}.`;
  return [{ data: { operation: "trackEvent", items, requests: items, bytes }, line }];
}

const WAITS_FOR = {
  page: "A person decides on the page of this server",
  client: "The client asks the person",
  token: "The run waits for its confirmation token",
} as const;

/** Returns an effect as text for an agent. If no token can approve it, says where and until when it can be approved. */
export function confirmationText(confirmation: NonNullable<ReportedRun["confirmation"]>): string {
  const { token, effect, expiresAt, channel = "page" } = confirmation;
  return token === undefined
    ? `${effect}\n${WAITS_FOR[channel]}, until ${expiresAt.slice(0, 10)}, ${timeWords(expiresAt)}.`
    : effect;
}

export function tokenAgainStep(tool: string): string {
  return `if you do not have the token of this run, make the same ${tool} call again: it asks again and gives a new token`;
}

/** Returns the call with which the agent continues after the person has approved. */
export function confirmationStep(
  tool: string,
  { token = "", expiresAt }: { readonly token?: string; readonly expiresAt: string },
  runId?: string,
): string {
  const call = `${tool} ${JSON.stringify({ ...(runId !== undefined && { runId }), confirmation: token })}`;
  return (
    "show exactly this effect to the person and wait for their decision. If they approve, or have already approved " +
    `exactly this: ${call} before ${timeWords(expiresAt)}`
  );
}

interface AppliedRun {
  readonly status: string;
  readonly at: number;
  /** The run of an identical earlier call. Absent if this run itself was applied before. */
  readonly runId?: string;
}

/** Returns a note that a run was applied before this call was made. Empty if it was not, or has not ended. */
export function appliedBeforeNote({ status, at, runId }: AppliedRun): readonly string[] {
  if (status !== "succeeded" && status !== "partial") return [];
  const how = status === "partial" ? "already applied in part" : "already applied";
  const when = `at ${new Date(at).toISOString().slice(0, 16).replace("T", " ")} UTC`;
  return [
    runId === undefined ? `${how} ${when}; this call sent nothing` : `the same call was ${how} ${when}, run ${runId}`,
  ];
}

function timeWords(iso: string): string {
  return `${iso.slice(11, 16)} UTC`;
}

/** Returns whether an answer is an error: the run failed, or nothing has succeeded and results are unknown. */
function isError({ status, counts }: ReportedRun): boolean {
  return status === "failed" || (status === "unknown" && counts.succeeded + counts.alreadyDone === 0);
}
