import { RATE_LIMITED } from "../../api/errors.ts";
import type { StrandedName } from "../../changes/settle/take-back.ts";
import type { ToldFailure } from "../failures/failures.ts";
import { plain, shown } from "../fence.ts";
import { placesWords } from "../places.ts";
import type { ReportedRun } from "./reported-run.ts";

/** What kind of cause a failure has, where no item can be mended for it. */
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

/** The calls that help with a run now, by what it came to and why. What a person has to set first is in the remedies. */
export function nextStepsOf(run: ReportedRun): readonly string[] {
  const steps = [...(run.nextSteps ?? [])];
  const { runId, status, blocked } = run;
  const isDeclined = run.approval?.decision === "declined";
  if (runId === undefined || isDeclined || status === "planned") return steps;
  if (status === "running") steps.push(`call get_run with runId ${runId} and waitMs to see how it goes on`);
  if (blocked === undefined) steps.push(...strandedWords(runId, run.strandedNames ?? []));
  const causes = new Set(run.failures.map(causeOf));
  const isOver = status !== "running" && status !== "needs_confirmation";
  if (blocked === undefined && isOver && !causes.has("setting") && resumable(run) > 0) {
    steps.push(...(causes.has("busy") ? [busyStep(runId)] : [resumeStep(run, runId, whenToResume(causes))]));
  }
  if (run.neverPlanned)
    steps.push("make the call again: the server ended before this was planned, and nothing was sent");
  if (isOver && isEvents(run) && run.counts.unknown > 0) steps.push(lookUpStep(runId));
  const failed = run.failures.filter(({ outcome }) => outcome === "failed");
  if (failed.some((failure) => causeOf(failure) === undefined)) steps.push(mendStep(run, runId));
  else if (isOver && failed.some((failure) => causeOf(failure) === "limit")) {
    steps.push(`get_run with runId ${runId}, outcome failed and includeInput: true shows what did not fit`);
  }
  return steps;
}

/** What else is to be known of how a run ended, beside its failures. */
export function endNotes(run: ReportedRun): readonly string[] {
  const isBusy = run.failures.some((failure) => causeOf(failure) === "busy");
  const isOver = run.status !== "running" && run.status !== "needs_confirmation";
  return [...(isBusy && isOver && run.runId !== undefined ? [busyNote(run)] : []), ...limitNote(run)];
}

function causeOf({ errorCode, statusCode, isOfFile }: ToldFailure): Cause | undefined {
  if (isOfFile) return "file";
  // Events that are limited have the code of a busy service.
  if (statusCode === RATE_LIMITED) return "rateLimit";
  return Object.hasOwn(CAUSES, errorCode) ? CAUSES[errorCode] : undefined;
}

function isEvents({ tool }: Pick<ReportedRun, "tool">): boolean {
  return tool === "track_events" || tool === "track_event";
}

/** How much of a run another try would settle. Events that may have been recorded are not sent again. */
function resumable(run: ReportedRun): number {
  if (run.neverPlanned) return 0;
  const unknown = isEvents(run) || run.unknownIsFinal ? 0 : run.counts.unknown;
  return unknown + run.counts.pending + waiting(run);
}

function whenToResume(causes: ReadonlySet<Cause | undefined>): string {
  if (causes.has("rateLimit")) return "when the wait that the service asks for is over, ";
  return causes.has("network") ? "in a minute or later " : "";
}

function resumeStep({ counts, tool }: ReportedRun, runId: string, when: string): string {
  if (counts.unknown > 0 && !isEvents({ tool })) {
    return `${when}call resume_run with runId ${runId}: it sends what is unknown or left again and tells what happened; nothing is made twice`;
  }
  return `${when}call resume_run with runId ${runId} to finish what was not applied`;
}

function lookUpStep(runId: string): string {
  return (
    `get_run with runId ${runId}, outcome unknown and includeInput: true shows the events whose answer was lost: ` +
    "look for them in the console's reports before any of them is sent again"
  );
}

const MOST_STRANDED = 3;

/**
 * The next step of a run that left temporary names behind: what settles them, and the first of them. Nothing where there
 * are none.
 */
function strandedWords(runId: string, stranded: readonly StrandedName[]): readonly string[] {
  if (stranded.length === 0) return [];
  const named = stranded.slice(0, MOST_STRANDED).map(({ _id, temporaryName, formerName, isSure }) => {
    const has = isSure ? "has" : "may have";
    return `${plain(_id)} ${has} the temporary name ${shown(temporaryName)} (it was ${shown(formerName)})`;
  });
  const more = stranded.length > MOST_STRANDED ? [`${stranded.length - MOST_STRANDED} more have one, too`] : [];
  return [
    `call resume_run with runId ${runId}, which gives each its new name, or its old one back: ${[...named, ...more].join("; ")}`,
  ];
}

/** Who may go on from where once the service is no longer locked. */
function busyStep(runId: string): string {
  return `in a minute or later call resume_run with runId ${runId}, from any session of the same caller`;
}

/** A locked service: how long it was tried and when last. */
function busyNote({ requests, lastAt }: ReportedRun): string {
  const seconds = Math.round((requests?.waitedMs ?? 0) / 1000);
  const last = lastAt === undefined ? "" : `, last at ${new Date(lastAt).toISOString()}`;
  return `the service was locked by other writes: it was tried ${requests?.sent ?? 0} times, waiting ${seconds} s${last}`;
}

/** Where a limit stopped a run: what is in, and that nothing is to be mended. */
function limitNote({ failures, counts, status }: ReportedRun): readonly string[] {
  const limited = failures.filter((failure) => failure.outcome === "failed" && causeOf(failure) === "limit");
  const [first] = limited;
  const place = first?.places[0]?.[0];
  if (first === undefined || place === undefined) return [];
  const left = limited.reduce((sum, { count }) => sum + count, 0);
  const where = placesWords([[place, place]], { byLine: first.byLine });
  if (status === "planned") return [`a limit would be met from ${where} on: ${left} would not fit`];
  return [
    `a limit was met: ${counts.succeeded + counts.alreadyDone} are in, ${left} did not fit, the first at ${where}; nothing was applied for those. ` +
      "Nothing is to be mended in them: make room or leave them out, then send only those again",
  ];
}

/** Tools whose runs are plans: one that failed is not resumed. */
const PLANNING: ReadonlySet<string> = new Set(["plan_targeting", "undo_run"]);

/** How the items that failed are mended: through tools alone, or as a file. */
function mendStep({ hasRejects, tool, status, failures, file }: ReportedRun, runId: string): string {
  if (tool === "apply_plan") {
    const existing = failures.find(({ errorCode }) => errorCode === "TARGETING_NAME_DUPLICATE")?.detail?.existingId;
    if (typeof existing !== "string") return "mend the state as the remedies say, and plan it again";
    return `the targeting exists: put _id: "${existing}" below targeting in the state, and plan it again`;
  }
  if (isEvents({ tool }) && !hasRejects) {
    const all = tool === "track_events" ? "; autocorrect: true corrects names that are plainly misspelt" : "";
    return `mend what failed as the remedies say, and send only that again with ${tool}${all}`;
  }
  const seen = `get_run with runId ${runId}, outcome failed and includeInput: true shows what each held`;
  if (status === "needs_confirmation") return `${seen}; mend those first, or leave them out`;
  const argument = tool === "delete_targeting" ? "ids" : tool === "delete_options" ? "ids or names" : "items";
  const isSheet = file?.format === "csv" || file?.format === "xlsx";
  if (hasRejects && isSheet && !isEvents({ tool })) {
    return `fix what failed as the remedies say, and send only that again: as ${argument} of ${tool} (${seen}); or get_run with runId ${runId} and saveTo saves the sheet with results, to be fixed and given again`;
  }
  const asFile = hasRejects
    ? `, or as a file made from targeting://runs/${runId}/rejects, which has the rows with their reasons`
    : "";
  return `mend what failed as the remedies say, and send only that again: as ${argument} of ${tool} (${seen})${asFile}`;
}

/** Reasons for which what was not attempted is not attempted later either. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  ...["NEEDS_FAILED", "WITHDRAWN", "NOT_DECIDED", "PLAN_STALE_ELSEWHERE", "DECLINED", "UNDONE", "NOT_EMPTY"],
]);

/** Whether another try sends none of it either. */
function isNeverSent({ errorCode, isOfFile = false }: ToldFailure): boolean {
  return NEVER_SENT.has(errorCode) || isOfFile;
}

/** What was not attempted and can still be: not what belongs to something that failed, or was cancelled unasked. */
function waiting({ counts, failures, tool }: ReportedRun): number {
  return failures
    .filter((failure) => failure.outcome === "notApplied" && (isNeverSent(failure) || PLANNING.has(tool)))
    .reduce((left, { count }) => left - count, counts.notApplied);
}
