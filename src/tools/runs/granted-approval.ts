import type { ApprovalRun, Granted } from "../../approvals/approvals.ts";
import { isChangeRun } from "../../changes/change-run.ts";
import type { Run } from "../../runs/kind.ts";
import { changesOf, eventsOf } from "../apis.ts";
import type { ToolContext, ToolServices } from "../context.ts";
import { askedAt, callerContext, type Decider, type DecisionOutcome, note } from "../writing/confirmation/deciding.ts";
import { checkStarted, yesToGoOn } from "./resumed-change.ts";
import { ownRun } from "./run-reports.ts";

const STALE = "the run is no longer as it was when this was asked";

/**
 * Does what a person was asked for beside changes, once in all processes, after the yes stands in its journal. Throws
 * ToolErrors where it cannot be done any more.
 */
export async function grant(approval: ApprovalRun, by: Decider, services: ToolServices): Promise<DecisionOutcome> {
  const { approvals } = services;
  const { header, state } = approval;
  const { waits } = state.facts;
  if (approvals === undefined || waits === undefined) return "decided";
  if (waits.stale !== undefined) return "stale";
  const agreed = agreedBy(by, services);
  const work = await workOf(approval, agreed, callerContext(approval, services));
  if (work === undefined) {
    const facts = { ...state.facts, waits: { ...waits, stale: STALE } };
    const { name = "" } = state.objects[0] ?? {};
    await approvals.runs.propose(header.runId, [{ t: "approval", facts, name, at: services.clock.now() }], "waiting");
    return "stale";
  }
  if ((await approvals.runs.start(header, { ...agreed, work }, state)) === undefined) return "decided";
  note(approval, "approved", agreed.decided, services);
  return "done";
}

type Agreed = Omit<Granted, "work">;

function agreedBy(by: Decider, { clock }: Pick<ToolServices, "clock">): Agreed {
  return { asked: askedAt(by), decided: { ...by, at: clock.now() } };
}

/** What a yes leads to; undefined where it would be something else by now. */
async function workOf(
  approval: ApprovalRun,
  agreed: Agreed,
  context: ToolContext,
): Promise<Granted["work"] | undefined> {
  const { runId, call } = approval.header;
  const { about, saveTo } = call.input;
  if (call.tool === "run_event_tests") {
    eventsOf(context);
    const { runAgreed } = await import("../events/suite-run.ts");
    return (signal) => runAgreed(runId, { suiteId: about, saveTo }, { ...context, signal });
  }
  const run = await ownRun(about, context);
  if (!isChangeRun(run) || run.status() === "running") return undefined;
  await checkStarted(run, context);
  if ((await yesToGoOn(run, context))?.sentence !== approval.state.facts.effect) return undefined;
  await context.runs.checkExecutable(run);
  return async () => {
    await changesOf(context).runs.resume(about, agreed);
  };
}

/** Takes up a run for a person who presses that button: theirs is the yes that it may need. Throws ToolErrors. */
export async function resumeFor(run: Run, by: Decider, services: ToolServices): Promise<void> {
  const { runId } = run.header;
  if (!isChangeRun(run)) {
    await services.runs.resume(runId);
    return;
  }
  const context = callerContext(run, services);
  await checkStarted(run, context);
  await services.runs.checkExecutable(run);
  const needsYes = (await yesToGoOn(run, context)) !== undefined;
  const agreed = agreedBy(by, services);
  const resumed = await changesOf(context).runs.resume(runId, needsYes ? agreed : undefined);
  if (needsYes && resumed !== undefined) note(run, "approved", agreed.decided, services);
}
