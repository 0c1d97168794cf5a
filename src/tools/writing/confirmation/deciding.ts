import { type ApprovalRun, isApproval } from "../../../approvals/approvals.ts";
import { type ChangeRun, isChangeRun } from "../../../changes/change-run.ts";
import type { ChangeHeader } from "../../../changes/changes.ts";
import { lossDigest } from "../../../changes/confirmation.ts";
import type { Plan } from "../../../changes/plan/plan.ts";
import type { Decided } from "../../../changes/rows/entries.ts";
import { changedEffect } from "../../../render/changes/effect.ts";
import { staleText } from "../../../render/failures/words.ts";
import type { Run } from "../../../runs/kind.ts";
import type { Asked } from "../../../runs/outcome.ts";
import { ownReason } from "../../../runs/reasons.ts";
import { changesOf } from "../../apis.ts";
import type { DecisionLine, ToolContext, ToolServices } from "../../context.ts";
import { effectOf } from "./effect-of.ts";

/** Who decides, and where. */
export type Decider = Pick<Decided, "who" | "where">;

/** What a decision came to: it counts, another one came first, or what it is about has changed. */
export type DecisionOutcome = "done" | "decided" | "stale";

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

/**
 * Starts a waiting run, once in all processes, if it still does what the person saw; the decision stands in its journal
 * before anything is sent. Throws the errors of planning, and an ExecutionRefusedError.
 */
export async function approve(run: ChangeRun, by: Decider, services: ToolServices) {
  const changes = changesOf(services);
  const { header, state } = run;
  const { runId, call } = header;
  const { waits: waiting } = state.facts;
  if (waiting === undefined) return "decided" satisfies DecisionOutcome;
  if (waiting.stale !== undefined) return "stale" satisfies DecisionOutcome;
  await services.runs.checkExecutable(run);
  const bytes = services.runs.part(runId, "input");
  const plan = await changes.plan(call, services.stopping, bytes);
  if ((await services.runs.isUnstarted(runId)) !== true) return "decided" satisfies DecisionOutcome;
  const gone = plan.facts.stale;
  if (gone !== undefined || lossDigest(plan.losses) !== waiting.digest) {
    const stale =
      gone === undefined
        ? changedEffect(state.facts.effect ?? "", await effectOf(header, plan, services))
        : staleText(gone);
    plan.facts = { ...plan.facts, effect: state.facts.effect ?? "", waits: { ...waiting, stale } };
    const isKept = await changes.propose(header, plan);
    return (isKept ? "stale" : "decided") satisfies DecisionOutcome;
  }
  const decided = { ...by, at: services.clock.now() };
  const asked = askedAt(by);
  plan.facts = { ...plan.facts, asked, decided };
  if ((await changes.start(header, plan)) === undefined) return "decided" satisfies DecisionOutcome;
  note(run, "approved", decided, services);
  return "done" satisfies DecisionOutcome;
}

/** Where a person agreed, as answers tell it. */
export function askedAt({ where }: Decider): Asked {
  return where === "view" ? "agreed_in_view" : "agreed_on_page";
}

/** An approval that comes now through the client of a call, or with its token: for the report, and by whom. */
export function agreedNow(
  asked: Asked,
  { person, caller, clock }: Pick<ToolContext, "person" | "caller" | "clock">,
): { readonly asked: Asked; readonly decided: Decided } {
  const where = asked === "agreed_by_token" ? "token" : "client";
  return { asked, decided: { who: person ?? caller, where, at: clock.now() } };
}

/** Starts a run that was approved in the client or with a token; where it was started before, gives that. */
export async function startAgreed(
  header: ChangeHeader,
  plan: Plan,
  asked: "agreed_in_client" | "agreed_by_token",
  context: ToolContext,
): Promise<ChangeRun | undefined> {
  const changes = changesOf(context);
  const { decided } = agreedNow(asked, context);
  plan.askedBy(asked, decided);
  const started = await changes.start(header, plan);
  if (started === undefined) return changes.runs.find(header.runId);
  note(started, "approved", decided, context);
  return started;
}

/** Ends a waiting run for a person's no, once in all processes: the no stands in its journal. */
export async function decline(run: Run, by: Decider, services: ToolServices) {
  const decided = { ...by, at: services.clock.now() };
  const ending = { cause: "cancelled", reason: ownReason("DECLINED", decided) } as const;
  const ended = await services.runs.withdraw(run.header.runId, ending);
  if (ended === undefined) return "decided" satisfies DecisionOutcome;
  note(run, "declined", decided, services);
  return "done" satisfies DecisionOutcome;
}

/** Writes a decision on a run into the audit. */
export function note(
  { header: { runId, caller, project } }: Pick<Run, "header">,
  decision: DecisionLine["decision"],
  { who, where, at }: Decided,
  { noteDecision }: ToolServices,
): void {
  noteDecision?.({ at: new Date(at).toISOString(), runId, decision, where, who, caller, project });
}

/** What is needed to carry out a call for the one who made it. */
export function callerContext({ header }: Pick<Run, "header">, services: ToolServices): ToolContext {
  const { clock, stopping } = services;
  return { ...services, caller: header.caller, arrivedAt: clock.now(), signal: stopping, canAsk: () => false };
}
