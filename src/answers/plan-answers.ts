import type { PlannedRequest } from "../changes/rows/entries.ts";
import type { Problem } from "../plans/file/desired.ts";
import {
  CHANGE_KINDS,
  changesOf,
  isApplicable,
  itemChanges,
  itemCount,
  type ListedChange,
  type StatePlan,
  targetingChanges,
} from "../plans/plan.ts";
import { allChangesOf, groupNamesOf, type PlanDocument, plansOf } from "../plans/plan-document.ts";
import { countsOfRows, mayBeUndoneLater, type RowLabel, UNDO_LABELS, type UndoRow } from "../plans/undo-plan.ts";
import { groupedBy } from "../platform/by-key.ts";
import { amount, capitalized, firstOf } from "../platform/text.ts";
import { targetingWords } from "./approvals.ts";
import {
  ANSWER_TOKENS,
  fullest,
  pageBudget,
  type RenderedReport,
  type Row,
  renderAnswer,
  sizeOf,
  takeFittingRows,
  writeCursor,
} from "./budget.ts";
import { OPERATION_WORDS } from "./failures.ts";
import { fenceIfForeign, namedInSentence, quoteUntrusted } from "./fence.ts";
import { undoReasonWords, undoResultWords } from "./message-words.ts";
import { sheetCall } from "./next-steps.ts";
import {
  changeCounts,
  changeLine,
  contextIds,
  count,
  differenceLine,
  FIELD_WORDS,
  KIND_WORDS,
  linesOf,
  obstacles,
  place,
  planCounts,
  problemLine,
  uncheckedNote,
  value,
} from "./plan-words.ts";

const MAX_SHOWN = [20, 12, 8, 5, 3, 1, 0] as const;
const NOTHING = { items: 0, succeeded: 0, alreadyDone: 0, failed: 0, notApplied: 0, unknown: 0, pending: 0 };

interface AnsweredPlan {
  readonly environment: "live" | "sandbox";
  readonly runId: string;
  readonly tool: string;
  readonly document: PlanDocument;
  readonly requests: readonly PlannedRequest[];
  readonly nextSteps: readonly string[];
  readonly refused?: string | undefined;
}

/** Returns the answer about a plan, in at most 2,500 tokens. The resource of the run contains the whole plan. */
export function planAnswer(plan: AnsweredPlan): RenderedReport {
  return fitted((most) => renderAnswer(structuredOf(plan, most), textOf(plan, most)));
}

/** Returns the answer with as many entries as the token limit allows. `make` gets the maximum number of entries. */
function fitted(make: (most: number) => RenderedReport, counts: readonly number[] = MAX_SHOWN): RenderedReport {
  return fullest(counts, make, sizeOf, ANSWER_TOKENS);
}

function allAt(runId: string | undefined): string {
  if (runId === undefined) return "";
  return `; all: get_run ${JSON.stringify({ runId, cursor: firstCursor(runId) })} or ${planUri(runId)}`;
}

function planUri(runId: string): string {
  return `targeting://runs/${runId}/plan`;
}

function structuredOf(answer: AnsweredPlan, most: number): Readonly<Record<string, unknown>> {
  const { environment, runId, tool, document, requests, nextSteps } = answer;
  const { plan } = document;
  const items = itemCount(plan);
  const lists = { drift: plan.drift, conflicts: plan.conflicts, onlyThere: plan.onlyThere, problems: plan.problems };
  const picked = Object.entries(lists).filter(([, list]) => list.length > 0);
  const omitted = picked.flatMap(([name, { length }]) => (length > most ? [[name, length - most] as const] : []));
  const undo = countsOfUndo(plan);
  const changes = kindsOf(changesOf(plan, groupNamesOf(document)), most);
  const isCut = omitted.length > 0 || Object.values(changes).some(({ count, names }) => count > names.length);
  return {
    environment,
    runId,
    tool,
    status: "planned",
    counts: { ...NOTHING, items, pending: items },
    targeting: plan.targeting,
    changes,
    undo,
    ...Object.fromEntries(picked.map(([name, list]) => [name, list.slice(0, most)])),
    ...(plan.limits.length > 0 && { limits: plan.limits.slice(0, Math.max(1, most)) }),
    ...(omitted.length > 0 && { omitted: Object.fromEntries(omitted) }),
    ...(requests.length > 0 && { plan: requests.slice(0, most), requests: { planned: requests.length } }),
    digest: document.digest,
    planUri: planUri(runId),
    cursor: isCut ? firstCursor(runId) : undefined,
    nextSteps,
  };
}

function kindsOf(changes: readonly ListedChange[], most: number) {
  return Object.fromEntries(
    CHANGE_KINDS.flatMap((kind) => {
      const own = changes.filter((change) => change.kind === kind);
      return own.length === 0 ? [] : [[kind, { count: own.length, names: own.slice(0, most).map(({ name }) => name) }]];
    }),
  );
}

function countsOfUndo({ items }: StatePlan): Readonly<Record<string, number>> | undefined {
  const counts: Record<string, number> = {};
  for (const { undo } of items) if (undo !== undefined) counts[undo] = (counts[undo] ?? 0) + 1;
  return Object.keys(counts).length === 0 ? undefined : counts;
}

function textOf(answer: AnsweredPlan, most: number): readonly string[] {
  const { environment, runId, document, requests, nextSteps, refused } = answer;
  const { plan } = document;
  const { targeting } = plan;
  const listed = linesOf(plan, "file");
  const changes = changesOf(plan, groupNamesOf(document));
  const where = targeting._id === undefined ? "a new targeting" : targeting._id;
  const section = (title: string, lines: readonly string[], least = 0): readonly string[] => {
    if (lines.length === 0) return [];
    const picked = lines.slice(0, Math.max(most, least));
    const more = lines.length - picked.length;
    return [
      title,
      ...picked.map((line) => `- ${line}`),
      ...(more > 0 ? [`- and ${count(more)} more${allAt(runId)}`] : []),
    ];
  };
  const ran = `Run ${runId}, ${environment}.`;
  const sections = [
    ...CHANGE_KINDS.flatMap((kind) => {
      const own = changes.filter((change) => change.kind === kind);
      return section(`${capitalized(KIND_WORDS[kind])} (${count(own.length)}):`, own.map(changeLine));
    }),
    ...section("Conflicts, changed in the file and in the service since the base:", listed.conflicts, 1),
    ...section("Problems:", problemLines(plan.problems), 1),
    ...section("Limits:", listed.limits, 1),
    ...section("Changed in the service since the base, and kept:", listed.drift),
    ...section("Not in the file, and kept:", listed.onlyThere),
  ];
  const why = isApplicable(plan) ? refused && ` on this server: ${refused}` : `: ${obstacles(plan)}`;
  const of = namedInSentence(targeting.name, where);
  const headline =
    why === undefined
      ? [`Planned for ${of}: ${planCounts(changes, plan)}; nothing was sent. ${ran}`]
      : [
          `The plan for ${of} cannot be applied${why}; nothing was sent. ${ran}`,
          ...(changes.length > 0 ? [`It has ${changeCounts(changes)}.`] : []),
        ];
  return [
    ...headline,
    ...fenceIfForeign(sections),
    ...requestLines(requests),
    ...nextSteps.map((step) => `Next: ${step}`),
  ];
}

function requestLines(requests: readonly PlannedRequest[]): readonly string[] {
  if (requests.length === 0) return [];
  const kinds = new Map<string, number>();
  for (const { operation } of requests) {
    const words = OPERATION_WORDS[operation];
    kinds.set(words, (kinds.get(words) ?? 0) + 1);
  }
  const parts = [...kinds].map(([words, many]) => `${count(many)} to ${words}`);
  return [`Requests: ${count(requests.length)} (${parts.join(", ")}).`];
}

/** Returns one line for all problems with the same words: the first of them, and how many others there are. */
function problemLines(problems: readonly Problem[]): readonly string[] {
  const groups = groupedBy(problems, ({ message, remedy }) => `${message} ${remedy}`);
  return [...groups.values()].flatMap(([first, ...others]) => {
    if (first === undefined) return [];
    const more = others.length === 0 ? "" : ` ${amount(others.length, "more row")} with the same problem.`;
    return [`${problemLine("file", first)}${more}`];
  });
}

/** Returns the answer if a desired state has problems. `runId`: if the state is a sheet, the run that stores it. */
export function problemsAnswer(
  environment: "live" | "sandbox",
  problems: readonly Problem[],
  runId?: string,
): RenderedReport {
  const them = problems.length === 1 ? "the problem" : "the problems";
  const sheet = runId === undefined ? [] : [`the sheet with ${them} marked: ${sheetCall(runId)}`];
  const steps = [`fix ${them} above, and plan again`, ...sheet];
  return fitted((most) => {
    const picked = problems.slice(0, Math.max(1, most));
    const omitted = problems.length - picked.length;
    return renderAnswer(
      {
        environment,
        runId,
        tool: "plan_targeting",
        status: "failed",
        counts: NOTHING,
        problems: picked,
        omitted: omitted > 0 ? { problems: omitted } : undefined,
        nextSteps: steps,
      },
      [
        `The desired state has ${amount(problems.length, "problem")} and was not planned; nothing was sent.`,
        ...fenceIfForeign(picked.map((problem) => `- ${problemLine("file", problem)}`)),
        omitted > 0 && `- and ${count(omitted)} more`,
        ...steps.map((step) => `Next: ${step}`),
      ],
      true,
    );
  });
}

/** Returns the query for the cursors of a plan. It contains the run ID, so that cursors of other plans are refused. */
export function pagesOf(runId: string): object {
  return { runId, pages: "plan" };
}

function firstCursor(runId: string): string {
  return writeCursor(pagesOf(runId), 0);
}

/** Returns a plan as rows, problems first. An undo plan has a row for each object, those not restored first. */
export function rowsOfPlan(document: PlanDocument): readonly Row[] {
  const { plan, wayBack } = document;
  if (wayBack !== undefined) return inOrder(wayBack.rows).map((row) => undoPlanRow(row, document));
  const changes = changesOf(plan, groupNamesOf(document));
  const { problems, conflicts, drift, onlyThere } = plan;
  const row = (data: Row["data"], kind: string, text: string): Row => ({ data, line: `${kind}: ${text}` });
  return [
    ...problems.map((one) => row({ kind: "problem", ...one }, "problem", problemLine("file", one))),
    ...conflicts.map((one) => row({ kind: "conflict", ...one }, "conflict", differenceLine(one))),
    ...CHANGE_KINDS.flatMap((kind) => changes.filter((change) => change.kind === kind)).map((change) =>
      row(change, KIND_WORDS[change.kind], changeLine(change)),
    ),
    ...drift.map((one) =>
      row({ kind: "drift", ...one }, "changed in the service since the base, and kept", differenceLine(one)),
    ),
    ...onlyThere.map((one) =>
      row({ kind: "onlyThere", ...one }, "not in the file, and kept", `${quoteUntrusted(one.name)} (${one._id})`),
    ),
  ];
}

function inOrder(rows: readonly UndoRow[]): readonly UndoRow[] {
  return rows.toSorted((one, other) => RANK.indexOf(one.undo) - RANK.indexOf(other.undo));
}

export const RANK: readonly RowLabel[] = ["unresolved", "impossible", "notOurs", "caveat", "exact"];

function undoPlanRow(row: UndoRow, document: PlanDocument | undefined): Row {
  const { at, ...data } = row;
  return { data, line: `${undoResultWords(row.undo, [row])}: ${undoneObject(row, changesOfRow(row, document))}` };
}

export function changesOfRow(row: UndoRow, document: PlanDocument | undefined): readonly ListedChange[] {
  if (document === undefined) return [];
  const { at } = row;
  if (isAboutTargeting(row)) return changesOfTargeting(row, document);
  const plan = plansOf(document)[at?.targeting ?? -1];
  const item = plan?.items[at?.item ?? -1];
  return plan === undefined || item === undefined ? [] : itemChanges(plan, item, groupNamesOf(document));
}

function isAboutTargeting({ _id, targeting }: Pick<UndoRow, "_id" | "targeting">): boolean {
  return _id !== undefined && _id === targeting;
}

/** Returns what an undo changes in a targeting. A deleted targeting gets a new ID, so its plan is found by its name. */
function changesOfTargeting({ _id, name, undo }: UndoRow, document: PlanDocument): readonly ListedChange[] {
  if (undo !== "exact" && undo !== "caveat") return [];
  const plan = plansOf(document).find(({ targeting }) =>
    targeting._id === undefined ? targeting.name === name : targeting._id === _id,
  );
  return plan === undefined ? [] : targetingChanges(plan);
}

interface PageAsked {
  readonly environment: "live" | "sandbox";
  readonly runId: string;
  readonly tool: string;
  readonly from: number;
  readonly limit: number;
}

export function planPage(rows: readonly Row[], { environment, runId, tool, from, limit }: PageAsked): RenderedReport {
  const picked = takeFittingRows(rows.slice(from, from + limit), pageBudget());
  const end = from + picked.length;
  const cursor = end < rows.length ? writeCursor(pagesOf(runId), end) : undefined;
  return renderAnswer(
    {
      environment,
      runId,
      tool,
      status: "planned",
      total: rows.length,
      results: picked.map(({ data }) => data),
      cursor,
    },
    [
      `Plan ${runId}, ${count(Math.min(from + 1, rows.length))} to ${count(end)} of ${count(rows.length)}:`,
      ...fenceIfForeign(picked.map(({ line }) => `- ${line}`)),
      cursor !== undefined && `More: the same call with cursor ${cursor}`,
    ],
  );
}

const UNDO_ROWS = [50, 30, 20, 12, 8, 5, 3, 1, 0] as const;

interface AnsweredUndo {
  readonly environment: "live" | "sandbox";
  readonly undoes: string;
  readonly rows: readonly UndoRow[];
  readonly already: number | undefined;
  readonly notes?: readonly string[] | undefined;
  readonly readOnly: boolean;
  readonly planned?: {
    readonly runId: string;
    readonly document: PlanDocument;
    readonly requests: readonly PlannedRequest[];
  };
}

/** Returns the answer with an undo plan. Objects that are not restored come first. */
export function undoAnswer(answer: AnsweredUndo): RenderedReport {
  const rows = inOrder(answer.rows);
  const unchecked = answer.planned === undefined ? [] : uncheckedNote(plansOf(answer.planned.document));
  const all = { ...answer, notes: [...(answer.notes ?? []), ...unchecked] };
  return fitted((most) => renderAnswer(undoData(all, rows, most), undoWords(all, rows, most)), UNDO_ROWS);
}

function undoData(answer: AnsweredUndo, rows: readonly UndoRow[], most: number): RenderedReport["structured"] {
  const { environment, undoes, planned, notes = [] } = answer;
  const plans = planned === undefined ? [] : plansOf(planned.document);
  const items = plans.reduce((sum, plan) => sum + itemCount(plan), 0);
  const picked = rows.slice(0, most).map((row) => undoPlanRow(row, planned?.document).data);
  return {
    environment,
    runId: planned?.runId,
    tool: "undo_run",
    status: "planned",
    undoes,
    counts: { ...NOTHING, items, pending: items },
    undo: countsIn(rows),
    ...(picked.length > 0 && { results: picked }),
    ...(rows.length > picked.length && { resultsOmitted: rows.length - picked.length }),
    ...(rows.length > picked.length && planned !== undefined && { cursor: firstCursor(planned.runId) }),
    ...(planned !== undefined && {
      requests: { planned: planned.requests.length },
      digest: planned.document.digest,
      planUri: planUri(planned.runId),
    }),
    ...(notes.length > 0 && { notes }),
    nextSteps: nextStepsOf(answer),
  };
}

/** Returns words for the targeting of a plan. Empty if the plan is about several targetings or a new one. */
function withinWords(document: PlanDocument | undefined): string {
  const { _id, name } = document?.plan.targeting ?? {};
  const isOne = document !== undefined && (document.wayBack?.further ?? []).length === 0 && _id !== undefined;
  return isOne ? ` in ${targetingWords({ ...(name !== undefined && { withinName: name }) }, _id)}` : "";
}

function undoWords(answer: AnsweredUndo, rows: readonly UndoRow[], most: number): readonly (string | false)[] {
  const { environment, undoes, planned, already, notes = [] } = answer;
  const picked = rows.slice(0, most);
  const more = rows.length - picked.length;
  const changes = planned === undefined ? [] : allChangesOf(planned.document);
  return [
    `Planned the undo of run ${undoes}${withinWords(planned?.document)}: ${undoCounts(rows, already)}; nothing was sent.${planned === undefined ? "" : ` Run ${planned.runId}, ${environment}.`}`,
    changes.length > 1 && `Changes to make: ${changeCounts(changes)}.`,
    ...notes,
    ...fenceIfForeign(RANK.flatMap((label) => undoSection(picked, label, planned?.document))),
    more > 0 && `- and ${count(more)} more${allAt(planned?.runId)}`,
    planned !== undefined && `Requests: ${count(planned.requests.length)}.`,
    ...nextStepsOf(answer).map((step) => `Next: ${step}`),
  ];
}

function nextStepsOf({ planned, readOnly, rows }: AnsweredUndo): readonly string[] {
  if (planned === undefined || readOnly) return [];
  const apply = `apply_plan ${JSON.stringify({ runId: planned.runId })}`;
  const { unresolved } = countsOfRows(rows);
  if (unresolved === 0) return [`show the plan to the person; ${apply} applies it`];
  const open = unresolved === 1 ? "the unresolved object" : `the ${count(unresolved)} unresolved objects`;
  const checks = `first checks, by waiting and reading, which of ${open} were changed, and restores these too`;
  return [`show the plan to the person; ${apply} ${checks}`];
}

function countsIn(rows: readonly UndoRow[]): object {
  const { unresolved, ...counts } = countsOfRows(rows);
  return unresolved > 0 ? { unresolved, ...counts } : counts;
}

/** Returns the lines for objects with the same result of the undo. The heading states a reason that all share. */
function undoSection(all: readonly UndoRow[], label: RowLabel, document: PlanDocument | undefined): readonly string[] {
  const rows = all.filter(({ undo }) => undo === label);
  if (rows.length === 0) return [];
  const [shared, ...others] = new Set(rows.map((row) => reasonWords(row).join("; ")));
  const isShared = others.length === 0 && rows.length > 1 && shared !== "";
  return [
    `${capitalized(undoResultWords(label, rows))}${isShared ? ` (${shared})` : ""}:`,
    ...rows.map((row) => `- ${undoneObject(row, changesOfRow(row, document), !isShared)}`),
  ];
}

/** Counts the results: "3 will be undone exactly, 1 impossible to undo". `already`: objects that need no undo. */
export function undoCounts(rows: readonly UndoRow[], already = 0): string {
  const counts = countsOfRows(rows);
  const picked = UNDO_LABELS.flatMap((label) =>
    counts[label] === 0 ? [] : [`${count(counts[label])} ${undoResultWords(label, rows)}`],
  );
  const gone = already > 0 ? [`${count(already)} already undone`] : [];
  if (picked.length === 0) return already > 0 ? "none of its changes is left" : "the run changed nothing";
  return [...picked, ...gone].join(", ");
}

/** Returns a line about the result that an undo had for an object. */
export function undoLine(row: UndoRow): string {
  return `${undoResultWords(row.undo, [row], { isDone: true })}: ${undoneObject(row, [])}`;
}

export function undoneObject(row: UndoRow, changes: readonly ListedChange[], saysWhy = true): string {
  const { name, _id, reasons = [], field, left, now, contextIds: many } = row;
  const why = saysWhy ? reasonWords(row).join("; ") : "";
  if (changes.length > 0) {
    const words = changes.map((change) => `${VERBS[change.kind]} ${changeLine(change)}`);
    return `${words.join("; ")}${why === "" ? "" : `: ${why}`}`;
  }
  const isTargeting = isAboutTargeting(row);
  const what = `${isTargeting ? "the targeting " : ""}${quoteUntrusted(name)}${_id === undefined || _id === name ? "" : ` (${_id})`}`;
  const ids = `${reasons.includes("notRead") ? "keeps " : ""}${contextIds(many)}`;
  const fieldWords = field === "added" && isTargeting ? "options" : field && FIELD_WORDS[field];
  const about = field === undefined ? "" : `: ${many === undefined ? fieldWords : ids}`;
  const picked = field === "parent" ? place : value;
  const isChanged = left !== now || row.undo === "notOurs";
  const values =
    field === undefined || left === undefined || now === undefined || !isChanged
      ? ""
      : left === now
        ? `: ${picked(now)}, as many as after the run, but some were replaced or changed since`
        : `: ${picked(left)} after the run, ${picked(now)} now`;
  return `${what}${about}${values}${why === "" ? "" : `: ${why}`}`;
}

/** Returns why an undo restores an object with differences, or not at all. */
export function reasonWords(row: Pick<UndoRow, "reasons" | "_id" | "targeting" | "group">): readonly string[] {
  const { reasons = [], group } = row;
  return reasons.flatMap((reason) =>
    reason === "nameTaken" && isAboutTargeting(row)
      ? "another targeting has the name now"
      : undoReasonWords([reason], group),
  );
}

const MAX_NOT_UNDONE = 5;

/** Returns a note about what an undo did not restore. Undefined if it restored everything. */
export function notUndoneNote(rows: readonly UndoRow[], undoes: string): string | undefined {
  const left = rows.filter(({ undo }) => undo === "impossible" || undo === "notOurs");
  if (left.length === 0) return undefined;
  const named = firstOf(left, MAX_NOT_UNDONE, (row) => undoneObject(row, []), { separator: ";" });
  const later = left.some(mayBeUndoneLater)
    ? `. Once nothing prevents it, undo_run ${JSON.stringify({ runId: undoes })} plans to undo what is left`
    : "";
  return `not undone: ${named}${later}`;
}

const VERBS: Readonly<Record<ListedChange["kind"], string>> = {
  created: "create",
  renamed: "rename",
  moved: "move",
  contexts: "change the Context IDs of",
  settings: "set",
  deleted: "delete",
  adopted: "",
};
