import { isApiError } from "../../api/errors.ts";
import type { WriteCall } from "../../changes/call.ts";
import { fileOf } from "../../changes/change-kinds.ts";
import type { ChangeHeader, Changes } from "../../changes/changes.ts";
import { lossDigest } from "../../changes/confirmation.ts";
import { plannedRequests, weighed } from "../../changes/pack/requests.ts";
import type { Plan } from "../../changes/plan/plan.ts";
import { isGoing } from "../../changes/planning.ts";
import { RunState } from "../../changes/state/change-state.ts";
import type { ByteSource } from "../../platform/bytes.ts";
import { declinedIn } from "../../render/approval.ts";
import { type Effect, effectOfCall, effectText } from "../../render/changes/effect.ts";
import { confirmationStep, renderReport } from "../../render/changes/report.ts";
import { toldFailures } from "../../render/failures/failures.ts";
import { requestFailure } from "../../render/failures/request-failures.ts";
import { ownReason } from "../../runs/reasons.ts";
import { countsOf } from "../../runs/report.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError } from "../definition.ts";
import { TookTooLong, withinWait } from "../within-wait.ts";
import { askFor } from "./confirmation/confirmation-token.ts";
import { effectOf } from "./confirmation/effect-of.ts";
import { keepElsewhere } from "./confirmation/elsewhere.ts";
import { interruptedHints } from "./earlier-runs.ts";
import { planInTime } from "./planning.ts";

/** A call, and the content of its file. */
export interface Given {
  readonly call: WriteCall;
  readonly bytes: ByteSource | undefined;
}

/** What is told of a call that is planned and not started: in its state only what failed in planning has an outcome. */
export function toldUnstarted(call: WriteCall, state: RunState, { environment }: Pick<ToolContext, "environment">) {
  const { takenFor, stale, rows } = state.facts;
  const told = {
    environment,
    tool: call.tool,
    file: fileOf(call),
    counts: countsOf(state),
    failures: toldFailures(state),
    results: [],
  };
  return { ...told, ...(takenFor && { takenFor }), ...(stale && { stale }), ...(rows && { rows }) };
}

/** Says what a call would do and what it would meet, and sends no write. */
export async function dryRun({ call, bytes }: Given, changes: Changes, context: ToolContext): Promise<ToolAnswer> {
  const plan = await planInTime((signal) => changes.plan(call, signal, bytes), context);
  if (isGoing(plan)) {
    plan.stop();
    throw tookTooLong();
  }
  try {
    const met = await withinWait(context, context.signal, (signal) => changes.foresee(plan, signal));
    plan.settlements.push(...met);
    return planned(call, plan, context);
  } catch (thrown) {
    if (!(isApiError(thrown) || thrown instanceof TookTooLong)) throw thrown;
    const why = isApiError(thrown) ? requestFailure(thrown).message : thrown.message;
    return planned(call, plan, context, [`present names and limits were not checked against what is there: ${why}`]);
  }
}

function planned(call: WriteCall, plan: Plan, context: ToolContext, notes: readonly string[] = []): ToolAnswer {
  const asks =
    plan.losses.length > 0
      ? [`when it is carried out, a person may be asked: ${effectText(effectOfCall(plan.losses, plan.objects))}`]
      : [];
  return renderReport({
    ...toldUnstarted(call, new RunState(plan), context),
    status: "planned",
    plan: weighed(plan.steps, plannedRequests(plan.steps)),
    notes: [...notes, ...asks],
  });
}

/** Planning takes longer than a call may take, and nothing can go on without the caller. */
export function tookTooLong(): ToolError {
  return new ToolError(
    "planning this took longer than a call may take; nothing was changed",
    "Give fewer items, or let TARGETING_MCP_WAIT_MS allow more time.",
  );
}

/** The answer to a client that cannot ask: what would go, and the token with which the kept run is started. */
export async function needsYes(
  header: ChangeHeader,
  plan: Plan,
  context: ToolContext,
  hints: readonly string[] = [],
): Promise<ToolAnswer> {
  const { runId, call } = header;
  const effect = await effectOf(header, plan, context);
  const confirmation = await askFor({ run: runId, digest: lossDigest(plan.losses) }, effectText(effect), context);
  await keepElsewhere(header, plan, { effect, elsewhere: "token", until: Date.parse(confirmation.expiresAt) }, context);
  return renderReport({
    ...toldUnstarted(call, new RunState(plan), context),
    runId,
    status: "needs_confirmation",
    confirmation,
    notes: hints,
    nextSteps: [confirmationStep(call.tool, confirmation.token), ...(await interruptedHints(context, runId))],
  });
}

/** The client declined: nothing is attempted, and that is no error. */
export function notDone(call: WriteCall, plan: Plan, context: ToolContext, effect?: Effect): ToolAnswer {
  const state = new RunState(plan);
  state.apply({ t: "stop", cause: "cancelled", at: 0, reason: ownReason("DECLINED") });
  return renderReport({
    ...toldUnstarted(call, state, context),
    status: "cancelled",
    approval: declinedIn("client"),
    notes: [
      "the client declined: nothing was changed; do not try again unless the person asks for it",
      ...(effect === undefined ? [] : [`the question was: ${effectText(effect)}`]),
    ],
  });
}
