import { type Effect, effectOfCall, effectText } from "../../answers/approvals.ts";
import { type ApprovalRun, isApproval } from "../../changes/approvals.ts";
import type { WriteCall } from "../../changes/call.ts";
import { CONFIRMATION_MS, lossDigest } from "../../changes/change-kinds.ts";
import { type ChangeRun, isChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader } from "../../changes/changes.ts";
import type { Loss, Plan } from "../../changes/plan/plan.ts";
import type { RunFacts } from "../../changes/rows/entries.ts";
import { thousands } from "../../platform/text.ts";
import type { Run } from "../../runs/kind.ts";
import { ownReason } from "../../runs/outcome.ts";
import { didCounts } from "../../runs/report.ts";
import { undefinedIfUnreadable } from "../../runs/store.ts";
import { changesOf } from "../apis.ts";
import type { ToolContext, ToolServices } from "../define-tool.ts";

type StoredRuns = Pick<ToolServices, "runs" | "clock">;

/** Like `waitingAnywhere`, but returns only a change that waits for a decision in a view or on the web page. */
export async function waitingRun(runId: string, stored: StoredRuns): Promise<ChangeRun | undefined> {
  const run = await waitingOfAnyKind(runId, stored);
  return run !== undefined && isChangeRun(run) ? run : undefined;
}

/** Like `waitingAnywhere`, but returns only a run that waits for a decision in a view or on the web page. */
export async function waitingOfAnyKind(
  runId: string,
  stored: StoredRuns,
): Promise<ChangeRun | ApprovalRun | undefined> {
  const run = await waitingAnywhere(runId, stored);
  return run !== undefined && waitsForDecision(run) ? run : undefined;
}

/**
 * Returns a run that waits for a decision, no matter where: in a view, on the web page, in the client or with a token.
 * Undefined if it does not wait; a run that has waited too long is ended.
 */
export async function waitingAnywhere(runId: string, stored: StoredRuns): Promise<ChangeRun | ApprovalRun | undefined> {
  const run = await stored.runs.find(runId);
  if (run === undefined || !waits(run)) return undefined;
  return (await endIfExpired(run, stored)) === run ? run : undefined;
}

export function waitsForDecision(run: Run): run is ChangeRun | ApprovalRun {
  return waits(run) && run.state.facts.waits?.elsewhere === undefined;
}

function waits(run: Run): run is ChangeRun | ApprovalRun {
  const isOne = (isChangeRun(run) || isApproval(run)) && run.status() === "needs_confirmation";
  return isOne && run.state.facts.waits !== undefined;
}

/** Ends a run if nobody has decided about it in time. Returns the run in its current state. */
export async function endIfExpired(run: Run, { runs, clock }: StoredRuns): Promise<Run> {
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

/** Returns the tool of a run and how many objects it changed: `update_options: 2 changed`. */
async function doneBy(runId: string | undefined, { runs }: Pick<ToolContext, "runs">): Promise<string | undefined> {
  const run = runId === undefined ? undefined : await undefinedIfUnreadable(runs.find(runId));
  if (run === undefined) return undefined;
  const { created = 0, changed = 0, deleted = 0, gone = 0 } = didCounts(run.state) ?? {};
  const counts = Object.entries({ created, changed, deleted: deleted + gone }).flatMap(([did, count]) =>
    count === 0 ? [] : [`${thousands(count)} ${did}`],
  );
  const tool = run.state.facts?.tool ?? run.header.call.tool;
  return counts.length === 0 ? tool : `${tool}: ${counts.join(", ")}`;
}

/** Returns all that a person approves with a call. Throws a FileError if the plan of the call cannot be read. */
export async function effectOf(
  { runId, call }: CallOfRun,
  { losses, objects, facts }: Planned,
  context: Pick<ToolContext, "runs">,
): Promise<Effect> {
  if (call.tool !== "apply_plan" || runId === undefined) return effectOfCall(losses, objects, facts);
  // Loaded only here, because only plans need it.
  const [{ documentOf }, { effectOfDocument }] = await Promise.all([
    import("../kept-plan.ts"),
    import("../../answers/plan-effects.ts"),
  ]);
  const document = await documentOf(runId, context);
  return effectOfDocument(document, losses, await doneBy(document.wayBack?.undoes, context));
}

export function storedEffect(effect: Effect, digest: string): Omit<Waits, "until"> {
  const { note, optionsThere, parts } = effect;
  const known = { ...(note !== undefined && { note }), ...(optionsThere !== undefined && { optionsThere }) };
  return { digest, effect: effectText(effect), ...known, parts };
}

type Waits = NonNullable<RunFacts["waits"]>;

interface Elsewhere {
  readonly effect: Effect;
  readonly elsewhere: "client" | "token";
  readonly until: number;
}

/**
 * Stores that a run waits for approval: on the page if it waits there already, else in the client or with a token. A
 * stored plan that does not wait on the page stays a plan.
 */
export async function storeWaitingElsewhere(
  header: ChangeHeader,
  plan: Plan,
  { effect, elsewhere, until }: Elsewhere,
  context: Pick<ToolContext, "changes" | "runs" | "clock">,
): Promise<void> {
  const onPage = plan.facts.waits ?? (await waitingRun(header.runId, context))?.state.facts.waits;
  const where = onPage === undefined ? { until, elsewhere } : { until: onPage.until };
  const waits = { ...storedEffect(effect, lossDigest(plan.losses)), ...where };
  const isListed = onPage !== undefined || header.call.tool !== "apply_plan";
  plan.facts = { ...plan.facts, effect: effect.sentence, ...(isListed && { waits }) };
  await changesOf(context).propose(header, plan);
}

/**
 * Returns a function that stores a run that was planned after its call was answered. The agent's next call gets a token.
 * Strict mode has no tokens, so the run then waits for a decision through the client.
 */
export function tokenLater(context: ToolContext) {
  return async (header: ChangeHeader, plan: Plan): Promise<void> => {
    const { confirm, clock } = context;
    const isToken = confirm !== "strict";
    // The token can be requested for ten minutes and is then valid for ten minutes. So the run waits for twenty.
    const until = clock.now() + (isToken ? 2 : 1) * CONFIRMATION_MS;
    const effect = await effectOf(header, plan, context);
    await storeWaitingElsewhere(header, plan, { effect, elsewhere: isToken ? "token" : "client", until }, context);
    if (isToken) changesOf(context).remember(header.runId, plan.losses);
  };
}
