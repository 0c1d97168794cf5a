import * as z from "zod";
import { questionText } from "../answers/approvals.ts";
import type { ApprovalRun, Granted } from "../changes/approvals.ts";
import { isChangeRun } from "../changes/change-run.ts";
import type { Run } from "../runs/kind.ts";
import { changesOf, eventsOf } from "./apis.ts";
import { type ToolContext, type ToolDefinition, ToolError, type ToolServices } from "./define-tool.ts";
import { approvalToResume, checkStarted } from "./resume-run.ts";
import { ownRun, reportedRun } from "./run-reports.ts";
import { waitingAnywhere, waitingRun } from "./write/awaiting-decision.ts";
import { isSecretFor } from "./write/confirmation-token.ts";
import { type Approved, type Decision, decide, type Outcome, type Person, personOf } from "./write/decide.ts";
import { runOutput } from "./write/write.ts";

const input = () =>
  z.strictObject({
    runId: z.string(),
    decision: z.enum(["approve", "decline"]),
    secret: z.string().describe("From the _meta of the answer that waits for the decision"),
  });

/** The tool with which a view sends a person's decision. It is hidden from models. */
export const decideRun = {
  name: "decide_run",
  title: "Decide on a run",
  description: "Only for the view of a run: sends the person's decision.",
  toolset: "targeting",
  effect: "changes",
  idempotent: true,
  input,
  output: runOutput,
  async handler({ runId, decision, secret }, context) {
    const { digest = "" } = (await waitingRun(runId, context))?.state.facts.waits ?? {};
    // The secret is checked first: it is only valid for a waiting run of this caller. So nobody can find out anything
    // about runs of others.
    if (!(await isSecretFor({ runId, digest }, secret, context))) throw nothingToDecide();
    const answer = decision === "approve" ? "approved" : "declined";
    const saw = (seen: string): boolean => seen === digest;
    const outcome = await decide(runId, { answer, channel: "view", person: personOf(context), saw }, context);
    if (outcome.is !== "done" && outcome.is !== "stale") throw nothingToDecide();
    const report = await reportedRun(await ownRun(runId, context), context);
    return outcome.is === "stale" ? { ...report, isError: true } : report;
  },
} as const satisfies ToolDefinition<ReturnType<typeof input>>;

function nothingToDecide(): ToolError {
  return new ToolError(
    "no decision is possible here: the run does not wait for one, or the secret belongs to another run",
    "get_run shows the status of the run.",
  );
}

const STALE = "the run has changed since this approval was requested";

/**
 * Starts the work that a person approved, and only once, even if several processes try. Returns "stale" if the work
 * would no longer do what was approved. Undefined if it was started before.
 */
export async function grant(
  approval: ApprovalRun,
  approved: Approved,
  services: ToolServices,
): Promise<Run | "stale" | undefined> {
  const { approvals } = services;
  const { header, state } = approval;
  const { waits } = state.facts;
  if (waits === undefined) return undefined;
  const work = await workOf(approval, approved, callerContext(approval, services));
  if (work !== undefined) return approvals.runs.start(header, { ...approved, work }, { meanwhile: state });
  const facts = { ...state.facts, waits: { ...waits, stale: STALE } };
  const { name = "" } = state.objects[0] ?? {};
  const entries = [{ t: "approval", facts, name, at: services.clock.now() }] as const;
  return (await approvals.runs.propose(header.runId, entries, "waiting")) ? "stale" : undefined;
}

export function callerContext({ header }: Pick<Run, "header">, services: ToolServices): ToolContext {
  const { clock, stopping } = services;
  return { ...services, caller: header.caller, arrivedAt: clock.now(), signal: stopping, canAsk: () => false };
}

async function workOf(
  approval: ApprovalRun,
  approved: Approved,
  context: ToolContext,
): Promise<Granted["work"] | undefined> {
  const { runId, call } = approval.header;
  const { about, saveTo } = call.input;
  if (call.tool === "run_event_tests") {
    eventsOf(context);
    const { runApprovedTests } = await import("./run-event-tests.ts");
    return (signal) => runApprovedTests(runId, { suiteId: about, saveTo }, { ...context, signal });
  }
  const run = await ownRun(about, context);
  if (!isChangeRun(run) || run.status() === "running") return undefined;
  await checkStarted(run, context);
  if ((await approvalToResume(run, context))?.sentence !== approval.state.facts.effect) return undefined;
  await context.runs.checkExecutable(run);
  return async () => {
    await changesOf(context).runs.resume(about, approved);
  };
}

/** Resumes a run for a person who pressed Resume. If the run needs approval, pressing the button is the approval. */
export async function resumeFor(run: Run, person: Person, services: ToolServices): Promise<void> {
  const { runId } = run.header;
  if (!isChangeRun(run)) {
    await services.runs.resume(runId);
    return;
  }
  const context = callerContext(run, services);
  await checkStarted(run, context);
  await services.runs.checkExecutable(run);
  const { runs } = changesOf(services);
  if ((await approvalToResume(run, context)) === undefined) {
    await runs.resume(runId);
    return;
  }
  const decision: Decision = { answer: "approved", channel: "page", person, saw: () => true };
  const start = (approved: Approved) => runs.resume(runId, approved);
  await decide(runId, decision, services, { looked: { run, digest: "", start } });
}

export interface RunQuestion {
  readonly runId: string;
  readonly digest: string;
  readonly message: string;
}

/** Returns the question about a waiting run. Undefined if it does not wait, or if its effect has changed. */
export async function runQuestion(runId: string, context: ToolContext): Promise<RunQuestion | undefined> {
  const { waits, effect } = (await waitingAnywhere(runId, context))?.state.facts ?? {};
  if (waits === undefined || waits.stale !== undefined) return undefined;
  const { digest, parts } = waits;
  return { runId, digest, message: questionText({ sentence: effect ?? waits.effect, parts }) };
}

/** Carries out a decision that the client reports. It is valid only for the effect that the question showed. */
export function decideInClient(
  { runId, digest }: Pick<RunQuestion, "runId" | "digest">,
  isApproved: boolean,
  context: ToolContext,
): Promise<Outcome> {
  const answer = isApproved ? "approved" : "declined";
  const saw = (effect: string): boolean => effect === digest;
  return decide(runId, { answer, channel: "client", person: personOf(context), saw }, context, { grant });
}
