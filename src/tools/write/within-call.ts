import { effectText, undecidedNote, undecidedSteps } from "../../answers/approvals.ts";
import { groupFailures } from "../../answers/failures.ts";
import { interruptedHint } from "../../answers/run-headline.ts";
import { confirmationStep, renderReport } from "../../answers/run-report.ts";
import type { ReportedRun } from "../../answers/run-results.ts";
import { type ApiError, isApiError } from "../../api/errors.ts";
import { aroundReads, type ManagementApi } from "../../api/management.ts";
import type { WriteCall } from "../../changes/call.ts";
import { CONFIRMATION_MS, fileOf, lossDigest } from "../../changes/change-kinds.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import { RunState } from "../../changes/change-state.ts";
import type { ChangeHeader, StartPlanned } from "../../changes/changes.ts";
import type { Plan, Planning } from "../../changes/plan/plan.ts";
import { targetOf } from "../../changes/rows/entries.ts";
import { RowBlock } from "../../changes/rows/row-block.ts";
import { undefinedIf } from "../../platform/files.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { thousands } from "../../platform/text.ts";
import type { Run } from "../../runs/kind.ts";
import type { Interrupted } from "../../runs/registry.ts";
import { countsOf, countsWithin, optionCounts } from "../../runs/report.ts";
import { StoreUnavailableError, undefinedIfUnreadable } from "../../runs/store.ts";
import { changesOf, DeadlineExceeded, managementOf, undefinedAfter, undefinedIfLate } from "../apis.ts";
import { type ToolAnswer, type ToolContext, ToolError, type Undecided, type UndecidedAnswer } from "../define-tool.ts";
import { effectOf, storeWaitingElsewhere, tokenLater } from "./awaiting-decision.ts";
import { askFor } from "./confirmation-token.ts";
import { beginPlanned, decide, personOf } from "./decide.ts";

export interface Given {
  readonly call: WriteCall;
  readonly bytes: ByteSource | undefined;
}

export function unstartedReport(call: WriteCall, state: RunState, { environment }: Pick<ToolContext, "environment">) {
  return {
    ...state.facts,
    environment,
    tool: call.tool,
    file: fileOf(call),
    counts: countsOf(state),
    failures: groupFailures(state),
    results: [],
    ...(call.tool === "create_targetings" && { newOptions: countsWithin(state) }),
    ...(call.tool === "update_contexts" && { options: optionCounts(state) }),
    ...extendedOf(call, state),
    withoutContextIds: withoutContextIds(call, state, (object) => state.standing(object) === "pending"),
  };
}

/** For a call that adds options: returns how many options that already exist would get more Context IDs. */
export function extendedOf({ tool }: WriteCall, state: RunState): { readonly extended?: number } {
  if (tool !== "bulk_add_options") return {};
  const objects = new Set<number>();
  for (let id = 0; id < state.steps.length; id += 1) {
    if (state.steps.partAt(id)?.operation !== "updateOptions") continue;
    const step = state.steps.at(id);
    // An option without an ID is created by the call itself, and this step adds the rest of its Context IDs.
    if (step === undefined || targetOf(step) === undefined) continue;
    for (const object of step.objects) {
      if (state.standing(object) === "pending") objects.add(object);
    }
  }
  return { extended: objects.size };
}

/** For an import: counts the new options, without groups, that have no Context IDs. Undefined if there are none. */
export function withoutContextIds(
  call: WriteCall,
  { steps }: RunState,
  isNew: (object: number) => boolean,
): ReportedRun["withoutContextIds"] {
  if (call.tool !== "bulk_add_options" || call.input.file === undefined) return undefined;
  let [count, all] = [0, 0];
  const add = (object: number | undefined, contextIds: number): void => {
    if (object === undefined || !isNew(object)) return;
    all += 1;
    if (contextIds === 0) count += 1;
  };
  for (const step of steps.parts()) {
    if (step instanceof RowBlock) {
      for (let row = 0; row < step.length; row += 1) add(step.firstObject + row, step.weightOf(row).contextIds);
    } else if (step.operation === "addOptions") {
      const { type, contexts = [], children = [] } = step.item;
      if (type !== "collection") add(step.objects[0], contexts.length);
      for (const [position, child] of children.entries())
        add(step.objects[position + 1], (child.contexts ?? []).length);
    }
  }
  return count === 0 ? undefined : { count, all };
}

export function tookTooLong(): ToolError {
  return new ToolError(
    "planning this took longer than a call may take; nothing was changed",
    "Give fewer items, or raise TARGETING_MCP_WAIT_MS.",
  );
}

/** Stores a run as waiting for approval. Returns the answer with its effect and a token that starts it. */
export async function answerWithToken(
  header: ChangeHeader,
  plan: Plan,
  context: ToolContext,
  hints: readonly string[] = [],
): Promise<ToolAnswer> {
  const { runId, call } = header;
  const effect = await effectOf(header, plan, context);
  const confirmation = await askFor({ run: runId, digest: lossDigest(plan.losses) }, effectText(effect), context);
  await storeWaitingElsewhere(
    header,
    plan,
    { effect, elsewhere: "token", until: Date.parse(confirmation.expiresAt) },
    context,
  );
  return renderReport({
    ...unstartedReport(call, new RunState(plan), context),
    runId,
    status: "needs_confirmation",
    confirmation,
    notes: hints,
    nextSteps: [confirmationStep(call.tool, confirmation), ...(await interruptedHints(context, runId))],
  });
}

export class PlanningError extends Error {
  readonly failed: ApiError;
  constructor(failed: ApiError) {
    super(`a change could not be planned: ${failed.message}`, { cause: failed });
    this.failed = failed;
  }
}

/**
 * Returns the plan that `make` makes. When the call must be answered before, returns the planning that goes on. Throws
 * a PlanningError if a read failed.
 */
export async function planInTime<Made>(
  make: (signal: AbortSignal) => Promise<Made>,
  context: ToolContext,
): Promise<Made | Planning<Made>> {
  const stopping = new AbortController();
  const stop = (): void => stopping.abort(new DOMException("the call was given up", "AbortError"));
  context.signal.addEventListener("abort", stop, { once: true });
  if (context.signal.aborted) stop();
  const plan = make(stopping.signal);
  try {
    return (await undefinedIfLate(context, plan)) ?? { plan, stop };
  } catch (thrown) {
    throw isApiError(thrown) ? new PlanningError(thrown) : thrown;
  } finally {
    context.signal.removeEventListener("abort", stop);
  }
}

export function dryRunSteps(
  { header, state, status }: ChangeRun,
  { readOnly }: Pick<ToolContext, "readOnly">,
): readonly string[] {
  return header.dryRun && status() === "planned" && !readOnly ? applySteps(header.runId, state) : [];
}

/** Returns the call that applies a dry run. If nothing would be applied, returns a step to fix what would fail. */
export function applySteps(runId: string, state: RunState): readonly string[] {
  const { pending, failed } = countsOf(state);
  if (pending > 0) return [`apply_plan {"runId":"${runId}"} applies exactly this, within 24 hours`];
  return failed > 0 ? ["fix the items that would fail, and make the call again"] : [];
}

/** Throws a ToolError if a run is a plan or a dry run that was not applied. */
export function checkApplied({ header, status }: ChangeRun): void {
  if (status() !== "planned") return;
  throw new ToolError(
    `this run is a ${header.dryRun ? "dry run" : "plan"} that was not applied, so there is nothing to resume`,
    `apply_plan {"runId":"${header.runId}"} applies it.`,
  );
}

/**
 * Returns the answer if nobody approved or declined. If the call had to be answered first ("unanswered"), the run is
 * stored, so that a later reply can start it. If the client closed the question, perhaps no person saw it. Then no run
 * is stored, and the call has to be made again.
 */
export async function undecided(
  { call, bytes }: Given,
  plan: Plan,
  why: Undecided,
  context: ToolContext,
  kept?: ChangeHeader,
): Promise<UndecidedAnswer> {
  const changes = changesOf(context);
  const header =
    why === "unanswered" ? (kept ?? (await changes.keep(call, context.caller, bytes, context.requested))) : undefined;
  const effect = await effectOf({ runId: (header ?? kept)?.runId, call }, plan, context);
  if (header !== undefined) {
    const until = context.clock.now() + CONFIRMATION_MS;
    await storeWaitingElsewhere(header, plan, { effect, elsewhere: "client", until }, context);
  }
  const state = new RunState(plan);
  const answer = renderReport({
    ...unstartedReport(call, state, context),
    ...(header && { runId: header.runId }),
    status: "needs_confirmation",
    notes: [effectText(effect), undecidedNote(why)],
    nextSteps: undecidedSteps(header?.runId),
  });
  if (header === undefined) return { answer };
  const digest = lossDigest(plan.losses);
  return {
    answer,
    async later(accepted) {
      const saw = (seen: string): boolean => seen === digest;
      const decided = { channel: "client", person: personOf(context), saw } as const;
      if (!accepted) {
        await decide(header.runId, { ...decided, answer: "declined" }, context);
        return;
      }
      // If the run was started or cancelled meanwhile, the reply has no effect.
      if ((await context.runs.isUnstarted(header.runId)) !== true) return;
      const stopping = new AbortController();
      const again = changes.plan(call, stopping.signal, context.runs.part(header.runId, "input"));
      const planning = { plan: again, stop: () => stopping.abort() };
      const decision = { ...decided, answer: "approved" } as const;
      const begin = (made: Plan, start: StartPlanned) => beginPlanned(header, made, { decision, start }, context);
      await changes.prepare(header, planning, begin, { meanwhile: state, ask: tokenLater(context) });
    },
  };
}

type Followed = Pick<Run, "kept" | "rest" | "watch" | "stop">;

/**
 * Waits until a run ends or the call must be answered. If the caller cancels the call, stops the run. For a task, waits
 * only until the run is stored.
 */
export async function followRun(run: Followed, context: ToolContext): Promise<void> {
  if (context.asTask) {
    context.goesOn?.(run.rest);
    return run.kept;
  }
  const stop = (): boolean => run.stop(context.stopping.aborted ? "interrupted" : "cancelled");
  const unwatch = reportProgress(run, context);
  context.signal.addEventListener("abort", stop, { once: true });
  if (context.signal.aborted) stop();
  context.goesOn?.(run.rest);
  try {
    await waitWithinCall(run.rest, context);
  } finally {
    unwatch();
    context.signal.removeEventListener("abort", stop);
  }
}

function reportProgress(run: Pick<Followed, "watch">, { progress }: Pick<ToolContext, "progress">): () => void {
  return run.watch(({ items, pending }, waitingMs) => {
    progress?.(items - pending, items, progressWords(items - pending, items, waitingMs));
  });
}

/** Returns the progress of a run as text. Undefined before the number of items is known. */
export function progressWords(done: number, items: number, waitingMs = 0): string | undefined {
  if (items === 0) return undefined;
  const waiting = waitingMs > 0 ? `, waiting ${thousands(Math.ceil(waitingMs / 1000))} s for the service` : "";
  return `${thousands(done)} of ${thousands(items)} ${items === 1 ? "item" : "items"}${waiting}`;
}

export async function waitWithinCall(work: Promise<unknown>, context: ToolContext): Promise<void> {
  await undefinedIfLate(context, work);
}

export async function waitForEnd(
  run: Pick<Followed, "rest" | "watch">,
  ms: number,
  context: ToolContext,
): Promise<void> {
  const unwatch = reportProgress(run, context);
  await undefinedAfter(ms, run.rest, context, context.signal).finally(unwatch);
}

/** Returns hints about the caller's interrupted runs except `runId`, so that the agent can resume them. */
export async function interruptedHints(
  { runs, caller }: Pick<ToolContext, "runs" | "caller">,
  runId: string,
): Promise<readonly string[]> {
  const hints = async () => {
    const others = (await runs.interrupted(caller)).filter((one) => one.runId !== runId);
    const helped = await Promise.all(others.map((one) => isWorthResuming(one, runs)));
    return interruptedHint(others.filter((_, index) => helped[index]));
  };
  // If the store cannot be reached now, the call is answered without these hints.
  return (await undefinedIf((thrown) => thrown instanceof StoreUnavailableError, hints())) ?? [];
}

/** Returns whether to suggest resuming a run. Events that may have been recorded are no reason for that. */
async function isWorthResuming({ runId, tool, left }: Interrupted, runs: ToolContext["runs"]): Promise<boolean> {
  if ((tool !== "track_event" && tool !== "track_events") || left > MOST_ANNOUNCED) return true;
  const counts = (await undefinedIfUnreadable(runs.find(runId)))?.state.counts();
  return counts !== undefined && counts.pending + counts.notApplied > 0;
}

/** At least as many events as are announced before they are sent. If more are left, some of them were not sent. */
const MOST_ANNOUNCED = 200;

const OPTION_TOOLS: ReadonlySet<string> = new Set([
  "bulk_add_options",
  "update_options",
  "update_contexts",
  "delete_options",
  "apply_plan",
]);

const OPTIONAL_READ_LIMITS = { mostTries: 2, timeoutMs: 3000 } as const;

/**
 * Returns how many options a targeting has after a run. Undefined unless the run has ended and has changed options of
 * exactly one targeting. Also undefined if the targeting cannot be read in time.
 */
export async function totalsAfter(
  { header, state, status }: ChangeRun,
  context: ToolContext,
): Promise<ReportedRun["totals"] | undefined> {
  const targetingId = state.facts.within;
  const isOver = status() !== "running" && status() !== "needs_confirmation";
  const hasChanged = state.counts().succeeded > 0;
  if (targetingId === undefined || !isOver || !hasChanged || !OPTION_TOOLS.has(header.call.tool)) return undefined;
  const { signal } = context;
  const reading = shortReads(context).getTargeting(targetingId, { signal });
  const { name, optionCount } = (await undefinedIfFailed(reading, context)) ?? {};
  return name === undefined || optionCount === undefined ? undefined : { targetingId, name, optionCount };
}

export function shortReads(context: ToolContext): ManagementApi {
  return aroundReads(managementOf(context), (read, options) => read({ ...options, ...OPTIONAL_READ_LIMITS }));
}

/** Returns what `reading` returns. Undefined after an API error, or if the call must be answered first. */
export function undefinedIfFailed<Value>(reading: Promise<Value>, { signal }: ToolContext): Promise<Value | undefined> {
  const isExpected = (thrown: unknown) => isApiError(thrown) || thrown instanceof DeadlineExceeded || signal.aborted;
  return undefinedIf(isExpected, reading);
}
