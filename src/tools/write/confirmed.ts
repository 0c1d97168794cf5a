import * as z from "zod";
import { changedEffect } from "../../answers/approvals.ts";
import type { WriteCall, WriteTool } from "../../changes/call.ts";
import { isWithdrawn, needsConfirmation, writeCall } from "../../changes/change-kinds.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader, StartPlanned } from "../../changes/changes.ts";
import { isGoing, type Plan } from "../../changes/plan/plan.ts";
import { isUnstarted } from "../../runs/store.ts";
import { changesOf } from "../apis.ts";
import { type ToolAnswer, type ToolContext, ToolError, type ToolOutcome } from "../define-tool.ts";
import { reportRun, usedBeforeNote } from "../run-reports.ts";
import { effectOf, tokenLater } from "./awaiting-decision.ts";
import { type Confirmation, checkCounts, confirmationIn, expired } from "./confirmation-token.ts";
import { beginPlanned, type Decision, decide, personOf, plannedChange, refusedError } from "./decide.ts";
import { answerWithToken, planInTime } from "./within-call.ts";

export const confirmationArgument = () => ({
  confirmation: z.string().optional().describe("Token of a needs_confirmation answer, once approved; sent alone"),
});

interface GivenConfirmation {
  readonly tool: WriteTool;
  readonly token: string;
  readonly call?: WriteCall | undefined;
  readonly targetingId?: string | undefined;
  readonly runId?: string | undefined;
  readonly dryRun?: boolean | undefined;
}

/** Starts the run of a token, or reports it if it was started before. If its effect has changed, gives a new token. */
export async function confirmed(given: GivenConfirmation, context: ToolContext): Promise<ToolOutcome> {
  const changes = changesOf(context);
  const confirmation = await confirmationIn(given.token, context);
  const stored = await changes.runs.stored(confirmation.run);
  if (stored === undefined)
    throw new ToolError("the planned run is no longer stored", "Call again without confirmation.");
  checkSameArguments(given, stored.header);
  if (!isUnstarted(stored.record.status)) {
    const run = await changes.runs.find(confirmation.run);
    return reportStarted(run, context, run === undefined ? [] : usedBeforeNote(run));
  }
  return startConfirmed(stored.header, confirmation, context);
}

async function startConfirmed(
  header: ChangeHeader,
  confirmation: Confirmation,
  context: ToolContext,
): Promise<ToolOutcome> {
  const { runId } = header;
  const changes = changesOf(context);
  const decision: Decision = {
    answer: "approved",
    channel: "token",
    person: personOf(context),
    saw: confirmation.isFor,
    until: confirmation.expiresAt,
  };
  checkCounts(confirmation, context);
  const bytes = context.runs.part(runId, "input");
  await changes.runs.checkExecutable(header);
  const isEverywhere = "everywhere" in header.call.input;
  // Loaded only here, because few calls use removeEverywhere.
  const { withCurrentHolders } = isEverywhere ? await import("../option-search.ts") : {};
  const call = (await withCurrentHolders?.(header.call, context)) ?? header.call;
  const plan = await plannedOrStarted(runId, context, () =>
    planInTime((signal) => changes.plan(call, signal, bytes), context),
  );
  if (plan === "started") return reportStarted(await changes.runs.find(runId), context);
  if (isGoing(plan)) {
    const meanwhile = (await changes.runs.find(runId))?.state;
    const begin = (made: Plan, start: StartPlanned) => beginPlanned(header, made, { decision, start }, context);
    return reportRun(await changes.prepare(header, plan, begin, { meanwhile, ask: tokenLater(context) }), context);
  }
  const outcome = await decide(runId, decision, context, { looked: plannedChange(header, plan, context) });
  if (outcome.is === "refused") throw refusedError();
  if (outcome.is === "expired") throw expired();
  if (outcome.is !== "changed") return reportStarted(await changes.runs.find(runId), context);
  if (!needsConfirmation(plan)) {
    plan.note({ asked: "not_needed" });
    return reportStarted(await changes.startOrFind(header, plan), context);
  }
  const before = (await changes.runs.find(runId))?.state.facts.effect;
  const how = before === undefined ? "" : `: ${changedEffect(before, await effectOf(header, plan, context))}`;
  const changed = `what would be removed has changed since the person approved it, so nothing was done yet${how}`;
  return answerWithToken(await changes.keep(call, context.caller, bytes, context.requested), plan, context, [changed]);
}

/** Plans a run. Returns "started" if another call has started it meanwhile, which can make planning fail. */
async function plannedOrStarted<P>(
  runId: string,
  { runs }: Pick<ToolContext, "runs">,
  plan: () => Promise<P>,
): Promise<P | "started"> {
  const isStarted = async (): Promise<boolean> => (await runs.isUnstarted(runId)) === false;
  try {
    const made = await plan();
    return (await isStarted()) ? "started" : made;
  } catch (thrown) {
    if (await isStarted()) return "started";
    throw thrown;
  }
}

function reportStarted(
  run: ChangeRun | undefined,
  context: ToolContext,
  notes: readonly string[] = [],
): Promise<ToolAnswer> {
  if (run === undefined || !isWithdrawn(run.state)) return reportRun(run, context, [], { notes });
  const code = run.state.stopped?.reason?.code;
  if (code === "NOT_DECIDED") throw expired();
  const how = code === "DECLINED" ? "declined" : "cancelled";
  throw new ToolError(
    `this run was ${how} before it was started, so its confirmation is no longer valid; nothing was done`,
    "If the person wants it after all, make the call again without confirmation.",
  );
}

function checkSameArguments(
  { tool, call, targetingId, runId, dryRun }: GivenConfirmation,
  { runId: plannedRun, call: planned }: ChangeHeader,
): void {
  if (dryRun) {
    throw new ToolError(
      "dryRun was given together with confirmation; nothing was done",
      "To apply the change, give confirmation alone. To plan it, leave confirmation out.",
    );
  }
  if (tool !== planned.tool) {
    throw new ToolError(
      `the confirmation belongs to ${planned.tool}; nothing was done`,
      `Give the confirmation to ${planned.tool}.`,
    );
  }
  const plannedTargeting = "targetingId" in planned.input ? planned.input.targetingId : undefined;
  const isSame =
    (runId === undefined || runId === plannedRun) &&
    (call === undefined ? targetingId === undefined || targetingId === plannedTargeting : isSameCall(call, planned));
  if (!isSame) {
    throw new ToolError(
      "the arguments given with confirmation differ from the planned ones",
      "Give confirmation alone.",
    );
  }
}

function isSameCall(one: WriteCall, other: WriteCall): boolean {
  return JSON.stringify(writeCall.parse(one)) === JSON.stringify(writeCall.parse(other));
}
