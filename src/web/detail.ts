import { approvalWords } from "../answers/approvals.ts";
import { OPERATION_WORDS } from "../answers/failures.ts";
import { many } from "../answers/message-words.ts";
import { undoLine, undoneObject } from "../answers/plan-answers.ts";
import { FIELD_WORDS } from "../answers/plan-words.ts";
import { sheetNotes } from "../answers/sheets.ts";
import { isApproval } from "../changes/approvals.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { type JournalEntry, journalEntry, type StepChange } from "../changes/rows/entries.ts";
import type { Difference } from "../plans/plan.ts";
import type { PlanDocument } from "../plans/plan-document.ts";
import { parseJson } from "../platform/json.ts";
import { capitalized, thousands } from "../platform/text.ts";
import type { Run } from "../runs/kind.ts";
import { isSaveRun } from "../saves/save-runs.ts";
import type { ToolServices } from "../tools/define-tool.ts";
import { whyNotApplied } from "../tools/kept-plan.ts";
import { planTextOf, removedLines, resultLine, sheetRunOf } from "../tools/run-files.ts";
import { approvalOfRun, fileReadBy } from "../tools/run-reports.ts";
import { pageOf } from "./list-page.ts";
import { fileAnswer } from "./page.ts";
import type { PlanDifference, PlanView, RequestList, RequestRow, RunDetail, RunFile, StoryStep } from "./wire.ts";

const MINUTE_MS = 60_000;

/** Returns the history of a run: requested, decided, checked again, retried. The page adds its status at the end. */
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

/** Returns notes on how the file of a run was read. They are for a person, so they name no arguments of tools. */
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

/** Returns one page of the requests that a run sent, from its journal. Undefined if the run changes no targetings. */
export async function requestList(
  run: Run,
  query: URLSearchParams,
  { runs }: Pick<ToolServices, "runs">,
): Promise<RequestList | undefined> {
  if (!isChangeRun(run)) return undefined;
  const all: RequestRow[] = [];
  for await (const text of (await runs.stored(run.header.runId))?.entries ?? []) {
    const { data: entry } = SENDING.test(text) ? journalEntry.safeParse(parseJson(text)) : {};
    const last = all.at(-1);
    const result = entry && resultWords(entry);
    if (entry?.t === "send") all.push({ at: entry.at, what: requestWords(run, entry.steps), result: UNANSWERED });
    else if (entry?.t === "withheld") all.pop();
    else if (result !== undefined && last?.result === UNANSWERED) all.splice(-1, 1, { ...last, result });
  }
  return pageOf(all, query);
}

/** Matches the journal entries about requests and their answers. Only these are parsed: other entries can be long. */
const SENDING = /^\{"t":"(?:send|answer|withheld|waited)"/;
const UNANSWERED = "no answer";

function requestWords({ state }: ChangeRun, steps: readonly number[]): string {
  const operation = state.steps.partAt(steps[0] ?? 0)?.operation;
  const what = operation === undefined ? "a request" : OPERATION_WORDS[operation];
  return `${capitalized(what)}: ${many(steps.length, "item")}`;
}

/** Describes the result of a request from an entry of the journal. Undefined if the entry contains no result. */
function resultWords(entry: JournalEntry): string | undefined {
  if (entry.t === "waited") {
    const what = entry.statusCode === undefined ? UNANSWERED : `answered with status ${entry.statusCode}`;
    return `${what}; sent again after ${(entry.ms / 1000).toFixed(1)} s`;
  }
  if (entry.t !== "answer") return undefined;
  const count = (...of: readonly StepChange["to"][]): number =>
    entry.changes.filter(({ to }) => of.includes(to)).length;
  // An answer without results of items is skipped: the entry `waited` that follows it describes what happened.
  if (entry.made === undefined && count("suspect", "pending") === entry.changes.length) return undefined;
  const failed = count("failed");
  const others = count("refused", "notApplied", "deferred", "replaced");
  const unknown = count("unknown");
  const words = [
    failed > 0 && `${many(failed, "item")} failed`,
    others > 0 && `${many(others, "item")} not applied`,
    unknown > 0 && `${many(unknown, "item")} with an unknown result`,
  ];
  return words.filter((one) => one !== false).join(", ") || "done";
}

/** The maximum number of entries in each list of a plan on the page. `omitted` counts the others, except `refused`. */
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
    drift: first("drift", plan.drift).map((one) => ({ name: one.name, says: driftWords(one) })),
    refused: refused.slice(0, MAX_DIFFERENCES),
    // If only the ID is new, the reason already says so. The label from `undoLine` would repeat it.
    differs: first("differs", others).map((row) =>
      row.reasons?.join() === "newId" ? undoneObject(row, []) : undoLine(row),
    ),
    omitted,
  };
}

function shownDifference({ name, _id, field, base, file, service }: Difference): PlanDifference {
  return { name, _id, field: FIELD_WORDS[field], base, file, service };
}

/** Says what others have changed since the base. Of Context IDs, only the numbers are known here. */
export function driftWords({ field, base, service }: Difference): string {
  if (field === "deleted") return "was deleted since the file was saved.";
  if (field === "added") return "was added since the file was saved. It is kept.";
  const value = (one: typeof base): string => (one === null ? "top level" : String(one ?? "–"));
  const others = field === "contexts" && base === service ? ", but different ones" : "";
  const sides = `${FIELD_WORDS[field]} ${value(base)} then, ${value(service)} now${others}`;
  return `has changed since the file was saved: ${sides}. It is kept.`;
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

/** Returns the beginning of the names of a run's downloads: the input file's name without extension, or the run ID. */
function downloadName({ header: { runId, fileName } }: Run): string {
  return fileName?.replace(/\.[^.]*$/, "") || runId;
}

/** Returns the run's sheet in its original format, with the result of each row. Undefined if the run has no sheet. */
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
