import { approvalWords } from "../answers/approvals.ts";
import { messageFor, OPERATION_WORDS, OUTCOME_WORDS, type SummarizedFailure } from "../answers/failures.ts";
import { placesWords, placeWords } from "../answers/fence.ts";
import { earlierPlace, many, type Reader } from "../answers/message-words.ts";
import { undoLine, undoneObject } from "../answers/plan-answers.ts";
import { FIELD_WORDS } from "../answers/plan-words.ts";
import { sheetNotes } from "../answers/sheets.ts";
import { isApproval } from "../changes/approvals.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { type JournalEntry, journalEntry } from "../changes/rows/entries.ts";
import type { Difference } from "../plans/plan.ts";
import type { PlanDocument } from "../plans/plan-document.ts";
import { parseJson } from "../platform/json.ts";
import { capitalized, characterList, cutText, thousands } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import { objectResult } from "../runs/report.ts";
import { isSaveRun } from "../saves/save-runs.ts";
import { LIMITS } from "../spec/limits.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import { whyNotApplied } from "../tools/kept-plan.ts";
import { planTextOf, removedLines, resultLine, sheetRunOf } from "../tools/run-files.ts";
import { approvalOfRun, fileReadBy } from "../tools/run-reports.ts";
import { fileAnswer } from "./page.ts";
import type {
  FailureRow,
  PlanDifference,
  PlanView,
  ProblemList,
  ProblemRow,
  RequestList,
  RequestRow,
  RunDetail,
  RunFile,
  RunRow,
  StoryStep,
} from "./wire.ts";

const MINUTE_MS = 60_000;

/** The maximum number of rows in one response. */
const MAX_ROWS = 100;
/** The maximum number of characters of a value. */
const MAX_LETTERS = 300;

/**
 * Returns the history of a run: requested, decided, checked again, retried. The page adds its status as the last step.
 */
export function storyOf(run: Run, { person }: Pick<ToolServices, "person">): readonly StoryStep[] {
  const { createdAt, call } = run.header;
  const isPlan = call.tool === "apply_plan";
  const first: StoryStep = { title: isPlan ? "Planned" : "Requested", at: createdAt, tone: "good" };
  const wait = waitWords(run);
  return [first, ...decisionOf(run, person), ...(wait === undefined ? [] : [{ title: wait, tone: "idle" } as const])];
}

function decisionOf(run: Run, person: string | undefined): readonly StoryStep[] {
  if (!(isChangeRun(run) || isApproval(run))) return [];
  const approval = approvalOfRun(run);
  const words = approval && approvalWords(approval, person);
  if (approval === undefined || words === undefined) return [];
  const isApproved = approval.decision === "approved";
  const { at } = run.state.facts.decided ?? {};
  const step: StoryStep = { title: words, at, tone: isApproved ? "good" : "bad" };
  if (!isApproved || !isChangeRun(run)) return [step];
  const isStale = run.state.facts.stale !== undefined;
  const title = isStale ? "Checked again: it had changed" : "Checked again: nothing had changed since the plan";
  return [step, ...(run.state.planned ? [{ title, tone: isStale ? ("bad" as const) : ("good" as const) }] : [])];
}

/** Returns how the file of a run was read, for a person, who cannot give arguments to tools. */
export function readingOf(run: Run): readonly string[] {
  return isChangeRun(run) ? sheetNotes(fileReadBy(run), [], "page") : [];
}

/** Describes how many requests were sent again, why, and how long the run waited. Undefined if neither happened. */
function waitWords(run: Run): string | undefined {
  const { resent, waitedMs } = run.state.requests;
  const statuses = isChangeRun(run) ? [...run.state.failedWith] : [];
  const causes = statuses.map(([status]) => `answered with status ${status}`);
  const areAllAnswered = statuses.reduce((sum, [, times]) => sum + times, 0) >= resent;
  const why = isChangeRun(run) ? [...(areAllAnswered ? [] : ["did not answer"]), ...causes].join(" or ") : "";
  const because = why === "" ? "" : `, because the service ${why}`;
  const seconds = Math.round(waitedMs / 1000);
  const parts = [
    resent > 0 && `${resent === 1 ? "1 request was" : `${thousands(resent)} requests were`} sent again${because}`,
    seconds > 0 && `waited ${waitedMs >= 2 * MINUTE_MS ? `${Math.round(waitedMs / MINUTE_MS)} min` : `${seconds} s`}`,
  ].filter((part) => part !== false);
  return parts.length === 0 ? undefined : parts.join(", ");
}

/** The error codes of events that are deliberately not sent, because the service would ignore or reject them. */
const HELD_BACK: ReadonlySet<string> = new Set(["EVENT_IGNORED", "EVENT_REJECTED"]);

/** Returns who reads about a run. `canResume`: whether the run has the button Resume run, which some remedies name. */
export function readerOf(canResume: boolean): Reader {
  return canResume ? "page" : "endedPage";
}

/** Returns a failure as the page shows it. */
export function failureRow(failure: SummarizedFailure): FailureRow {
  const { outcome, remedy } = failure;
  const kind = outcome === "failed" || outcome === "notApplied" || outcome === "skipped" ? outcome : "unknown";
  return {
    ...{ outcome: kind, count: failure.count, message: sharedMessage(failure), remedy },
    ...{ places: placesOf(failure), ...examplesOf(failure), cause: causeOf(failure) },
    ...(HELD_BACK.has(failure.errorCode) && { isHeldBack: true }),
  };
}

/** A warning for the agent that gets the text of `forAgent`: an event that is sent twice may count twice. */
const UNKNOWN_END = "The unknown ones may have counted: check before you send them again.";

/**
 * Returns a text that a person can give to an agent, which then fixes the failures: the run, each reason with its
 * positions, and the call that returns the rows. Undefined if nothing failed.
 */
export function forAgent(
  { runId, tool, fileName, actions }: RunRow,
  failures: readonly FailureRow[],
): string | undefined {
  if (failures.length === 0) return undefined;
  const reasons = failures.map(
    ({ count, places, message, remedy, outcome }) =>
      `- ${count} ${OUTCOME_WORDS[outcome]} (${places}): ${message.replace(/\.$/, "")}. ${remedy}`,
  );
  const call = (which: string) => `Their input: get_run {"runId":"${runId}","outcome":"${which}","includeInput":true}`;
  const has = (which: FailureRow["outcome"]) => failures.some(({ outcome }) => outcome === which);
  const ends = [
    ...(has("failed") ? [call("failed"), "Fix the failed ones, and send only these again."] : []),
    ...(has("unknown") ? [call("unknown"), UNKNOWN_END] : []),
    ...(has("notApplied") && actions.includes("resume") ? [`resume_run {"runId":"${runId}"} applies the rest.`] : []),
  ];
  const from = fileName === undefined ? "" : `, ${fileName}`;
  return [`In run ${runId} (${tool}${from}), these did not succeed:`, ...reasons, ...ends].join("\n");
}

/** The maximum number of characters of the positions of a failure. */
const PLACES_LETTERS = 300;
const FIRST_VALUES = 2;
/** The maximum number of characters of a wrong value. The web page shows as many. */
const VALUE_LETTERS = 40;

/** Returns the positions in the input of the objects that failed for one reason: `lines 6, 23, 40-44 and 17 more`. */
function placesOf({ count, places, placesOmitted, byLine }: SummarizedFailure): string {
  let shown = places.length;
  while (shown > 1 && placesWords(places.slice(0, shown), { byLine }).length > PLACES_LETTERS) shown -= 1;
  const first = places.slice(0, shown);
  const named = first.reduce((sum, [from, to]) => sum + to - from + 1, 0);
  const isCut = placesOmitted || shown < places.length;
  return placesWords(first, { byLine }) + (isCut ? ` and ${thousands(Math.max(1, count - named))} more` : "");
}

/**
 * Returns examples for a failure: the names of its first objects or, if they have no names, their wrong values.
 * `areAll`: no object has another name or value.
 */
function examplesOf(failure: SummarizedFailure): Pick<FailureRow, "examples" | "areAll"> {
  const { count, examples, details = [], detail, isOfFirst } = failure;
  const names = examples.map(({ name }) => name);
  const values = [detail, ...details.map(({ reason }) => reason.detail)].flatMap((one) =>
    typeof one?.value === "string" ? [one.value] : [],
  );
  const some = names.length > 0 ? names : values;
  // Values that are equal after they are cut are shown once.
  const shown = [...new Set(some.map((text) => cutText(text, VALUE_LETTERS)))];
  // If all rows are reported as duplicates of one other row, they all have its name, so no other names are missing.
  const isOneName =
    failure.errorCode === "DUPLICATE_IN_INPUT" && !isOfFirst && !failure.isOfKinds && details.length === 0;
  const areAll = shown.length <= FIRST_VALUES && (some.length >= count || isOneName);
  return { examples: shown.slice(0, FIRST_VALUES), ...(areAll && { areAll }) };
}

const [SHORTEST, LONGEST] = [LIMITS.nameMinLength.value, LIMITS.nameMaxLength.value];

/** The words for each rule that an invalid name can break. */
const NAME_CAUSES: Readonly<Record<string, string>> = {
  decomposed: "has decomposed Hangul",
  tooShort: `under ${SHORTEST} characters`,
  tooLong: `over ${LONGEST} characters`,
  outerSpace: "begins or ends with space",
};

/**
 * Returns what is wrong with invalid names in a few words. All names of one failure break the same rules. Undefined if
 * there are no words for these rules.
 */
function nameCause({ details = [], detail = {}, count }: SummarizedFailure): string | undefined {
  const each = details.length === 0 ? [detail] : details.map(({ reason }) => reason.detail ?? {});
  const textsOf = (list: unknown): readonly string[] => (Array.isArray(list) ? list.map(String) : []);
  const rules = textsOf(each[0]?.rules);
  if (rules.includes("tooShort") && each[0]?.length === 0) return "name is empty";
  const found = [...new Set(each.flatMap(({ characters }) => textsOf(characters)))];
  const isCut = details.length > 0 && count > details.length;
  const parts = [
    ...rules.flatMap((rule) => (Object.hasOwn(NAME_CAUSES, rule) ? [NAME_CAUSES[rule]] : [])),
    ...(found.length > 0 ? [`contains ${characterList(found)}${isCut ? ", …" : ""}`] : []),
  ];
  return parts.length === 0 ? undefined : `name ${parts.join(", ")}`;
}

/** The words for the most frequent kinds of damage to cells. */
const DAMAGE_CAUSES: Readonly<Record<string, string>> = {
  scientific: "rounded by a spreadsheet",
  date: "changed into a date",
  formulaError: "is a formula error",
  misread: "has a wrong encoding",
  undecoded: "has a wrong encoding",
};

/**
 * Returns what is wrong with events that were deliberately not sent: the part of the message after the colon. The
 * heading already says that they were not sent. Undefined if the message is about only the first of these events.
 */
function heldCause({ isOfFirst, message }: SummarizedFailure): string | undefined {
  return isOfFirst ? undefined : /: (.+)/s.exec(message)?.[1];
}

/** Returns the details of the first object of a failure. */
function detailOf({ detail, details }: SummarizedFailure): NonNullable<SummarizedFailure["detail"]> {
  return detail ?? details?.[0]?.reason.detail ?? {};
}

const NAME_EXISTS = "name already exists";

/** The maximum number of repeated rows that a cause names, each with the earlier row. The message names up to 20. */
const MAX_REPEATS = 3;

/** Returns which rows have the names of which earlier ones: `line 302 = 298, line 305 = 299, …`. */
function repeatsOf({ details = [], count }: SummarizedFailure, most?: number): string {
  const shown = details
    .slice(0, most)
    .map(({ reason, ...place }) => `${placeWords(place)} = ${earlierPlace(reason.detail ?? {})}`);
  return shown.join(", ") + (count > shown.length ? ", …" : "");
}

/** Returns what rows repeat whose names are in earlier rows. Undefined if there are no such rows. */
function repeatCause(failure: SummarizedFailure): string | undefined {
  const { details, byLine } = failure;
  const detail = detailOf(failure);
  const place = earlierPlace(detail);
  if (place === undefined || detail.field === "_id") return undefined;
  const isSame = detail.contexts === "same";
  if (details !== undefined) return `${isSame ? "row" : "name"} used twice: ${repeatsOf(failure, MAX_REPEATS)}`;
  const others = detail.contexts === "other" ? ", other Context IDs" : "";
  return `${isSame ? "equals" : "repeats"} ${byLine ? "line" : "item"} ${place}${others}`;
}

/**
 * The words for other frequent failures, by error code. For a code without an entry, the page shows the whole message.
 */
const CAUSES: Readonly<Record<string, (failure: SummarizedFailure) => string | undefined>> = {
  INVALID_NAME: nameCause,
  INVALID_CONTEXT_ID: (failure) =>
    detailOf(failure).rule === "tooLong" ? `Context ID over ${LIMITS.contextIdBytes.value} bytes` : undefined,
  INVALID_ROW(failure) {
    const { damage, what } = detailOf(failure);
    const key = String(damage);
    return Object.hasOwn(DAMAGE_CAUSES, key) ? `${what} ${DAMAGE_CAUSES[key]}` : undefined;
  },
  TARGETING_CATEGORY_NAME_DUPLICATE: (failure) => repeatCause(failure) ?? NAME_EXISTS,
  DUPLICATE_IN_INPUT: repeatCause,
  NAME_NOT_FOUND(failure) {
    const { isOfFirst, isOfKinds, message } = failure;
    if (detailOf(failure).field !== "parentName") return undefined;
    return isOfFirst || isOfKinds
      ? "group does not exist"
      : message.replace("the targeting has no option group named", "no group");
  },
  EXISTS: () => NAME_EXISTS,
  NEEDS_FAILED: () => "row of its group failed",
  EVENT_IGNORED: heldCause,
  EVENT_REJECTED: heldCause,
};

/** Returns the cause of a failure in a few words. Undefined if `CAUSES` has no words for it. */
function causeOf(failure: SummarizedFailure): string | undefined {
  const { errorCode } = failure;
  return Object.hasOwn(CAUSES, errorCode) ? CAUSES[errorCode]?.(failure) : undefined;
}

/**
 * For failures in which each object has its own wrong value: what is wrong with all of these values, by error code and
 * rule.
 */
const IN_COMMON: Readonly<Record<string, string>> = {
  "INVALID_NAME characters": "not allowed in a name",
  "INVALID_NAME tooLong": `name longer than ${LIMITS.nameMaxLength.value} characters`,
  "INVALID_NAME tooShort": `name shorter than ${LIMITS.nameMinLength.value} characters`,
  "INVALID_CONTEXT_ID tooLong": `Context ID longer than ${LIMITS.contextIdBytes.value} bytes`,
};

/**
 * Returns the message of a failure. If each object has its own message, returns what the messages have in common, or
 * one of them as an example.
 */
function sharedMessage(failure: SummarizedFailure): string {
  const { isOfFirst, isOfKinds, errorCode, count, details = [], message } = failure;
  if (!isOfFirst) return message;
  const each = details.map(({ reason }) => reason.detail ?? {});
  const [detail = {}] = each;
  const [rule] = Array.isArray(detail.rules) ? detail.rules : [detail.rule];
  const key = `${errorCode} ${String(rule)}`;
  const common = Object.hasOwn(IN_COMMON, key) ? IN_COMMON[key] : undefined;
  const hasOneRule = each.every(({ rules }) => !Array.isArray(rules) || rules.length === 1);
  if (isOfKinds && (common === undefined || !hasOneRule)) return message;
  if (common === undefined) {
    if (causeOf(failure) === undefined || earlierPlace(detail) === undefined) return `for example, ${message}`;
    return `same name${detail.contexts === "same" ? " and Context IDs" : ""} as an earlier one: ${repeatsOf(failure)}`;
  }
  const found = each.flatMap(({ characters }) => (Array.isArray(characters) ? characters.map(String) : []));
  if (rule !== "characters") return common;
  return `${common}: ${characterList([...new Set(found)])}${count > details.length ? ", …" : ""}`;
}

/**
 * Returns one page of the rows or items that did not succeed. With `of=unknown` in the query, those with an unknown
 * result; otherwise those that failed or were not applied.
 */
export function problemList(run: Run, query: URLSearchParams): ProblemList {
  const { state } = run;
  const reader = readerOf(run.status() === "interrupted" || run.status() === "cancelled");
  const from = Math.max(0, Math.trunc(Number(query.get("from"))) || 0);
  const isUnknown = query.get("of") === "unknown";
  const rows: ProblemRow[] = [];
  let total = 0;
  for (let object = 0; object < state.objects.length; object += 1) {
    const outcome = outcomeOf(state.standing(object));
    const reason = state.reason(object);
    if (outcome === undefined || reason === undefined || (outcome === "unknown") !== isUnknown) continue;
    total += 1;
    if (total <= from || rows.length === MAX_ROWS) continue;
    const result = objectResult(state, object);
    const { message: problem, remedy: suggestion } = messageFor(reason, reader);
    const value = result.name ?? result._id ?? String(reason.detail?.value ?? "");
    rows.push({
      ...{ outcome, place: placeWords(result), value: value.slice(0, MAX_LETTERS) },
      ...{ problem, suggestion },
    });
  }
  return { rows, total };
}

function outcomeOf(standing: string): FailureRow["outcome"] | undefined {
  return (["skipped", "failed", "notApplied", "unknown"] as const).find((one) => one === standing);
}

/** Returns one page of the requests that a run sent, from its journal. Undefined if the run changes no targetings. */
export async function requestList(
  run: Run,
  query: URLSearchParams,
  { runs }: Pick<ToolServices, "runs">,
): Promise<RequestList | undefined> {
  if (!isChangeRun(run)) return undefined;
  const from = Math.max(0, Math.trunc(Number(query.get("from"))) || 0);
  const all: RequestRow[] = [];
  for await (const text of (await runs.stored(run.header.runId))?.entries ?? []) {
    const { data: entry } = SENDING.test(text) ? journalEntry.safeParse(parseJson(text)) : {};
    const last = all.at(-1);
    const result = entry && resultWords(entry);
    if (entry?.t === "send") all.push({ at: entry.at, what: requestWords(run, entry.steps), result: UNANSWERED });
    else if (entry?.t === "withheld") all.pop();
    else if (result !== undefined && last?.result === UNANSWERED) all.splice(-1, 1, { ...last, result });
  }
  return { rows: all.slice(from, from + MAX_ROWS), total: all.length };
}

/**
 * Matches the journal entries that say what was sent and answered. Only these are parsed: other entries can be long.
 */
const SENDING = /^\{"t":"(?:send|answer|withheld|waited)"/;
const UNANSWERED = "no answer";

function requestWords({ state }: ChangeRun, steps: readonly number[]): string {
  const operation = state.steps.partAt(steps[0] ?? 0)?.operation;
  const what = operation === undefined ? "a request" : OPERATION_WORDS[operation];
  return `${capitalized(what)}: ${many(steps.length, "item")}`;
}

/** Describes the result of a request that this entry shows. Undefined if it shows none. */
function resultWords(entry: JournalEntry): string | undefined {
  if (entry.t === "waited") {
    const what = entry.statusCode === undefined ? UNANSWERED : `answered with status ${entry.statusCode}`;
    return `${what}; sent again after ${(entry.ms / 1000).toFixed(1)} s`;
  }
  // An answer without a result for any item is not described: the entry `waited`, which follows it, is described.
  if (entry.t !== "answer" || (entry.changes.length === 0 && entry.made === undefined)) return undefined;
  const failed = entry.changes.filter(({ to }) => to === "failed").length;
  const others = entry.changes.filter(({ to }) => to === "refused" || to === "unknown" || to === "notApplied").length;
  const words = [failed > 0 && `${many(failed, "item")} failed`, others > 0 && `${many(others, "item")} not applied`];
  return words.filter((one) => one !== false).join(", ") || "done";
}

/** The maximum number of entries in each list of a plan on the page. `omitted` counts the others. */
const MAX_DIFFERENCES = 70;

export function planView(document: PlanDocument, services: ToolServices): PlanView {
  const { plan, wayBack } = document;
  const omitted: Record<string, number> = {};
  const first = <T>(name: keyof NonNullable<PlanView["omitted"]>, list: readonly T[]): readonly T[] => {
    if (list.length > MAX_DIFFERENCES) omitted[name] = list.length - MAX_DIFFERENCES;
    return list.slice(0, MAX_DIFFERENCES);
  };
  const others = wayBack?.rows.filter(({ undo }) => undo !== "exact") ?? [];
  const refused = [...whyNotApplied(document, services), ...plan.problems.map(({ message }) => message)];
  return {
    conflicts: first("conflicts", plan.conflicts).map(shownDifference),
    drift: first("drift", plan.drift).map(shownDifference),
    refused: refused.slice(0, MAX_DIFFERENCES),
    // If only the ID is new, the reason says so, and a label would say it again.
    differs: first("differs", others).map((row) =>
      row.reasons?.join() === "newId" ? undoneObject(row, []) : undoLine(row),
    ),
    omitted,
  };
}

function shownDifference({ name, _id, field, base, file, service }: Difference): PlanDifference {
  return { name, _id, field: FIELD_WORDS[field], base, file, service };
}

function isPlan(run: Run): boolean {
  return isChangeRun(run) && run.header.call.tool === "apply_plan";
}

/** Returns the path of the file that a run saved, and what it contains. Undefined if the run saved none. */
export function savedBy(run: Run): RunDetail["saved"] {
  if (!isSaveRun(run) || run.state.saved === undefined) return undefined;
  const { savedTo, counts } = run.state.saved;
  return { path: savedTo, says: `${many(counts.options, "option")}, ${many(counts.contextIds, "Context ID")}` };
}

export async function filesOf(run: Run, { runs }: ToolServices): Promise<readonly RunFile[]> {
  if (isSaveRun(run)) return [];
  const { runId } = run.header;
  const kept = await Promise.all(
    (["rejects", "removed"] as const).map(async (part) => {
      const content = part === "removed" ? removedLines(run, part, { runs }) : runs.part(runId, part)();
      for await (const chunk of content) if (chunk.length > 0) return [part];
      return [];
    }),
  );
  const isBegun = run.state.objects.length > 0 && run.status() !== "needs_confirmation" && run.status() !== "planned";
  const isPlanned = run.status() === "planned" && isPlan(run);
  const hasSheet = (isBegun || isPlanned) && sheetRunOf(run) !== undefined;
  return [
    ...(hasSheet ? ["sheet" as const] : []),
    ...(isBegun ? ["results" as const] : []),
    ...kept.flat(),
    ...(isPlan(run) ? ["plan" as const] : []),
  ];
}

/** Returns a file of a run as a download; undefined if the run has no such file. */
export async function downloadOf(run: Run, file: string, services: ToolServices): Promise<Response | undefined> {
  const known = (await filesOf(run, services)).find((one) => one === file);
  if (known === undefined) return undefined;
  const { runId } = run.header;
  const name = downloadName(run);
  if (known === "sheet") return savedSheet(run, services);
  if (known === "plan") return fileAnswer(`${name}-plan.json`, (await planTextOf(run, services)) ?? "");
  if (known === "results") return fileAnswer(`${name}-results.ndjson`, resultsOf(run));
  if (known === "removed") return fileAnswer(`${name}-removed.ndjson`, removedLines(run, known, services));
  const isTable = known === "rejects" && JSON.stringify(run.header.call).includes('"format":"csv"');
  return fileAnswer(`${name}-failed.${isTable ? "csv" : "ndjson"}`, services.runs.part(runId, known)());
}

/**
 * Returns the first part of the names of the downloads of a run: the name of the input file without its extension, or
 * the run ID.
 */
function downloadName({ header: { runId, fileName } }: Run): string {
  return fileName?.replace(/\.[^.]*$/, "") || runId;
}

/**
 * Returns the sheet that the caller gave the run, in its original format and with the result of each row added.
 * Undefined if the run has no sheet.
 */
async function savedSheet(run: Run, services: ToolServices): Promise<Response | undefined> {
  const asked = sheetRunOf(run);
  if (asked === undefined) return undefined;
  // Imported only when needed, because few people download the sheet.
  const { formOfSheet, readSheetRun, resultSheet } = await import("../tools/result-sheet.ts");
  const found = await readSheetRun(asked, services);
  const form = formOfSheet(found);
  const ending = form.format === "xlsx" ? "xlsx" : form.delimiter === "\t" ? "tsv" : "csv";
  const bytes = async function* (): AsyncGenerator<Uint8Array> {
    for await (const piece of resultSheet(found, form, services)) {
      yield typeof piece === "string" ? Buffer.from(piece) : piece;
    }
  };
  return fileAnswer(`${downloadName(run)}-results.${ending}`, bytes());
}

const LINES = 500;

async function* resultsOf(run: Run): AsyncGenerator<Uint8Array> {
  const count = run.state.objects.length;
  for (let from = 0; from < count; from += LINES) {
    const some = Array.from({ length: Math.min(LINES, count - from) }, (_, at) => resultLine(run, from + at));
    yield Buffer.from(some.join(""));
  }
}
