import * as z from "zod";
import {
  type Approval,
  approvalOf,
  declinedIn,
  declinedInClientNote,
  declinedNote,
  effectText,
  staleNote,
} from "../answers/approvals.ts";
import { suiteReportUri } from "../answers/event-suites.ts";
import { groupFailures } from "../answers/failures.ts";
import type { Reader } from "../answers/message-words.ts";
import { DELETIONS, undoNote, undoneNote } from "../answers/next-steps.ts";
import { savedText } from "../answers/reading.ts";
import { appliedBeforeNote, confirmationStep, renderReport, tokenAgainStep } from "../answers/run-report.ts";
import type { ReportedRun } from "../answers/run-results.ts";
import { type ApprovalRun, isApproval } from "../changes/approvals.ts";
import { fileOf, isUndone, isWithdrawn, leftoverNames, lossDigest, undoneByRun } from "../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../changes/change-run.ts";
import { isEventRun } from "../events/run/event-runs.ts";
import { autocorrects } from "../events/run/run-state.ts";
import { isUndetected } from "../files/detected-form.ts";
import type { InputFile } from "../files/input-file.ts";
import { undefinedIfFileError } from "../platform/files.ts";
import type { Run } from "../runs/kind.ts";
import { changedAt, type Reason } from "../runs/outcome.ts";
import { countsOf, countsWithin, didCounts, failuresFirst, optionCounts } from "../runs/report.ts";
import { undefinedIfUnreadable } from "../runs/store.ts";
import { isSaveRun } from "../saves/save-runs.ts";
import { isUlid, ulidTime } from "../spec/names-and-contexts.ts";
import { type ToolAnswer, type ToolContext, ToolError } from "./define-tool.ts";
import { eventReportExtras, eventRunReport, failedRowCount } from "./event-report.ts";
import { effectOf, endIfExpired } from "./write/awaiting-decision.ts";
import { askFor } from "./write/confirmation-token.ts";
import { dryRunSteps, followRun, interruptedHints, totalsAfter, withoutContextIds } from "./write/within-call.ts";

const RESULTS_READ = 50;

/** Returns a run of the caller. Ends it if it waited too long. Throws a ToolError if none, or a DamagedRunError. */
export async function ownRun(
  runId: string,
  { runs, caller, clock }: Pick<ToolContext, "runs" | "caller" | "clock">,
): Promise<Run> {
  const run = await runs.findOwn(runId, caller);
  if (run !== undefined) return endIfExpired(run, { runs, clock });
  const listed = "get_run without arguments lists the recent runs.";
  const isOld = isUlid(runId) && ulidTime(runId) < clock.now() - DAY_MS;
  const gone =
    "A plan that was not applied, and a call that nobody approved, are removed after 24 hours: make the call again.";
  throw new ToolError("there is no run with this ID", isOld ? `${gone} ${listed}` : listed);
}

type ReportExtras = Pick<ReportedRun, "approval" | "alwaysReportsApproval"> & {
  readonly notes?: readonly string[] | undefined;
  readonly reader?: Reader;
};

/** Waits until a run ends or the call must be answered. Then returns the report of the run. */
export async function reportRun(
  run: Run | undefined,
  context: ToolContext,
  nextSteps: readonly string[] = [],
  more: ReportExtras = {},
): Promise<ToolAnswer> {
  if (run === undefined)
    throw new ToolError("there is no run with this ID", "Check runId: get_run without it lists the runs.");
  // Interrupted runs are read while the call waits for this run, because there is no time for it afterwards.
  const interrupted = interruptedHints(context, run.header.runId);
  interrupted.catch(() => undefined);
  await followRun(run, context);
  const steps = [...nextSteps, ...(await undoSteps(run, context)), ...(await interrupted)];
  return reportedRun(run, context, steps, { ...more, withTotals: true });
}

/** Returns a note for a call that only reports a run, because the run was applied before. */
export function usedBeforeNote({ header, state, status }: Run): readonly string[] {
  return appliedBeforeNote({ status: status(), at: state.endedAt ?? changedAt(header, state) });
}

export async function reportedRun(
  run: Run,
  context: ToolContext,
  nextSteps: readonly string[] = [],
  { withTotals = false, reader, ...more }: ReportExtras & { readonly withTotals?: boolean } = {},
): Promise<ToolAnswer> {
  if (!isChangeRun(run)) {
    if (isEventRun(run)) return eventRunReport(run, context, { nextSteps, notes: more.notes });
    const saved = savedAnswer(run, context);
    if (saved !== undefined) return saved;
  }
  const totals = withTotals && isChangeRun(run) ? await totalsAfter(run, context) : undefined;
  const report = await reportOf(run, context, reader);
  const notes = [...(more.notes ?? []), ...(report.notes ?? []), ...(await notesOfLimits(run, report, context))];
  const steps = [...nextSteps, ...(report.nextSteps ?? [])];
  return renderReport({ ...report, ...more, ...(totals && { totals }), nextSteps: steps, notes });
}

/** Returns the answer about the file that a run has saved. Undefined if it has saved none. */
export function savedAnswer(run: Run, { environment }: Pick<ToolContext, "environment">): ToolAnswer | undefined {
  if (!isSaveRun(run) || run.state.saved === undefined) return undefined;
  const { runId, call } = run.header;
  const { saved } = run.state;
  const structured = { environment, runId, tool: call.tool, status: run.status(), ...saved };
  return { structured, text: savedText(saved), isError: false };
}

const LIMIT_CODES: ReadonlySet<string> = new Set([
  "TARGETING_CATEGORY_LIMIT_EXCEEDED",
  "TARGETING_CONTEXT_LIMIT_EXCEEDED",
]);

async function notesOfLimits(run: Run, report: ReportedRun, context: ToolContext): Promise<readonly string[]> {
  const isMet = report.failures.some(({ outcome, errorCode }) => outcome === "failed" && LIMIT_CODES.has(errorCode));
  if (!isMet || report.status === "running" || !isChangeRun(run)) return [];
  // Loaded only here, because few runs reach a limit.
  const { limitNotes } = await import("./limit-notes.ts");
  return limitNotes(run, context);
}

/** Returns the data for the report of a run. Adds a token if planning ended after the call, and approval is needed. */
export async function reportOf(run: Run, context: ToolContext, reader?: Reader): Promise<ReportedRun> {
  const blocked = mayGoOn(run) ? await context.runs.refusal(run) : undefined;
  const report = { ...reported(run, context.environment, reader), ...(blocked && { blocked }) };
  if (isChangeRun(run)) return { ...report, ...(await changeReport(run, context)) };
  if (isEventRun(run)) return { ...report, ...eventReportExtras(run, context) };
  return isApproval(run) ? { ...report, ...approvalReport(run) } : report;
}

function mayGoOn(run: Run): boolean {
  if (run.header.dryRun && isEventRun(run)) return false;
  const status = run.status();
  if (status === "running") return false;
  if (status === "interrupted" || status === "planned" || status === "needs_confirmation") return true;
  if (isChangeRun(run) && (isWithdrawn(run.state) || isUndone(run.state))) return false;
  const { unknown, notApplied } = run.state.counts();
  return unknown + notApplied > 0;
}

async function changeReport(run: ChangeRun, context: ToolContext): Promise<Partial<ReportedRun>> {
  const { state, header } = run;
  const isAtRest = run.status() !== "running";
  const report = {
    ...state.facts,
    approval: approvalOf(state.facts),
    otherCounts: state.unexpectedCounts(),
    neverPlanned: await isNeverPlanned(run, context),
    isUndone: isUndone(state),
    ...(isAtRest && { strandedNames: leftoverNames(state), temporaryNames: state.temporaryNames() }),
  };
  const onPage = pageReport(run);
  const losses = context.changes?.asks(run);
  if (losses === undefined) {
    return { ...report, ...(await undoReport(run, context)), nextSteps: await planSteps(run, context), ...onPage };
  }
  const planned = { run: header.runId, digest: lossDigest(losses) };
  const effect = await effectOf(header, { losses, objects: state.objects, facts: state.facts }, context);
  const confirmation = await askFor(planned, effectText(effect), context);
  // The token is for the call of the run. For a plan, that is apply_plan, not the tool that made the plan.
  const { tool } = header.call;
  const nextSteps = [confirmationStep(tool, confirmation)];
  return { ...report, tool, status: "needs_confirmation", confirmation, nextSteps };
}

async function undoReport({ header, status }: ChangeRun, context: ToolContext): Promise<Partial<ReportedRun>> {
  const undoes = header.call.tool === "apply_plan" ? header.call.input.undoes : undefined;
  if (undoes === undefined) return {};
  if (["running", "planned", "needs_confirmation", "cancelled"].includes(status())) return { undoes };
  const [{ documentOf }, { notUndoneNote }] = await Promise.all([
    import("./kept-plan.ts"),
    import("../answers/plan-answers.ts"),
  ]);
  // An undo whose planning failed has no stored plan, so the FileError is expected.
  const document = await undefinedIfFileError(documentOf(header.runId, context));
  const note = notUndoneNote(document?.wayBack?.rows ?? [], undoes);
  return { undoes, ...(note !== undefined && { notes: [note] }) };
}

/** Returns whether a run was interrupted before it was planned, and has no stored plan with which to go on. */
async function isNeverPlanned({ header, state, status }: ChangeRun, { runs }: ToolContext): Promise<boolean> {
  if (status() !== "interrupted" || state.planned) return false;
  if (header.call.tool !== "apply_plan") return header.unplanned === true || state.objects.length === 0;
  for await (const _ of runs.part(header.runId, "input")()) return false;
  return true;
}

async function planSteps(run: ChangeRun, context: ToolContext): Promise<readonly string[]> {
  const { header, status } = run;
  if (header.dryRun) return dryRunSteps(run, context);
  if (header.call.tool !== "apply_plan" || status() !== "planned") return [];
  const { stepsOfPlan } = await import("./kept-plan.ts");
  return stepsOfPlan(header.runId, context);
}

function approvalReport(approval: ApprovalRun): Partial<ReportedRun> {
  const { facts } = approval.state;
  const { tool, input } = approval.header.call;
  const where = tool === "resume_run" ? `the run is ${input.about}` : `the report is at ${suiteReportUri(input.about)}`;
  return { ...(facts.asked && { approval: approvalOf(facts), notes: [where] }), ...pageReport(approval) };
}

function pageReport({ header, state, status }: ChangeRun | ApprovalRun): Partial<ReportedRun> | undefined {
  const { waits, effect } = state.facts;
  if (status() === "needs_confirmation" && waits !== undefined) {
    const { elsewhere: channel, until, stale } = waits;
    const confirmation = {
      effect: waits.effect,
      expiresAt: new Date(until).toISOString(),
      ...(channel && { channel }),
    };
    return {
      confirmation,
      notes: stale === undefined ? [] : [staleNote(stale)],
      ...(channel === "token" && { nextSteps: [tokenAgainStep(header.call.tool)] }),
    };
  }
  const declined = declinedBy(state.stopped?.reason);
  if (declined === undefined) return undefined;
  if (declined.by !== undefined) return { approval: declined, notes: [declinedNote(effect)] };
  const question = waits?.effect ?? effect;
  return { approval: declined, notes: question === undefined ? [] : [declinedInClientNote(question)] };
}

function declinedBy(reason: Reason | undefined): Approval | undefined {
  if (reason?.code !== "DECLINED") return undefined;
  const { where, who } = reason.detail ?? {};
  return where === "page" || where === "view" ? declinedIn(where, String(who)) : declinedIn("client");
}

export function approvalOfRun({ state }: ChangeRun | ApprovalRun): Approval | undefined {
  return declinedBy(state.stopped?.reason) ?? approvalOf(state.facts);
}

/** Returns the part of a report that all kinds of runs have, with the first results. */
export function reported(run: Run, environment: "live" | "sandbox", reader?: Reader): ReportedRun {
  const { header, state, status } = run;
  const { call } = header;
  const did = didCounts(state);
  return {
    environment,
    runId: header.runId,
    tool: state.facts?.tool ?? call.tool,
    status: status(),
    counts: countsOf(state),
    ...(!(header.dryRun && isEventRun(run)) && { requests: state.requests }),
    ...(isChangeRun(run) &&
      run.header.call.tool === "delete_options" && { onlyEmpty: run.header.call.input.onlyEmpty }),
    ...(isChangeRun(run) && { failedWith: run.state.failedWith, withoutContextIds: bareOptionsOf(run) }),
    ...(!isChangeRun(run) && isEventRun(run) && { autocorrects: autocorrects(run.header.call) }),
    failures: groupFailures(state, reader),
    results: failuresFirst(state, RESULTS_READ),
    lastAt: state.endedAt ?? changedAt(header, state),
    ...(state.resumed !== undefined && { resumed: state.resumed.counts }),
    ...(did !== undefined && { did }),
    ...(call.tool === "create_targetings" && { newOptions: countsWithin(state) }),
    ...(call.tool === "update_contexts" && { options: optionCounts(state) }),
    ...(state.facts?.rows && { rows: state.facts.rows }),
    ...(isChangeRun(run) && { file: fileReadBy(run) }),
    ...(isChangeRun(run) && run.state.facts.foreseen && status() === "planned" && { plan: run.state.facts.foreseen }),
    hasRejects: fileCall.safeParse(call).success && status() !== "running" && failedRowCount(run) > 0,
  };
}

/** Returns the file of a run's call, with how it is read. Undefined if the call has no file. */
export function fileReadBy({ header, state }: ChangeRun): InputFile | undefined {
  const file = fileOf(header.call);
  // How to read the sheet may have been detected only after the call had been answered.
  return file && isUndetected(file) ? { ...file, ...state.facts.look } : file;
}

function bareOptionsOf({ header, state, status }: ChangeRun): ReportedRun["withoutContextIds"] {
  const isPlan = status() === "planned" || status() === "needs_confirmation";
  return withoutContextIds(header.call, state, (object) =>
    isPlan ? state.standing(object) === "pending" : state.didOf(object) === "created",
  );
}

const withFile = z.object({ file: z.object({}) });
const fileCall = z.object({ input: z.union([withFile, z.object({ events: withFile })]) });

const DAY_MS = 86_400_000;
/** Returns a sentence about how a run was undone: completely or in part, and whether the undo was undone itself. */
export async function undoneWords(runId: string, state: ChangeRun["state"], context: ToolContext): Promise<string> {
  const by = undoneByRun(state);
  const undo = by === undefined ? undefined : await undefinedIfUnreadable(context.runs.find(by));
  if (by === undefined || undo === undefined || !isChangeRun(undo)) return undoneNote(runId, by, "whole");
  if (isUndone(undo.state)) {
    const again = await undefinedIfUnreadable(context.runs.find(undoneByRun(undo.state) ?? by));
    const isAgain = again !== undefined && isChangeRun(again) && again !== undo && isUndone(again.state);
    return isAgain ? undoneWords(runId, again.state, context) : undoneNote(runId, by, "undone");
  }
  const { failed, notApplied, succeeded, alreadyDone, unknown } = undo.state.counts();
  if (failed + notApplied > 0) {
    return undoneNote(runId, by, succeeded + alreadyDone + unknown > 0 ? "part" : "nothing");
  }
  const [{ documentOf }, { mayBeUndoneLater }] = await Promise.all([
    import("./kept-plan.ts"),
    import("../plans/undo-plan.ts"),
  ]);
  const rows = (await undefinedIfUnreadable(documentOf(by, context)))?.wayBack?.rows ?? [];
  return undoneNote(runId, by, rows.some(mayBeUndoneLater) ? "part" : "whole");
}

/** Returns a sentence that says whether a finished run can be undone, and until when. Undefined for other runs. */
export async function undoNoteOf(run: Run, context: ToolContext): Promise<string | undefined> {
  const { keep } = context;
  const status = run.status();
  if (!isChangeRun(run) || status === "running" || status === "planned" || status === "needs_confirmation") {
    return undefined;
  }
  if (isWithdrawn(run.state)) return undefined;
  if (isUndone(run.state)) return undoneWords(run.header.runId, run.state, context);
  const { created = 0, changed = 0, deleted = 0, gone = 0 } = didCounts(run.state) ?? {};
  const { runId, createdAt } = run.header;
  return undoNote({
    runId,
    hasChanged: created + changed + deleted + gone + run.state.inDoubt().size > 0,
    until: createdAt + keep.days * DAY_MS,
    // A run that stores what it removed is not deleted when the caller has more than `keep.runs` runs.
    mostRuns: deleted + gone > 0 ? undefined : keep.runs,
  });
}

/** Returns the error for undoing a run that is not stored. Its ID shows whether it was too old, or never existed. */
export function notKept(runId: string, { keep, clock }: Pick<ToolContext, "keep" | "clock">): ToolError {
  const kept =
    `finished runs are kept for ${keep.days} days (TARGETING_MCP_KEEP_DAYS), and at most ${keep.runs} of each caller ` +
    "(TARGETING_MCP_KEEP_RUNS)";
  const began = isUlid(runId) ? ulidTime(runId) : Number.POSITIVE_INFINITY;
  if (began > clock.now() - keep.days * DAY_MS) {
    return new ToolError("there is no run with this ID", `get_run without arguments lists the recent runs; ${kept}.`);
  }
  return new ToolError(
    `this run can no longer be undone: it began on ${new Date(began).toISOString().slice(0, 10)}, and ${kept}`,
    "To restore an earlier state, give it to plan_targeting as file or desired.",
  );
}

async function undoSteps(run: Run, context: ToolContext): Promise<readonly string[]> {
  const { deleted = 0, gone = 0 } = didCounts(run.state) ?? {};
  const isOffered = DELETIONS.has(run.header.call.tool) && deleted + gone > 0;
  const note = isOffered ? await undoNoteOf(run, context) : undefined;
  return note === undefined ? [] : [note];
}
