import { RATE_LIMITED } from "../api/errors.ts";
import type { LeftoverName } from "../changes/change-kinds.ts";
import { isSheet } from "../files/input-file.ts";
import { isJsonObject } from "../platform/json.ts";
import { thousands } from "../platform/text.ts";
import type { SummarizedFailure } from "./failures.ts";
import { joinedRanges, placesWords, plain, quoteUntrusted } from "./fence.ts";
import type { ReportedRun } from "./run-results.ts";

/** The cause of a failure, if changing the failed item does not help. */
type Cause = "file" | "setting" | "network" | "rateLimit" | "limit" | "campaign" | "busy";

const CAUSES: Readonly<Record<string, Cause>> = {
  UNAUTHORIZED: "setting",
  FORBIDDEN: "setting",
  PROJECT_NOT_FOUND: "setting",
  WRONG_ROUTE: "setting",
  REDIRECTED: "setting",
  FOREIGN_ANSWER: "setting",
  NOT_SENT: "network",
  EVENT_NOT_SENT: "network",
  RATE_LIMITED: "rateLimit",
  EVENT_REQUEST_REJECTED: "setting",
  EVENTS_ENDED: "setting",
  TARGETING_CONTEXT_LIMIT_EXCEEDED: "limit",
  TARGETING_CATEGORY_LIMIT_EXCEEDED: "limit",
  AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED: "limit",
  TARGETING_LOCKED: "campaign",
  TARGETING_CATEGORY_LOCKED: "campaign",
  BUSY: "busy",
  EVENT_BUSY: "busy",
  CONTEXT_TARGETING_WRITE_IN_PROGRESS: "busy",
};

/**
 * Returns the calls with which the agent can continue or fix a run now. Resuming is not among them if a person must
 * change a setting first. The remedy then says what to change.
 */
export function nextStepsOf(run: ReportedRun): readonly string[] {
  const steps = [...(run.nextSteps ?? [])];
  const { runId, status, blocked } = run;
  const isDeclined = run.approval?.decision === "declined";
  if (runId === undefined || isDeclined || status === "planned") return steps;
  if (status === "running") steps.push(callOf("get_run", { runId, waitMs: LONGEST_WAIT_MS }));
  if (blocked === undefined && !run.isUndone) steps.push(...leftoverSteps(runId, run.strandedNames ?? []));
  const causes = new Set(run.failures.map(causeOf));
  const isOver = status !== "running" && status !== "needs_confirmation";
  const mayResume = blocked === undefined && !run.isUndone && isOver && !causes.has("setting");
  const isResumed = mayResume && isResumable(run);
  // A resumed run sends later events. Unknown ones that are sent after it would break the order of their users.
  if (isOver && isOfEvents(run) && run.counts.unknown > 0) steps.push(lookUpStep(runId, run, isResumed));
  if (isResumed) steps.push(resumeStep(run, runId, causes));
  if (run.neverPlanned)
    steps.push("make the call again: the server ended before the call was planned, and nothing was sent");
  const allFailed = run.failures.filter(({ outcome }) => outcome === "failed");
  const stale = run.failures.filter((failure) => isLeft(run, failure));
  if (stale.length > 0) steps.push(staleStep(run, runId, stale));
  const failed = allFailed.filter((failure) => !stale.includes(failure));
  if (failed.some((failure) => causeOf(failure) === undefined)) steps.push(fixStep(run, runId, failed));
  else if (isOver && failed.some((failure) => causeOf(failure) === "limit")) {
    steps.push(`the items that did not fit: ${inputCall(runId)}`);
  }
  return steps;
}

const LONGEST_WAIT_MS = 25_000;

function callOf(tool: string, input: Readonly<Record<string, unknown>>): string {
  return `${tool} ${JSON.stringify(input)}`;
}

/** Returns the call that saves the sheet with results. Its file is named after the run, so that it is new. */
export function sheetCall(runId: string, outcome?: string): string {
  return callOf("get_run", { runId, outcome, saveTo: `results-${runId.slice(-6)}.xlsx` });
}

function inputCall(runId: string, outcome = "failed"): string {
  return callOf("get_run", { runId, outcome, includeInput: true });
}

/** Returns notes about how a run ended, as far as they are not about a single object. */
export function endNotes(run: ReportedRun): readonly string[] {
  const isBusy = run.failures.some((failure) => causeOf(failure) === "busy");
  const isOver = run.status !== "running" && run.status !== "needs_confirmation";
  return [...(isBusy && isOver && run.runId !== undefined ? [busyNote(run)] : []), ...limitNote(run)];
}

function causeOf({ errorCode, statusCode, isOfFile }: SummarizedFailure): Cause | undefined {
  if (isOfFile) return "file";
  // Events have the same code for a rate limit and for a busy service, so the status code decides.
  if (statusCode === RATE_LIMITED) return "rateLimit";
  return Object.hasOwn(CAUSES, errorCode) ? CAUSES[errorCode] : undefined;
}

export function isOfEvents({ tool }: Pick<ReportedRun, "tool">): boolean {
  return tool === "track_events" || tool === "track_event";
}

/** Returns whether a run can be resumed. Events that may have been recorded do not count: they are not sent again. */
function isResumable(run: ReportedRun): boolean {
  return !run.neverPlanned && askable(run) + run.counts.pending + waiting(run) > 0;
}

/**
 * Returns how many unknown outcomes a resumed run can resolve. It cannot find out who created an object (OWNER_UNCLEAR)
 * or who changed it (PLAN_STALE), because the service does not show that.
 */
function askable({ counts, failures, tool, unknownIsFinal }: ReportedRun): number {
  if (isOfEvents({ tool }) || unknownIsFinal) return 0;
  const unclear = failures.filter(({ errorCode, outcome }) => outcome === "unknown" && UNRESOLVABLE.has(errorCode));
  return counts.unknown - unclear.reduce((sum, { count }) => sum + count, 0);
}

/** The codes of unknown outcomes that a resumed run cannot resolve. */
export const UNRESOLVABLE: ReadonlySet<string> = new Set(["OWNER_UNCLEAR", "PLAN_STALE"]);

function resumeStep(run: ReportedRun, runId: string, causes: ReadonlySet<Cause | undefined>): string {
  const isWaited = causes.has("busy") || causes.has("network");
  const when = causes.has("rateLimit")
    ? "when the wait that the service asks for is over, "
    : isWaited
      ? "in a minute or later, "
      : "";
  const call = callOf("resume_run", { runId });
  if (causes.has("busy")) return `${when}from any session of the same caller: ${call}`;
  if (askable(run) > 0) {
    return `${when}${call} sends the unknown and remaining items, and reports what happened; nothing is created twice`;
  }
  return `${when}${call} finishes what was not applied`;
}

function lookUpStep(runId: string, { environment, tool, page, results }: ReportedRun, isResumed: boolean): string {
  const where = environment === "sandbox" ? "with inspect_events" : "in the reports of the web console";
  // In the answer of track_event itself, get_run is not suggested, because the caller still has the event.
  if (tool === "track_event" && page === undefined) return `look for the event ${where} before you send it again`;
  const shown = page?.hasInput ? results.filter(({ outcome }) => outcome === "unknown") : [];
  const uids = new Set(shown.flatMap(({ input }) => uidIn(input) ?? []));
  const resume = isResumed ? ", and before you resume the run" : "";
  if (shown.length === 0) {
    const get = callOf("get_run", { runId, outcome: "unknown", includeInput: true });
    return `${get} shows the events whose answer was lost: look for them ${where} before you send any of them again${resume}`;
  }
  const look =
    environment === "live" || uids.size === 0
      ? `look for these events ${where}`
      : `${callOf("inspect_events", { uids: [...uids].slice(0, MAX_UIDS) })} shows which of these events arrived`;
  return `${look}. Send only those that did not arrive, with track_events and onUnknown "resend"${resume}`;
}

const MAX_UIDS = 20;

/** Returns the user of an event. Undefined for a uid that may be a foreign sentence: calls are not marked as foreign. */
function uidIn(input: unknown): string | undefined {
  const uid = isJsonObject(input) ? input.uid : undefined;
  return typeof uid === "string" && /^[\w.@-]{1,64}$/.test(uid) ? uid : undefined;
}

const MAX_STRANDED = 3;

function leftoverSteps(runId: string, stranded: readonly LeftoverName[]): readonly string[] {
  if (stranded.length === 0) return [];
  const named = stranded.slice(0, MAX_STRANDED).map(({ _id, temporaryName, formerName, isSure }) => {
    const has = isSure ? "has" : "may have";
    return `${plain(_id)} ${has} the temporary name ${quoteUntrusted(temporaryName)} (before: ${quoteUntrusted(formerName)})`;
  });
  const more =
    stranded.length > MAX_STRANDED ? [`${stranded.length - MAX_STRANDED} more options have a temporary name`] : [];
  return [
    `${callOf("resume_run", { runId })} gives each option its new or its old name: ${[...named, ...more].join("; ")}`,
  ];
}

function busyNote({ requests, lastAt }: ReportedRun): string {
  const { sent: tries = 0, waitedMs = 0 } = requests ?? {};
  const seconds = Math.round(waitedMs / 1000);
  const last = lastAt === undefined ? "" : `, the last at ${new Date(lastAt).toISOString().slice(0, 19)}Z`;
  return `the service was locked by other writes for ${seconds} s (${tries === 1 ? "1 try" : `${thousands(tries)} tries`}${last})`;
}

function limitNote({ failures, counts, status }: ReportedRun): readonly string[] {
  const limited = failures.filter((failure) => failure.outcome === "failed" && causeOf(failure) === "limit");
  const [first] = limited;
  const place = first?.places[0]?.[0];
  if (first === undefined || place === undefined) return [];
  const left = limited.reduce((sum, { count }) => sum + count, 0);
  const where = placesWords([[place, place]], { byLine: first.byLine });
  if (status === "planned") return [`a limit would be reached from ${where} on: ${thousands(left)} would not fit`];
  const isIn = counts.succeeded + counts.alreadyDone;
  return [
    `a limit was reached at ${where}: ${thousands(isIn)} applied, ${thousands(left)} not applied, because there is no room. ` +
      "The items that were not applied are valid: to apply them, make room, and send only these again",
  ];
}

const PLANNING: ReadonlySet<string> = new Set(["plan_targeting", "undo_run"]);

function fixStep(run: ReportedRun, runId: string, failed: readonly SummarizedFailure[]): string {
  const { hasRejects, tool, status, failures, file, page } = run;
  if (tool === "apply_plan" && run.undoes !== undefined) return undoStep(run.undoes, failed);
  if (tool === "apply_plan") {
    if (failed.every(({ errorCode }) => errorCode === "PLAN_STALE")) {
      return "plan_targeting with the same input plans the change again from the current state";
    }
    const existing = failures.find(({ errorCode }) => errorCode === "TARGETING_NAME_DUPLICATE")?.detail?.existingId;
    if (typeof existing !== "string") return "fix the desired state, and plan it again";
    return `the targeting exists: put _id: "${existing}" below targeting in the desired state, and plan it again`;
  }
  if (tool === "track_event") return "fix the event and send it again with track_event";
  const input = theirInput(runId, failed);
  if (status === "needs_confirmation")
    return `approval is only for the items that can be done. To include the others, fix them, and make the call again. ${input}`;
  const isSeen = page?.hasInput === true;
  const own = failed.filter(({ isInside }) => !isInside);
  const inside = failed.filter(({ isInside }) => isInside);
  const parts = [
    ...(own.length > 0 ? [`send only ${failedPlaces(own)} again with ${tool}`] : []),
    // The group or targeting itself was created. So only its failed contents are sent again, by another tool.
    ...(inside.length > 0 ? [`add what failed inside ${failedPlaces(inside)} with bulk_add_options`] : []),
  ];
  const fix = `fix and ${parts.join(", and ")}${isSeen ? "" : `. ${input}`}`;
  const isCorrected = run.autocorrects || run.results.some(({ mended }) => mended !== undefined);
  const isCorrectable = failed.some(({ remedy }) => /\b(?:send|rename) "/i.test(remedy));
  if (tool === "track_events" && isCorrectable && !isCorrected && !hasRejects) {
    return `${fix}. "autocorrect": true corrects misspelt names`;
  }
  if (!hasRejects) return fix;
  return `${fix}. ${fixedFile(runId, isSheet(file), isSeen)}`;
}

interface FailedOfDryRun extends Pick<ReportedRun, "file"> {
  readonly failed: number;
  readonly maySave: boolean;
  /** Whether later events of the same users would be sent, so that the failed ones must not be sent by themselves. */
  readonly isOvertaken: boolean;
}

/** Returns the calls that show all events of a dry run that would fail, and that save them as a file. */
export function failedOfDryRun(runId: string, { failed, file, maySave, isOvertaken }: FailedOfDryRun): string {
  const what =
    failed === 1
      ? "the event that would fail, with its input"
      : `all ${thousands(failed)} events that would fail, with their input`;
  const whole = `${what}: ${inputCall(runId)}`;
  if (file === undefined) return whole;
  const isApart = isOvertaken && !isSheet(file);
  if (maySave && !isApart) return `${whole}. ${fixedFile(runId, isSheet(file))}`;
  const reasons = maySave ? failedCall(runId) : rejectsUri(runId);
  return `${whole}. As a file, with reasons: ${reasons}${isApart ? ". Fix these events in the original file" : ""}`;
}

/** Returns the call that saves what failed as a file, to fix it there. `isSeen`: this answer shows the input. */
function fixedFile(runId: string, isOfSheet: boolean, isSeen = false): string {
  if (isOfSheet) return `Or save the sheet with results, fix it, and give it as file: ${sheetCall(runId)}`;
  const call = isSeen ? `the same call with saveTo ${JSON.stringify(failedFile(runId))}` : failedCall(runId);
  return `Or save what failed, fix it, and give it as file: ${call}`;
}

function failedFile(runId: string): string {
  return `failed-${runId.slice(-6)}.ndjson`;
}

function failedCall(runId: string): string {
  return callOf("get_run", { runId, saveTo: failedFile(runId) });
}

function theirInput(runId: string, failed: readonly SummarizedFailure[]): string {
  const its = failed.length === 1 && failed[0]?.count === 1 ? "Its" : "Their";
  const areUnknown = failed.every(({ outcome }) => outcome === "unknown");
  return `${its} input: ${inputCall(runId, areUnknown ? "unknown" : "failed")}`;
}

export const DELETIONS: ReadonlySet<string> = new Set(["delete_options", "delete_targeting"]);

/** Returns whether a run left the objects of this failure, because others have changed them since it was planned. */
function isLeft({ tool }: ReportedRun, { errorCode, outcome }: SummarizedFailure): boolean {
  const mayDiffer = outcome === "failed" || outcome === "unknown";
  return mayDiffer && errorCode === "PLAN_STALE" && tool !== "apply_plan";
}

/** Returns the call of a dry run, since repeating the call at once could make changes that nobody has seen. */
function staleStep(run: ReportedRun, runId: string, stale: readonly SummarizedFailure[]): string {
  const { tool, results, onlyEmpty } = run;
  const count = stale.reduce((sum, failure) => sum + failure.count, 0);
  const known = results.flatMap(({ reason, _id }) => (reason?.code === "PLAN_STALE" && _id ? [_id] : []));
  const ids = known.length === count && count <= MAX_STALE_IDS ? known : undefined;
  if (DELETIONS.has(tool) && ids !== undefined) {
    return `${callOf(tool, { ids, ...(onlyEmpty && { onlyEmpty }), dryRun: true })} shows what would be deleted now`;
  }
  const named = stale.some(isRenamed) ? " (by ID or current name)" : "";
  const input = theirInput(runId, stale);
  return `${tool} with only ${failedPlaces(stale)}${named} and "dryRun": true shows what would change now. ${input}`;
}

const MAX_STALE_IDS = 10;

function isRenamed({ detail, details = [] }: SummarizedFailure): boolean {
  return [detail, ...details.map(({ reason }) => reason.detail)].some((one) => one?.field === "name");
}

/** Returns the next step after an undo that failed in part: planning again what is left to undo. */
function undoStep(undoes: string, failed: readonly SummarizedFailure[]): string {
  const again = `${callOf("undo_run", { runId: undoes })} plans to undo what is left, from the current state`;
  const existing = failed.find(({ errorCode }) => errorCode === "TARGETING_NAME_DUPLICATE")?.detail?.existingId;
  return typeof existing === "string"
    ? `rename the targeting ${existing}, which has the name now; then ${again}`
    : again;
}

function failedPlaces(failed: readonly SummarizedFailure[]): string {
  const [first] = failed;
  if (first === undefined || failed.some(({ placesOmitted }) => placesOmitted)) return "what failed";
  const places = joinedRanges(failed.flatMap((failure) => failure.places).toSorted(([one], [other]) => one - other));
  return places.length > MAX_PLACES ? "what failed" : placesWords(places, { byLine: first.byLine });
}

const MAX_PLACES = 5;

const NEVER_SENT: ReadonlySet<string> = new Set([
  ...["NEEDS_FAILED", "WITHDRAWN", "NOT_DECIDED", "PLAN_STALE_ELSEWHERE", "DECLINED", "UNDONE", "NOT_EMPTY"],
]);

function waiting({ counts, failures, tool }: ReportedRun): number {
  const neverSent = failures.filter(
    ({ outcome, errorCode, isOfFile = false }) =>
      outcome === "notApplied" && (NEVER_SENT.has(errorCode) || isOfFile || PLANNING.has(tool)),
  );
  return neverSent.reduce((left, { count }) => left - count, counts.notApplied);
}

interface UndoFacts {
  readonly runId: string;
  readonly hasChanged: boolean;
  readonly until: number;
  readonly mostRuns: number | undefined;
}

/** Returns a note that says whether a run can be undone, and until when. */
export function undoNote({ runId, hasChanged, until, mostRuns }: UndoFacts): string {
  if (!hasChanged) return "this run has changed nothing, so there is nothing to undo";
  const date = new Date(until).toISOString().slice(0, 10);
  const runs = mostRuns === undefined ? "" : `, while it is among the last ${mostRuns} runs`;
  return `undo_run {"runId":"${runId}"} plans the undo, until ${date}${runs}`;
}

/** Returns a note about how a run was undone: completely, in part, not at all, or by an undo that was itself undone. */
export function undoneNote(
  runId: string,
  by: string | undefined,
  undo: "whole" | "part" | "nothing" | "undone",
): string {
  const call = callOf("undo_run", { runId });
  if (undo === "nothing") {
    return `run ${by} could not undo anything of this run, which cannot be resumed. Once nothing prevents it, ${call} plans the undo again`;
  }
  if (undo === "undone") return `this run was undone by run ${by}, and that undo was undone: ${call} undoes it again`;
  const words = `this run was undone${undo === "part" ? " in part" : ""}${by === undefined ? "" : ` by run ${by}`} and cannot be resumed`;
  return undo === "part" ? `${words}. Once nothing prevents it, ${call} plans to undo what is left` : words;
}

/** Returns the address of the resource with a run's failed rows, each unchanged and with its reason. */
export function rejectsUri(runId: string): string {
  return `targeting://runs/${runId}/rejects`;
}
