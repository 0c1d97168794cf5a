import { effectText, undecidedNote, undecidedSteps } from "../../answers/approvals.ts";
import { groupFailures } from "../../answers/failures.ts";
import { confirmationStep, renderReport } from "../../answers/run-report.ts";
import type { ReportedRun } from "../../answers/run-results.ts";
import { type ApiError, isApiError } from "../../api/errors.ts";
import type { WriteCall } from "../../changes/call.ts";
import { CONFIRMATION_MS, fileOf, lossDigest } from "../../changes/change-kinds.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import { RunState } from "../../changes/change-state.ts";
import type { ChangeHeader, StartPlanned } from "../../changes/changes.ts";
import type { Plan, Planning } from "../../changes/plan/plan.ts";
import { targetOf } from "../../changes/rows/entries.ts";
import { RowBlock } from "../../changes/rows/row-block.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { countsOf, countsWithin, optionCounts } from "../../runs/report.ts";
import { changesOf, undefinedIfLate } from "../apis.ts";
import { type ToolAnswer, type ToolContext, ToolError, type Undecided, type UndecidedAnswer } from "../define-tool.ts";
import { effectOf, storeWaitingElsewhere, tokenLater } from "./awaiting-decision.ts";
import { askFor } from "./confirmation-token.ts";
import { beginPlanned, decide, personOf } from "./decide.ts";
import { interruptedHints } from "./follow-run.ts";

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
