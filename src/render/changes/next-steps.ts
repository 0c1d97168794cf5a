import type { StrandedName } from "../../changes/settle/stranded-names.ts";
import type { ToldFailure } from "../failures/failures.ts";
import { WHERE_SET } from "../failures/words.ts";
import { plain, shown } from "../fence.ts";
import { placesWords } from "../places.ts";
import type { ReportedRun } from "./reported-run.ts";

/** What kind of cause a failure has, where no item can be mended for it. */
type Cause = "key" | "route" | "network" | "rateLimit" | "eventKey" | "limit" | "campaign" | "busy";

const CAUSES: Readonly<Record<string, Cause>> = {
  UNAUTHORIZED: "key",
  FORBIDDEN: "key",
  PROJECT_NOT_FOUND: "key",
  WRONG_ROUTE: "route",
  REDIRECTED: "route",
  FOREIGN_ANSWER: "network",
  NOT_SENT: "network",
  EVENT_NOT_SENT: "network",
  RATE_LIMITED: "rateLimit",
  EVENT_REQUEST_REJECTED: "eventKey",
  EVENTS_ENDED: "eventKey",
  TARGETING_CONTEXT_LIMIT_EXCEEDED: "limit",
  TARGETING_CATEGORY_LIMIT_EXCEEDED: "limit",
  AD_PRODUCT_TARGETING_POLICY_LIMIT_EXCEEDED: "limit",
  TARGETING_LOCKED: "campaign",
  TARGETING_CATEGORY_LOCKED: "campaign",
  BUSY: "busy",
  EVENT_BUSY: "busy",
  CONTEXT_TARGETING_WRITE_IN_PROGRESS: "busy",
};

const SETTINGS = {
  key: `nothing is to be mended in the items: the key TARGETING_API_KEY is not accepted for this. ${WHERE_SET}`,
  route: `nothing is to be mended in the items: the address TARGETING_API_URL does not lead there. ${WHERE_SET}`,
  eventKey: `nothing is to be mended in the events: EVENT_API_URL and EVENT_APP_KEY are to be checked. ${WHERE_SET}`,
} as const;

/** What is to be done next about a run, by what it came to and why. */
export function nextStepsOf(run: ReportedRun): readonly string[] {
  const steps = [...(run.nextSteps ?? [])];
  const { runId, status, counts, blocked } = run;
  const causes = new Set(run.failures.map(causeOf));
  if (runId !== undefined && status === "running")
    steps.push(`call get_run with runId ${runId} and waitMs to see how it goes on`);
  for (const cause of ["key", "route", "eventKey"] as const) if (causes.has(cause)) steps.push(SETTINGS[cause]);
  steps.push(...limitSteps(run));
  if (runId === undefined) return steps;
  if (blocked === undefined) steps.push(...strandedWords(runId, run.strandedNames ?? []));
  const unknown = run.unknownIsFinal ? 0 : counts.unknown;
  const isOver = status !== "running" && status !== "needs_confirmation";
  const hasFixable = causes.has("key") || causes.has("route") || causes.has("network") || causes.has("eventKey");
  if (blocked === undefined && isOver && unknown + counts.pending + waiting(run) + (hasFixable ? 1 : 0) > 0) {
    steps.push(...(causes.has("busy") ? [busyStep(run, runId)] : [resumeStep(run, runId, whenToResume(causes))]));
  }
  const toMend = run.failures.filter((failure) => failure.outcome === "failed" && causeOf(failure) === undefined);
  if (toMend.length > 0) steps.push(mendStep(run, runId));
  return steps;
}

function causeOf({ errorCode }: ToldFailure): Cause | undefined {
  return Object.hasOwn(CAUSES, errorCode) ? CAUSES[errorCode] : undefined;
}

function whenToResume(causes: ReadonlySet<Cause | undefined>): string {
  if (causes.has("rateLimit")) return "when the wait that the service asks for is over, ";
  return (["key", "route", "network", "eventKey"] as const).some((cause) => causes.has(cause))
    ? "once that is mended, "
    : "";
}

function resumeStep({ counts, tool }: ReportedRun, runId: string, when: string): string {
  const isEvents = tool === "track_events" || tool === "track_event";
  if (counts.unknown > 0 && !isEvents) {
    return `${when}call resume_run with runId ${runId}: it sends what is unknown or left again and tells what happened; nothing is made twice`;
  }
  return `${when}call resume_run with runId ${runId} to finish what was not attempted${isEvents && counts.unknown > 0 ? " and what is unknown" : ""}`;
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

/** A locked service: how long it was tried and when last, and who may go on from where. */
function busyStep({ requests, lastAt }: ReportedRun, runId: string): string {
  const seconds = Math.round((requests?.waitedMs ?? 0) / 1000);
  const last = lastAt === undefined ? "" : `, last at ${new Date(lastAt).toISOString()}`;
  return (
    `the service was locked by other writes: it was tried ${requests?.sent ?? 0} times, waiting ${seconds} s${last}. ` +
    `In a minute or later call resume_run with runId ${runId}, from any session of the same caller`
  );
}

/** Where a limit stopped a run: what is in, and that nothing is to be mended. */
function limitSteps({ failures, counts, status }: ReportedRun): readonly string[] {
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
function mendStep({ hasRejects, tool, status, failures }: ReportedRun, runId: string): string {
  if (tool === "apply_plan") {
    const existing = failures.find(({ errorCode }) => errorCode === "TARGETING_NAME_DUPLICATE")?.detail?.existingId;
    if (typeof existing !== "string") return "mend the state as the remedies say, and plan it again";
    return `the targeting exists: put _id: "${existing}" below targeting in the state, and plan it again`;
  }
  const isEvents = tool === "track_events" || tool === "track_event";
  if (isEvents && !hasRejects) {
    const all = tool === "track_events" ? "; mend: true puts names right that are plainly misspelt" : "";
    return `mend what failed as the remedies say, and send only that again with ${tool}${all}`;
  }
  const seen = `get_run with runId ${runId}, outcome failed and includeInput: true shows what each held`;
  if (status === "needs_confirmation") return `${seen}; mend those first, or leave them out`;
  const argument = tool === "delete_targeting" ? "ids" : tool === "delete_options" ? "ids or names" : "items";
  const asFile = hasRejects
    ? `, or as a file made from targeting://runs/${runId}/rejects, which has the rows with their reasons`
    : "";
  return `mend what failed as the remedies say, and send only that again: as ${argument} of ${tool} (${seen})${asFile}`;
}

/** Reasons for which what was not attempted is not attempted later either. */
const NEVER_SENT: ReadonlySet<string> = new Set(["NEEDS_FAILED", "WITHDRAWN", "NOT_DECIDED", "PLAN_STALE_ELSEWHERE"]);

/** What was not attempted and can still be: not what belongs to something that failed, or was cancelled unasked. */
function waiting({ counts, failures, tool }: ReportedRun): number {
  return failures
    .filter(({ outcome, errorCode }) => outcome === "unattempted" && (NEVER_SENT.has(errorCode) || PLANNING.has(tool)))
    .reduce((left, { count }) => left - count, counts.unattempted);
}
