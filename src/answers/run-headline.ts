import { differenceOf } from "../platform/by-key.ts";
import { amount, capitalized, thousands } from "../platform/text.ts";
import type { EndedRun } from "../runs/kind-runs.ts";
import type { Did, Elsewhere, RowCounts } from "../runs/outcome.ts";
import type { Interrupted } from "../runs/registry.ts";
import type { OptionCounts, RunStatus } from "../runs/report.ts";
import type { Approval } from "./approvals.ts";
import { fenceIfForeign, joinedRanges, namedInSentence, placesWords, quoteShort, quoteUntrusted } from "./fence.ts";
import { many } from "./message-words.ts";
import type { ReportedRun } from "./run-results.ts";

interface Work {
  readonly done: string;
  readonly todo: string;
  readonly noun: string;
}

const CHANGE: Work = { done: "Applied", todo: "apply", noun: "change" };
const EVENT: Work = { done: "Sent", todo: "send", noun: "event" };
const SAVED: Work = { done: "Saved", todo: "save", noun: "file" };

const WORK: Readonly<Record<string, Work>> = {
  create_targetings: { done: "Created", todo: "create", noun: "targeting" },
  rename_targetings: { done: "Renamed", todo: "rename", noun: "targeting" },
  delete_targeting: { done: "Deleted", todo: "delete", noun: "targeting" },
  bulk_add_options: { done: "Created", todo: "create", noun: "option" },
  update_options: { done: "Changed", todo: "change", noun: "option" },
  update_contexts: { done: "Changed", todo: "change", noun: "option" },
  delete_options: { done: "Deleted", todo: "delete", noun: "option" },
  track_event: EVENT,
  track_events: EVENT,
  list_options: SAVED,
  get_option: SAVED,
  get_run: SAVED,
};

const BEFORE: Readonly<Partial<Record<RunStatus, string>>> = {
  running: "Still running; ",
  interrupted: "Interrupted; ",
  cancelled: "Cancelled; ",
  planned: "Planned; nothing was sent. ",
  needs_confirmation: "Approval required; nothing was sent. ",
};

/** Returns the first line of an answer about a run: what was done and what was not, where, and the run ID. */
export function headline(run: ReportedRun): string {
  const { status, runId, environment, counts } = run;
  const ran = runId === undefined ? `Environment: ${environment}.` : `Run ${runId}, ${environment}.`;
  if (counts.items === 0 && status === "running") {
    const reading = run.file === undefined ? "preparing the requests" : "reading the file";
    const what = run.tool === "undo_run" ? "finding out what unanswered requests changed" : reading;
    return `Still ${what}; nothing was sent. ${ran}`;
  }
  if (WORK[run.tool] === SAVED && status === "running") return `The file is still being written. ${ran}`;
  const isDryRunOfEvents = status === "planned" && WORK[run.tool] === EVENT;
  // The dry run of a single event is not stored as a run.
  const dryRun = `Dry run; nothing was sent${runId === undefined ? " or stored" : ""}. `;
  const before = isDryRunOfEvents ? dryRun : (BEFORE[status] ?? "");
  const result = resultWords(run);
  const sentence = before.endsWith("; ") ? result.charAt(0).toLowerCase() + result.slice(1) : result;
  return [`${before}${sentence}${sentence === "" ? "" : "."}`.trim(), sheetWords(run), requestWords(run), ran]
    .filter((part) => part !== "")
    .join(" ");
}

/** Returns words for the sheet that was read. Empty if the workbook has no other sheet. */
function sheetWords({ file }: ReportedRun): string {
  const { otherSheets = 0 } = file?.seen ?? {};
  if (otherSheets === 0) return "";
  const { sheet = "" } = file?.sheet ?? {};
  return `Only the sheet ${quoteShort(sheet)} was read, 1 of ${thousands(otherSheets + 1)}; the argument sheet chooses another.`;
}

function resultWords(run: ReportedRun): string {
  const { status, counts, tool, newOptions, did } = run;
  const work = WORK[tool] ?? CHANGE;
  // Several items can change the same option. So the total counts items.
  const allNoun = run.options === undefined ? work.noun : "item";
  const all = ofAll(counts.items, counts.items, allNoun, newOptions && { ...newOptions, count: newOptions.items });
  const rest = restWords(run);
  const also = rest.length === 0 ? "" : `; ${rest.join(", ")}`;
  if (status === "planned" || status === "needs_confirmation") {
    // The line of a waiting run is short, because the effect that needs approval follows it.
    if (status === "needs_confirmation") return rest.length === 0 ? "" : `${all}${also}`;
    return `Would ${wouldWords(run, work)}${also}`;
  }
  const [first, ...others] = doneWords(run, work);
  if (first !== undefined) return `${[first, ...others].join(", ")}${whereWords(run)}${also}`;
  if (rest.length === 0) return `No ${work.noun} to ${work.todo}`;
  if (BEFORE[status] !== undefined) {
    const [only = "", ...others] = rest;
    // If all objects have the same outcome, only this outcome is named.
    if (others.length === 0) return only.replace(/^[\d,]+/, all);
    return `${all}: ${rest.join(", ")}`;
  }
  const isAll = counts.items > 1 && rest.length === 1 ? "all " : "";
  // "No option was changed" would be wrong if results are unknown, if some options were found deleted, or if options of
  // new targetings are counted.
  const isNone = counts.unknown === 0 && !did?.gone && (newOptions?.items ?? 0) === 0;
  const none = isNone ? `No ${work.noun} was ${work.done.toLowerCase()}` : all;
  return `${none}${whereWords(run)}: ${isAll}${rest.join(", ")}`;
}

/** Returns what a call would do. A call that adds options can also add Context IDs to options that exist. */
function wouldWords(run: ReportedRun, { todo, noun }: Work): string {
  const { tool, counts, plan = [], extended, newOptions, did, options } = run;
  const { pending, items, failed } = counts;
  if (options !== undefined) return changedOptions(options, options.pending, items, { done: todo, left: "leave" });
  // If an item would fail, the planned requests do not show how many options are changed.
  const requested = tool === "bulk_add_options" && failed === 0 ? plan : [];
  const updates = requested.reduce((sum, one) => sum + (one.operation === "updateOptions" ? one.items : 0), 0);
  const same = did?.same ?? 0;
  const unchanged = same === 0 ? "" : `, leave ${thousands(same)} unchanged`;
  const added = Math.max(0, (extended ?? updates) - same);
  if (added === 0) {
    const count = pending - same;
    if (count === 0 && same === 0) return `${todo} no ${noun}`;
    return `${todo} ${ofAll(count, items, noun, newOptions && { ...newOptions, count: newOptions.pending })}${unchanged}`;
  }
  const created = pending - added - same;
  const words = created === 0 ? ofAll(added, items, noun) : thousands(added);
  const extending = `add Context IDs to ${words} that ${added === 1 ? "exists" : "exist"}`;
  return `${created === 0 ? extending : `${todo} ${ofAll(created, items, noun)}, ${extending}`}${unchanged}`;
}

/** Returns how many options are changed and how many stay the same. Adds the number of items if it is different. */
function changedOptions(
  { same, objects }: OptionCounts,
  changed: number,
  items: number,
  { done, left }: { readonly done: string; readonly left: string },
): string {
  const words = [
    changed > 0 && `${done} ${many(changed, "option")}`,
    same > 0 && (changed > 0 ? `${left} ${thousands(same)} unchanged` : `${left} ${many(same, "option")} unchanged`),
  ].filter((part) => part !== false);
  if (words.length === 0) return `${done} no option`;
  const isOneEach = objects === items && changed + same === items;
  return `${words.join(", ")}${isOneEach ? "" : ` (${ofAll(objects, items, "item")})`}`;
}

const DID: readonly Did[] = ["created", "changed", "deleted", "same"];

function doneWords(run: ReportedRun, { done, noun }: Work): readonly string[] {
  const { did, tool, counts, newOptions } = run;
  const { succeeded, items } = counts;
  if (succeeded === 0) return [];
  if (run.options !== undefined) {
    const words = { done: "changed the Context IDs of", left: "left" };
    return [capitalized(changedOptions({ ...run.options, objects: succeeded }, run.options.changed, items, words))];
  }
  const kinds = DID.flatMap((kind) => (did !== undefined && did[kind] > 0 ? [{ kind, count: did[kind] }] : []));
  const [only, ...more] = kinds;
  const options = newOptions && { ...newOptions, count: newOptions.succeeded };
  // If all items succeeded, the counts of the kinds add up to the total, so the total is not stated.
  const counted = (count: number, isFirst: boolean): string =>
    isFirst ? ofAll(count, succeeded === items ? count : items, noun, options) : thousands(count);
  const words = {
    created: (count: number, isFirst: boolean) => `created ${counted(count, isFirst)}`,
    changed: (count: number, isFirst: boolean) => {
      if (tool === "bulk_add_options") return `added Context IDs to ${counted(count, isFirst)} that existed`;
      return `${tool === "rename_targetings" ? "renamed" : "changed"} ${counted(count, isFirst)}`;
    },
    deleted: (count: number, isFirst: boolean) => `deleted ${counted(count, isFirst)}`,
    same: (count: number, isFirst: boolean) => `left ${counted(count, isFirst)} unchanged`,
  } satisfies Record<Did, unknown>;
  const all = `${done} ${ofAll(succeeded, items, noun, options)}`;
  if (only === undefined) return [all];
  if (noun === CHANGE.noun) return [`${all}: ${kinds.map(({ kind, count }) => words[kind](count, false)).join(", ")}`];
  return [capitalized(words[only.kind](only.count, true)), ...more.map(({ kind, count }) => words[kind](count, false))];
}

function restWords({ counts, status, tool, did, failures }: ReportedRun): readonly string[] {
  const { alreadyDone, skipped = 0, failed, notApplied, unknown, pending } = counts;
  const { gone = 0 } = did ?? {};
  const [would, verb] = status === "planned" ? ["would be ", "would fail"] : ["", "failed"];
  return [
    gone > 0 && `${thousands(gone)} found deleted when the deletion was sent again`,
    alreadyDone > gone &&
      `${thousands(alreadyDone - gone)} ${WORK[tool] === EVENT ? "" : would}${ALREADY_WORDS[tool] ?? "already done"}`,
    skipped > 0 && `${thousands(skipped)} ${would}skipped`,
    failed > 0 && `${thousands(failed)} ${status === "needs_confirmation" ? "cannot be done" : verb}`,
    notApplied > 0 && `${thousands(notApplied)} not applied`,
    unknown > 0 &&
      `${thousands(unknown)} unknown (${mayBeUnsent(failures) ? "may have been sent" : "sent, result not known"})`,
    pending > 0 && status !== "planned" && status !== "needs_confirmation" && `${thousands(pending)} pending`,
  ].filter((part) => part !== false);
}

function mayBeUnsent(failures: ReportedRun["failures"]): boolean {
  return failures.some(({ outcome, isUnsure = false }) => outcome === "unknown" && isUnsure);
}

const ALREADY_WORDS: Readonly<Record<string, string>> = {
  create_targetings: "already there",
  bulk_add_options: "already there",
  delete_options: "already deleted",
  delete_targeting: "already deleted",
  track_events: "already sent",
};

/** Returns a count with its total and noun: `30 of 60 options`. `options`: those in new targetings, counted apart. */
function ofAll(count: number, all: number, noun: string, options = { count: 0, items: 0 }): string {
  if (options.items === 0) return count === all ? many(count, noun) : `${thousands(count)} of ${many(all, noun)}`;
  const [outer, outerAll] = [count - options.count, Math.max(all, options.items) - options.items];
  return `${ofAll(outer, outerAll, noun)} with ${ofAll(options.count, options.items, "option")}`;
}

function whereWords({ totals, tool, counts }: ReportedRun): string {
  if (totals === undefined) return "";
  const { name, targetingId, optionCount } = totals;
  const of = namedInSentence(name, targetingId);
  const prefix = tool === "delete_options" && counts.succeeded > 0 ? " from" : " in";
  const isUpdate = tool.startsWith("update");
  const all = isUpdate || tool === "apply_plan" ? many(optionCount, "option") : thousands(optionCount);
  return `${prefix} ${of}, which ${isUpdate ? "has" : "now has"} ${all}`;
}

/** Returns a note about requests that were sent and not answered yet. The count of requests does not include them. */
export function unansweredNote({ unanswered = 0 }: ReportedRun): readonly string[] {
  const requests = unanswered === 1 ? "request has" : "requests have";
  return unanswered === 0 ? [] : [`up to ${unanswered} more ${requests} no answer yet`];
}

/** Returns which answers made this server send requests again: ` (the service answered 3 times with status 503)`. */
function statusWords(failedWith: ReportedRun["failedWith"]): string {
  const each = [...(failedWith ?? [])].map(([status, times]) => `${many(times, "time")} with status ${status}`);
  return each.length === 0 ? "" : ` (the service answered ${each.join(", ")})`;
}

function requestWords({ requests, failedWith, unanswered = 0, tool, status, failures }: ReportedRun): string {
  // If the service was locked, a note already says how often and how long this server has tried.
  const isBusy = failures.some(({ errorCode }) => errorCode === "BUSY" || errorCode === LOCKED);
  if (requests === undefined || status === "planned" || isBusy) return "";
  const { sent, resent, waitedMs } = requests;
  if (sent === 0) return "";
  const isAsExpected = WORK[tool] === EVENT ? resent === 0 && unanswered === 0 : sent <= 1;
  if (isAsExpected && waitedMs < SHORTEST_WAIT_MS) return "";
  const parts = [
    `${many(sent, "request")}${unanswered > 0 ? " answered" : ""}`,
    resent > 0 && `${thousands(resent)} resent${statusWords(failedWith)}`,
    waitedMs >= SHORTEST_WAIT_MS && `${seconds(waitedMs)} waited`,
  ].filter((part) => part !== false);
  return `${parts.join(", ")}.`;
}

const LOCKED = "CONTEXT_TARGETING_WRITE_IN_PROGRESS";
const SHORTEST_WAIT_MS = 1000;
const WHOLE_SECONDS_FROM_MS = 10_000;

function seconds(ms: number): string {
  return `${ms < WHOLE_SECONDS_FROM_MS ? Math.round(ms / 100) / 10 : Math.round(ms / 1000)} s`;
}

/**
 * The tools that ask a person before they remove something. Their answers have the field `approval` even if no approval
 * was needed. Answers of other tools have it only if approval was requested, or with `alwaysReportsApproval`.
 */
const ASKING_TOOLS: ReadonlySet<string> = new Set([
  "delete_targeting",
  "delete_options",
  "update_contexts",
  "apply_plan",
]);

/** Returns the approval to report. None before a run starts. If none was needed, only some tools report that. */
export function reportedApproval({ approval, tool, status, alwaysReportsApproval }: ReportedRun): Approval | undefined {
  if (approval === undefined || status === "planned" || status === "needs_confirmation") return undefined;
  return alwaysReportsApproval || ASKING_TOOLS.has(tool) || approval.decision !== "not_needed" ? approval : undefined;
}

/** Returns a note on how many rows of a file became items. Empty if each row is an item. */
export function rowsNote({ rows, ...run }: Pick<ReportedRun, "rows" | "failures" | "status">): readonly string[] {
  if (rows === undefined) return [];
  const { read, merged, skipped, joined = [] } = rows;
  if (merged + skipped === 0) return [];
  const parts = [
    `${many(read, "row")} of the file made ${many(read - merged, "item")}`,
    merged > 0 &&
      `${many(merged, "row")} merged into ${merged === 1 ? "an earlier row" : "earlier rows"}${joinedWords(joined, run)}`,
    skipped > 0 && `${many(skipped, "empty row")} skipped`,
  ].filter((part) => part !== false);
  return [parts.join("; ")];
}

/** Returns which rows joined items of earlier rows and, if such an item failed, how many rows failed with it. */
function joinedWords(
  joined: NonNullable<RowCounts["joined"]>,
  { failures, status }: Pick<ReportedRun, "failures" | "status">,
): string {
  if (joined.length === 0) return "";
  const byItem = new Map<number, number[]>();
  for (const { line, of } of joined) byItem.set(of, [...(byItem.get(of) ?? []), line]);
  const words = [...byItem].map(([of, lines]) => {
    const ranges = joinedRanges(lines.map((line) => [line, line]));
    return `${placesWords(ranges, { byLine: true })} into line ${of}`;
  });
  const failed = failures.filter(({ outcome }) => outcome === "failed");
  const hasFailed = (line: number): boolean =>
    failed.some(({ places }) => places.some(([from, to]) => line >= from && line <= to));
  const further = joined.filter(({ of }) => hasFailed(of)).length;
  const isCounted = further > 0 && failed.every(({ placesOmitted }) => !placesOmitted);
  const sum = failed.reduce((total, { count: items }) => total + items, further);
  const counted = isCounted ? `, so ${many(sum, "row")} ${status === "planned" ? "would fail" : "failed"}` : "";
  return ` (${words.join("; ")})${counted}`;
}

const MAX_MATCHES_SHOWN = 5;

/** Returns notes about names that matched inexactly, and new names that almost equal those of existing options. */
export function fuzzyMatchNote({ takenFor = [], nearNames = [] }: ReportedRun): readonly string[] {
  const near = pairWords(nearNames, "was not matched to");
  return [
    ...pairWords(takenFor, "matched"),
    ...near.map((words) => `${words}: the option with the given name is a new one`),
  ];
}

function pairWords(pairs: NonNullable<ReportedRun["takenFor"]>, verb: string): readonly string[] {
  if (pairs.length === 0) return [];
  const named = pairs
    .slice(0, MAX_MATCHES_SHOWN)
    .map(({ given, name }) => `${quoteUntrusted(given)} ${verb} ${quoteUntrusted(name)}`);
  const more = pairs.length - named.length;
  return [
    `${named.join(", ")}${more > 0 ? `, and ${more} more` : ""}, which ${differenceOf(...pairs.map(({ given, name }) => [given, name] as const))}`,
  ];
}

/** Returns a note about new Context IDs that are almost equal to one that the option already has. */
export function nearNote({ nearIds }: Pick<ReportedRun, "nearIds">): readonly string[] {
  if (nearIds === undefined) return [];
  const { count, first } = nearIds;
  const pairs = first.map(({ given, held }) => `${quoteUntrusted(given)} beside ${quoteUntrusted(held)}`).join(", ");
  const [verb, more] = [count === 1 ? "differs" : "differ", count > first.length ? ", …" : ""];
  return [
    `${many(count, "Context ID")} ${verb} only in case, width or composition from one that the option holds: ${pairs}${more}`,
  ];
}

/** Returns a note about options that are not in the group given for them: adding options does not move them. */
export function elsewhereNote({ elsewhere }: Pick<ReportedRun, "elsewhere">): readonly string[] {
  if (elsewhere === undefined) return [];
  const { count } = elsewhere;
  const names = firstNames(elsewhere);
  return [
    count === 1
      ? `1 option that exists is not in the group that was given for it, and was not moved (update_options moves it): ${names}`
      : `${thousands(count)} options that exist are not in the group that was given for them, and were not moved (update_options moves them): ${names}`,
  ];
}

/** Returns a note about rows with an ID that no option of the targeting has, for example because it was deleted. */
export function missingIdsNote({ missingIds }: Pick<ReportedRun, "missingIds">): readonly string[] {
  if (missingIds === undefined) return [];
  const names = firstNames(missingIds);
  return [
    missingIds.count === 1
      ? `1 row has the ID of an option that is not in the targeting, so it is a new option: ${names}. If that option was deleted on purpose, leave the row out`
      : `${thousands(missingIds.count)} rows have the IDs of options that are not in the targeting, so they are new options: ${names}. If those options were deleted on purpose, leave the rows out`,
  ];
}

function firstNames({ count, first }: Elsewhere): string {
  return `${first.map((name) => quoteUntrusted(name)).join(", ")}${count > first.length ? ", …" : ""}`;
}

/** Returns a note about objects that were not read before the change, and what an undo cannot do for them. */
export function unreadNote({ tool, unread = 0, counts }: ReportedRun): readonly string[] {
  if (unread === 0 || counts.succeeded === 0) return [];
  const what = many(unread, tool === "rename_targetings" ? "targeting" : "option");
  const effect = ["update_options", "rename_targetings"].includes(tool)
    ? `, so an undo cannot restore ${unread === 1 ? "its" : "their"} previous values`
    : " and may have had the added Context IDs already, so an undo does not remove these";
  return [`${what} ${unread === 1 ? "was" : "were"} not read before the change${effect}`];
}

const MAX_COUNTS_SHOWN = 5;

/** Returns a note about options that now have another number of Context IDs than expected. */
export function countsNote({ otherCounts = [] }: ReportedRun): readonly string[] {
  if (otherCounts.length === 0) return [];
  const picked = otherCounts.slice(0, MAX_COUNTS_SHOWN).map(({ name, _id = "?", expected, found }) => {
    const which = name === undefined ? _id : `${quoteUntrusted(name)} (${_id})`;
    const were = expected === 1 ? "was" : "were";
    return `${which} holds ${many(found, "Context ID")}; ${thousands(expected)} ${were} expected`;
  });
  const more = otherCounts.length - picked.length;
  return [
    `${picked.join("; ")}${more > 0 ? `; and ${many(more, "more option")}` : ""}: another writer may have changed this; ` +
      "this run's own changes are applied",
  ];
}

export function resumedNote({ resumed, counts }: ReportedRun): readonly string[] {
  if (resumed === undefined) return [];
  const before = resumed.succeeded + resumed.alreadyDone;
  // How many items were done since the run was resumed. An earlier call may have resumed it.
  const since = counts.succeeded + counts.alreadyDone - before;
  // Items with an unknown result may have been applied already before the run was resumed.
  if (resumed.unknown > 0) {
    const were = (some: number): string => (some === 1 ? "was" : "were");
    const known = `${thousands(before)} of ${thousands(counts.items)} ${were(before)} known to be done before`;
    const more = since > 0 ? `${thousands(since)} more ${since === 1 ? "is" : "are"}` : "none of the others is";
    return [
      `resumed: ${known}, and ${thousands(resumed.unknown)} ${were(resumed.unknown)} unknown; now ${more} known to be done`,
    ];
  }
  return [
    `resumed: ${thousands(before)} of ${thousands(counts.items)} done before, ${since === 0 ? "none" : thousands(since)} since then`,
  ];
}

/** Returns a note that explains extra requests: to swap two names, one object first gets a temporary name. */
export function swapsNote({ temporaryNames = 0, tool, status }: ReportedRun): readonly string[] {
  if (temporaryNames === 0) return [];
  const names = many(temporaryNames, tool === "rename_targetings" ? "targeting" : "option");
  if (status === "planned") {
    const are = temporaryNames === 1 ? "is" : "are";
    return [`names would be swapped, so ${names} ${are} renamed twice, which takes more requests than planned here`];
  }
  return [`names were swapped, so ${names} ${temporaryNames === 1 ? "was" : "were"} renamed twice`];
}

const MAX_NAMED = 3;

export const RESUMED_RUN = "this call was made before and had not finished: its run was resumed";

/** Returns a note that an earlier run of an identical call was unfinished, but that this call has started a new run. */
export function newRunHint({ runId, status }: EndedRun): string {
  return (
    `the same call was made before and ended ${status} (run ${runId}); this is a new run of all its items. ` +
    `resume_run {"runId":"${runId}"} would have done only what was left`
  );
}

export function interruptedHint(runs: readonly Interrupted[]): readonly string[] {
  const named = runs.slice(0, MAX_NAMED).map(({ runId, tool }) => `${runId} (${tool})`);
  const more = runs.length - named.length;
  if (named.length === 0) return [];
  const [noun, it] = runs.length === 1 ? ["an earlier run was", "it"] : ["earlier runs were", "each"];
  const others = more > 0 ? `, and ${more} more` : "";
  return [
    `${noun} interrupted: ${named.join(", ")}${others}; resume_run with its runId finishes ${it}, cancel_run ends ${it}`,
  ];
}

export const STOP_REQUESTED = "the run stops after the request in flight and sends nothing more";
export const STOP_NOT_STORED =
  "this process stops the run after the request in flight, but its store is unavailable. Until it answers, another process may continue the run: then call cancel_run again";

export interface RunRow {
  readonly runId: string;
  /** The tool of the run. It may be unknown if the files of the run are damaged. */
  readonly tool?: string;
  readonly status: string;
  /** The ID of the targeting. Absent if the run is about several or none. */
  readonly targetingId?: string;
  readonly targetingName?: string;
  readonly counts?: Readonly<Record<string, number>>;
  readonly error?: { readonly errorCode: string };
  readonly startedAt: string;
  readonly updatedAt: string;
}

export function runLine(run: RunRow): string {
  const { runId, tool, status, targetingId, targetingName, counts, startedAt, updatedAt } = run;
  const picked = Object.entries(counts ?? {}).flatMap(([what, count]) =>
    count === 0 ? [] : [what === "items" ? many(count, "item") : `${thousands(count)} ${what}`],
  );
  const how = status === "planned" && WORK[tool ?? ""] === EVENT ? "dry run, nothing was sent" : status;
  const outcome = counts === undefined ? "its journal is damaged" : picked.join(", ");
  const where =
    targetingId === undefined ? "" : ` in ${targetingName === undefined ? targetingId : quoteUntrusted(targetingName)}`;
  const changed = updatedAt.slice(0, 19) === startedAt.slice(0, 19) ? "" : `, last change ${withoutMs(updatedAt)}`;
  return `${runId} ${tool ?? "unknown tool"}${where} ${how} (${outcome}) started ${withoutMs(startedAt)}${changed}`;
}

/** Returns the note that says when a run was started, and by which client. `startedAt` is in ms since 1970. */
export function startedNote(startedAt: number, client: string | undefined): string {
  const by = client === undefined ? "" : ` by ${quoteUntrusted(client)}`;
  return `started ${withoutMs(new Date(startedAt).toISOString())}${by}`;
}

function withoutMs(iso: string): string {
  return iso.replace(/\.\d+/, "");
}

/** Lists runs. `left`: how many more runs there are; if the number is not known, the least number. */
export function runsText(
  runs: readonly RunRow[],
  cursor: string | undefined,
  { dryRuns = 0, left = "" }: { readonly dryRuns?: number; readonly left?: string } = {},
): string {
  const omitted = dryRuns === 0 ? [] : [`${amount(dryRuns, "dry run")} not listed: give status "planned".`];
  if (runs.length === 0) return ["There are no such runs.", ...omitted].join(" ");
  const more = cursor === undefined ? [] : [`For more, call again with cursor ${cursor}`];
  const head = `${amount(runs.length, "run")}, the newest first${cursor === undefined ? "" : `, and ${left} more`}:`;
  return [head, ...fenceIfForeign(runs.map(runLine)), ...omitted, ...more].join("\n");
}
