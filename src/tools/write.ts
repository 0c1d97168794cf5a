import * as z from "zod";
import type { WriteCall } from "../bulk/call.ts";
import { lossDigest, mayNeedConfirmation, needsConfirmation } from "../bulk/confirmation.ts";
import type { ByteSource } from "../bulk/files/bytes.ts";
import { Plan } from "../bulk/plan/plan.ts";
import type { Planning } from "../bulk/preparing.ts";
import { ownReason } from "../bulk/reasons.ts";
import { countsOf, objectResults, type ReportedState, type RunStatus } from "../bulk/report.ts";
import { plannedRequests } from "../bulk/requests.ts";
import type { Run } from "../bulk/run.ts";
import { RunState } from "../bulk/run-state.ts";
import type { Runs } from "../bulk/runs.ts";
import type { RunHeader } from "../bulk/store.ts";
import { effectText, questionText } from "../render/effect.ts";
import { toldFailures } from "../render/failures.ts";
import { type ReportedRun, renderReport } from "../render/report.ts";
import { undecidedStep } from "../render/undecided.ts";
import { checkAllowed } from "./allowed-targetings.ts";
import { askFor } from "./confirmation-token.ts";
import type { ToolContext } from "./context.ts";
import { type ToolAnswer, ToolError, type ToolOutcome, type Undecided, type UndecidedAnswer } from "./definition.ts";
import { followRun } from "./follow-run.ts";
import { isGoing, planInTime } from "./planning.ts";

/** How many results a report looks at; it shows at most ten. */
const RESULTS_READ = 10;

/** The schema of every answer about a run; nested shapes stay open, so that it costs few tokens. */
export const runOutput = () =>
  z.looseObject({
    environment: z.string(),
    runId: z.string().optional(),
    status: z.string().optional(),
    counts: z.looseObject({}).optional(),
    requests: z.looseObject({}).optional(),
    failures: z.array(z.looseObject({})).optional(),
    results: z.array(z.looseObject({})).optional(),
    nextSteps: z.array(z.string()).optional(),
  });

/** The argument that every tool that writes takes. */
export const dryRunArgument = () => ({
  dryRun: z.boolean().optional().describe("Only plan: say which requests would go out, send none"),
});

/** How a write is carried out; `bytes` is the content of the call's file, where it has one. */
interface WriteOptions {
  readonly dryRun?: boolean | undefined;
  readonly bytes?: ByteSource | undefined;
}

/** Carries out a write: plans it, asks a person where it takes something away, runs it, and reports. */
export async function write(
  call: WriteCall | undefined,
  { dryRun, bytes }: WriteOptions,
  context: ToolContext,
): Promise<ToolOutcome> {
  const runs = runsOf(context);
  if (call === undefined) throw new ToolError("nothing was given to do", "Give the items, or the confirmation alone.");
  checkDeletes(call, context);
  await checkAllowed(call, bytes, context);
  if (dryRun) {
    const plan = await planInTime((signal) => runs.plan(call, signal, bytes), context);
    if (!isGoing(plan)) return planned(call, plan, context);
    plan.stop();
    throw tookTooLong();
  }
  // The same call made twice at once has one run.
  const answer = await runs.inTurn(call, context.caller, () => runOrQuestion({ call, bytes }, runs, context));
  return "run" in answer ? reportRun(answer.run, context, answer.hints) : answer.outcome;
}

/** What a write came to before it is waited for: its run, or an answer without one. */
type RunOrOutcome =
  | { readonly run: Run | undefined; readonly hints?: readonly string[] }
  | { readonly outcome: ToolOutcome };

/** A call, and the content of its file. */
interface Given {
  readonly call: WriteCall;
  readonly bytes: ByteSource | undefined;
}

async function runOrQuestion({ call, bytes }: Given, runs: Runs, context: ToolContext): Promise<RunOrOutcome> {
  const going = await runs.unfinished(call, context.caller);
  if (going !== undefined) {
    return { run: going, hints: ["this call was made before and had not finished: this is that run, taken up again"] };
  }
  const plan = await planInTime((signal) => runs.plan(call, signal, bytes), context);
  if (isGoing(plan)) return goOn({ call, bytes }, plan, runs, context);
  if (!needsConfirmation(call, plan) || context.confirm === "off") {
    return { run: await startOrFind(await runs.keep(call, context.caller, bytes), plan, runs) };
  }
  if (context.canAsk()) return ask({ call, bytes }, plan, runs, context);
  if (context.confirm === "strict") {
    throw new ToolError(
      `this needs a person's yes, and this client cannot ask one. ${effectText(plan.losses)}`,
      "TARGETING_MCP_CONFIRM is strict: use a client that can ask (elicitation), or make the change in the web console.",
    );
  }
  return { outcome: await needsYes(await runs.keep(call, context.caller, bytes), plan, context) };
}

/** Planning takes longer than a call may take: it goes on without the caller, who gets the run's ID. */
async function goOn(
  { call, bytes }: Given,
  planning: Planning,
  runs: Runs,
  context: ToolContext,
): Promise<RunOrOutcome> {
  const { reply, confirm } = context;
  const asks = confirm !== "off" && mayNeedConfirmation(call);
  if (reply?.accepted === false) {
    planning.stop();
    return { outcome: notDone(call, new Plan(), context) };
  }
  if (asks && confirm === "strict" && reply === undefined) {
    planning.stop();
    throw tookTooLong();
  }
  if (!asks) return { run: await runs.start(await runs.keep(call, context.caller, bytes), planning) };
  const header = await runs.keep(call, context.caller, bytes, true);
  const isAgreed = (plan: Plan): boolean => reply !== undefined && lossDigest(plan.losses) === reply.token;
  return { run: await runs.prepare(header, planning, (plan) => !needsConfirmation(call, plan) || isAgreed(plan)) };
}

function tookTooLong(): ToolError {
  return new ToolError(
    "planning this took longer than a call may take; nothing was changed",
    "Give fewer items, or let TARGETING_MCP_WAIT_MS allow more time.",
  );
}

/** The runs, for a tool that is listed only where the management API is configured. */
export function runsOf({ runs }: ToolContext): Runs {
  if (runs !== undefined) return runs;
  throw new ToolError("the management API is not configured", "Set TARGETING_API_URL and TARGETING_API_KEY.");
}

/** Refuses too many deletions before anything is read for them. */
function checkDeletes(call: WriteCall, { maxDeletes }: ToolContext): void {
  const deletions = deletionsOf(call);
  if (deletions <= maxDeletes) return;
  throw new ToolError(
    `${deletions} deletions in one call are more than the ${maxDeletes} that are allowed; nothing was deleted`,
    "Delete fewer at a time; TARGETING_MCP_MAX_DELETES sets the limit.",
  );
}

function deletionsOf({ tool, input }: WriteCall): number {
  if (tool === "delete_targeting") return input.ids.length;
  return tool === "delete_options" ? (input.ids ?? []).length + (input.names ?? []).length : 0;
}

/** Asks the person; when the server calls again with the reply, acts on it. */
async function ask({ call, bytes }: Given, plan: Plan, runs: Runs, context: ToolContext): Promise<RunOrOutcome> {
  const { reply } = context;
  const digest = lossDigest(plan.losses);
  const nobody = (why: Undecided): Promise<UndecidedAnswer> => undecided({ call, bytes }, plan, why, context);
  const question = { outcome: { ask: { message: questionText(plan.losses), token: digest, undecided: nobody } } };
  if (reply === undefined) return question;
  if (!reply.accepted) return { outcome: notDone(call, plan, context) };
  // Something changed since the person was asked: what they agreed to is not what would happen now.
  if (reply.token !== digest) return question;
  return { run: await startOrFind(await runs.keep(call, context.caller, bytes), plan, runs) };
}

/**
 * The answer where nobody has decided. A question that is only unanswered has a run that a later yes starts, if it would
 * still do the same, and a later no ends. One that was closed has none: no person may have seen it.
 */
async function undecided(
  { call, bytes }: Given,
  plan: Plan,
  why: Undecided,
  context: ToolContext,
): Promise<UndecidedAnswer> {
  const runs = runsOf(context);
  const header = why === "unanswered" ? await runs.keep(call, context.caller, bytes) : undefined;
  if (header !== undefined) await runs.propose(header.runId, plan);
  const state = plannedState(plan);
  const answer = renderReport({
    environment: context.environment,
    ...(header && { runId: header.runId }),
    tool: call.tool,
    status: "needs_confirmation",
    counts: countsOf(state),
    failures: toldFailures(state),
    results: [],
    nextSteps: [effectText(plan.losses), undecidedStep(why, header?.runId)],
  });
  if (header === undefined) return { answer };
  const digest = lossDigest(plan.losses);
  return {
    answer,
    async later(accepted) {
      if (!accepted) {
        await runs.withdraw(header.runId, { cause: "cancelled", reason: ownReason("DECLINED") });
        return;
      }
      // It may have been cancelled meanwhile.
      if ((await runs.stored(header.runId))?.started !== false) return;
      const stopping = new AbortController();
      const anew = runs.plan(call, stopping.signal, runs.part(header.runId, "input"));
      const planning = { plan: anew, stop: () => stopping.abort() };
      const isAgreed = (made: Plan): boolean => lossDigest(made.losses) === digest || !needsConfirmation(call, made);
      await runs.prepare(header, planning, isAgreed, state);
    },
  };
}

/** Starts a kept run; where another process has started it, gives that. */
export async function startOrFind(header: RunHeader, plan: Plan, runs: Runs): Promise<Run | undefined> {
  return (await runs.start(header, plan)) ?? (await runs.find(header.runId));
}

/** Waits for a run to rest, but no longer than a call may take, and reports it. */
export async function reportRun(
  run: Run | undefined,
  context: ToolContext,
  nextSteps: readonly string[] = [],
): Promise<ToolAnswer> {
  if (run === undefined) throw new ToolError("there is no such run", "get_run without runId lists the runs.");
  await followRun(run, context);
  return renderReport({ ...(await reportOf(run, context)), nextSteps });
}

/** A run as reports tell it. One that was planned after its call had answered tells what a person is to agree to. */
export async function reportOf(run: Run, context: ToolContext): Promise<ReportedRun> {
  const report = reported(run, context.environment);
  const losses = run.asks();
  if (losses === undefined || run.status() !== "needs_confirmation") return report;
  const planned = { run: run.header.runId, digest: lossDigest(losses) };
  return { ...report, confirmation: await askFor(planned, effectText(losses), context) };
}

/** What reports look at in a run, whatever it sends. */
interface Reportable {
  readonly header: { readonly runId: string; readonly call: { readonly tool: string; readonly input: object } };
  readonly state: ReportedState;
  status(): RunStatus;
}

/** A run as reports tell it, with its first results. */
export function reported(run: Reportable, environment: "live" | "sandbox"): ReportedRun {
  const { header, state } = run;
  return {
    environment,
    runId: header.runId,
    tool: header.call.tool,
    status: run.status(),
    counts: countsOf(state),
    requests: state.requests,
    failures: toldFailures(state),
    results: objectResults(state, 0, RESULTS_READ),
    hasRejects:
      "file" in header.call.input &&
      header.call.input.file !== undefined &&
      run.status() !== "running" &&
      state.counts().failed > 0,
  };
}

/** A run as its plan leaves it: only what failed in planning has an outcome. */
function plannedState(plan: Plan): RunState {
  return new RunState(plan.tables, plan.settlements);
}

function planned(call: WriteCall, plan: Plan, { environment }: ToolContext): ToolAnswer {
  const state = plannedState(plan);
  return renderReport({
    environment,
    tool: call.tool,
    status: "planned",
    counts: countsOf(state),
    failures: toldFailures(state),
    results: [],
    plan: plannedRequests(plan.steps).map((request) => request.flatMap((id) => plan.steps.at(id) ?? [])),
    ...(plan.losses.length > 0 && {
      nextSteps: [`when it is carried out, a person may be asked: ${effectText(plan.losses)}`],
    }),
  });
}

/** The answer to a client that cannot ask: what would go, and the token with which the kept run is started. */
export async function needsYes(
  header: RunHeader,
  plan: Plan,
  context: ToolContext,
  hints: readonly string[] = [],
): Promise<ToolAnswer> {
  const state = plannedState(plan);
  const { runId } = header;
  await runsOf(context).propose(runId, plan);
  return renderReport({
    environment: context.environment,
    runId,
    tool: header.call.tool,
    status: "needs_confirmation",
    counts: countsOf(state),
    failures: toldFailures(state),
    results: [],
    confirmation: await askFor({ run: runId, digest: lossDigest(plan.losses) }, effectText(plan.losses), context),
    nextSteps: [...hints, "show the effect to the person and wait for their decision"],
  });
}

/** The person said no: nothing is attempted, and that is no error. */
function notDone(call: WriteCall, plan: Plan, { environment }: ToolContext): ToolAnswer {
  const state = plannedState(plan);
  state.apply({ t: "stop", cause: "cancelled", at: 0, reason: ownReason("DECLINED") });
  return renderReport({
    environment,
    tool: call.tool,
    status: "cancelled",
    counts: countsOf(state),
    failures: toldFailures(state),
    results: [],
    nextSteps: ["the person did not agree: nothing was changed; do not try again unless they ask for it"],
  });
}
