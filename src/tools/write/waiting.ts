import { type Effect, effectOfCall, effectText } from "../../answers/approvals.ts";
import { type ApprovalRun, isApproval } from "../../approvals/approvals.ts";
import type { WriteCall } from "../../changes/call.ts";
import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader } from "../../changes/changes.ts";
import type { Loss, Plan } from "../../changes/plan/plan.ts";
import type { RunFacts } from "../../changes/rows/entries.ts";
import { CONFIRMATION_MS, lossDigest } from "../../changes/run-rules.ts";
import type { Run } from "../../runs/kind.ts";
import { ownReason } from "../../runs/outcome.ts";
import { orUnreadable } from "../../runs/store.ts";
import { changesOf } from "../apis.ts";
import type { ToolContext, ToolServices } from "../context.ts";

/**
 * A run that waits for a person's decision; undefined where it does not, or no longer. One that waited too long is
 * ended.
 */
export async function waitingRun(
  runId: string,
  { runs, clock }: Pick<ToolServices, "runs" | "clock">,
): Promise<ChangeRun | undefined> {
  const run = await waitingOfAnyKind(runId, { runs, clock });
  return run !== undefined && isChangeRun(run) ? run : undefined;
}

/** The same for a change, or for what else a person is asked for. */
export async function waitingOfAnyKind(
  runId: string,
  { runs, clock }: Pick<ToolServices, "runs" | "clock">,
): Promise<ChangeRun | ApprovalRun | undefined> {
  const run = await waitingAnywhere(runId, { runs, clock });
  return run !== undefined && waitsForDecision(run) ? run : undefined;
}

/** A run that waits for an approval, on the page or elsewhere; undefined as above. */
export async function waitingAnywhere(
  runId: string,
  { runs, clock }: Pick<ToolServices, "runs" | "clock">,
): Promise<ChangeRun | ApprovalRun | undefined> {
  const run = await runs.find(runId);
  if (run === undefined || !waits(run)) return undefined;
  return (await endedWhereTooLate(run, { runs, clock })) === run ? run : undefined;
}

/** Whether a run waits for a person's decision in a view or on the page. */
export function waitsForDecision(run: Run): run is ChangeRun | ApprovalRun {
  return waits(run) && run.state.facts.waits?.elsewhere === undefined;
}

function waits(run: Run): run is ChangeRun | ApprovalRun {
  const isOne = (isChangeRun(run) || isApproval(run)) && run.status() === "needs_confirmation";
  return isOne && run.state.facts.waits !== undefined;
}

/** The same run; one that nobody decided on in time is ended first. */
export async function endedWhereTooLate(run: Run, { runs, clock }: Pick<ToolServices, "runs" | "clock">): Promise<Run> {
  const { until = Number.POSITIVE_INFINITY, elsewhere } = (waits(run) && run.state.facts.waits) || {};
  if (until > clock.now()) return run;
  const { runId } = run.header;
  const reason = ownReason("NOT_DECIDED", elsewhere === undefined ? undefined : { elsewhere });
  return (await runs.withdraw(runId, { cause: "cancelled", reason })) ?? (await runs.find(runId)) ?? run;
}

interface CallOfRun {
  readonly runId?: string | undefined;
  readonly call: WriteCall;
}

interface Planned {
  readonly losses: readonly Loss[];
  readonly objects: Parameters<typeof effectOfCall>[1];
  readonly facts: Pick<RunFacts, "optionsThere">;
}

async function toolOf(runId: string | undefined, { runs }: Pick<ToolContext, "runs">): Promise<string | undefined> {
  const run = runId === undefined ? undefined : await orUnreadable(runs.find(runId));
  return run?.state.facts?.tool ?? run?.header.call.tool;
}

/** All that a person approves with a call: of a plan everything that it lists, too. Throws a FileError as `documentOf`. */
export async function effectOf(
  { runId, call }: CallOfRun,
  { losses, objects, facts }: Planned,
  context: Pick<ToolContext, "runs">,
): Promise<Effect> {
  if (call.tool !== "apply_plan" || runId === undefined) return effectOfCall(losses, objects, facts.optionsThere);
  // Loaded late: only plans need it.
  const [{ documentOf }, { effectOfDocument }] = await Promise.all([
    import("../kept-plan.ts"),
    import("../../answers/plan-effects.ts"),
  ]);
  const document = await documentOf(runId, context);
  return effectOfDocument(document, losses, await toolOf(document.wayBack?.undoes, context));
}

interface Elsewhere {
  readonly effect: Effect;
  readonly elsewhere: "client" | "token";
  readonly until: number;
}

/**
 * Keeps a run that is approved in the client or with a token: the page shows what it would do, where it is approved and
 * until when. One that waits for the page already goes on doing so, and a plan is listed as one.
 */
export async function keepElsewhere(
  header: ChangeHeader,
  plan: Plan,
  { effect, elsewhere, until }: Elsewhere,
  context: Pick<ToolContext, "changes" | "runs" | "clock">,
): Promise<void> {
  const onPage = plan.facts.waits ?? (await waitingRun(header.runId, context))?.state.facts.waits;
  const where = onPage === undefined ? { until, elsewhere } : { until: onPage.until };
  const waits = { digest: lossDigest(plan.losses), effect: effectText(effect), parts: effect.parts, ...where };
  const isListed = onPage !== undefined || header.call.tool !== "apply_plan";
  plan.facts = { ...plan.facts, effect: effect.sentence, ...(isListed && { waits }) };
  await changesOf(context).propose(header, plan);
}

/** Lets the agent ask for the token of a run whose call has answered; where no token is given, its client may ask again. */
export function tokenLater(context: ToolContext) {
  return async (header: ChangeHeader, plan: Plan): Promise<void> => {
    const { confirm, clock } = context;
    const isToken = confirm !== "strict";
    // A token may be asked for until the last of these minutes, and is valid for as long again.
    const until = clock.now() + (isToken ? 2 : 1) * CONFIRMATION_MS;
    const effect = await effectOf(header, plan, context);
    await keepElsewhere(header, plan, { effect, elsewhere: isToken ? "token" : "client", until }, context);
    if (isToken) changesOf(context).remember(header.runId, plan.losses);
  };
}
