import * as z from "zod";
import type { WriteCall } from "../../changes/call.ts";
import { lossDigest, mayNeedConfirmation, needsConfirmation } from "../../changes/confirmation.ts";
import { Plan } from "../../changes/plan/plan.ts";
import type { Planning } from "../../changes/planned-later.ts";
import type { Run } from "../../changes/run.ts";
import type { ChangeHeader } from "../../changes/run-form.ts";
import type { Runs } from "../../changes/runs.ts";
import { strandedNames } from "../../changes/settle/stranded-names.ts";
import type { ByteSource } from "../../platform/bytes.ts";
import { endedHint, goesOnHint } from "../../render/earlier-runs.ts";
import { effectText, questionText } from "../../render/effect.ts";
import { toldFailures } from "../../render/failures.ts";
import { type ReportedRun, renderReport } from "../../render/report.ts";
import { countsOf, objectResults, type ReportedState, type RunStatus } from "../../runs/report.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError, type ToolOutcome, type Undecided, type UndecidedAnswer } from "../definition.ts";
import { checkAllowed } from "./allowed-targetings.ts";
import { askFor } from "./confirmation-token.ts";
import { interruptedHints } from "./earlier-runs.ts";
import { followRun } from "./follow-run.ts";
import { dryRun as dryRunOf, type Given, notDone, plannedState, tookTooLong } from "./planned.ts";
import { isGoing, planInTime } from "./planning.ts";
import { undecided } from "./undecided.ts";

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
  if (dryRun) return dryRunOf({ call, bytes }, runs, context);
  const answer = await runOrQuestion({ call, bytes }, runs, context);
  return "run" in answer ? reportRun(answer.run, context, answer.hints) : answer.outcome;
}

/** What a write came to before it is waited for: its run, or an answer without one. */
type RunOrOutcome =
  | { readonly run: Run | undefined; readonly hints?: readonly string[] }
  | { readonly outcome: ToolOutcome };

async function runOrQuestion(given: Given, runs: Runs, context: ToolContext): Promise<RunOrOutcome> {
  const { call, bytes } = given;
  const { going, ended } = await runs.madeBefore(call, context.caller);
  if (going !== undefined) return { run: going, hints: [goesOnHint()] };
  const hints = ended?.open ? [endedHint(ended)] : [];
  const plan = await planInTime((signal) => runs.plan(call, signal, bytes), context);
  if (isGoing(plan)) return withHints(await goOn(given, plan, runs, context), hints);
  if (!needsConfirmation(call, plan) || context.confirm === "off")
    return startOnce(given, plan, { runs, hints }, context);
  if (context.canAsk()) return ask(given, plan, { runs, hints }, context);
  if (context.confirm === "strict") {
    throw new ToolError(
      `this needs a person's yes, and this client cannot ask one. ${effectText(plan.losses)}`,
      "TARGETING_MCP_CONFIRM is strict: use a client that can ask (elicitation), or make the change in the web console.",
    );
  }
  return once(given, { runs, hints }, context, async (keep) => ({
    outcome: await needsYes(await keep(), plan, context, hints),
  }));
}

/** The runs, and what is to be said of earlier ones. */
interface Among {
  readonly runs: Runs;
  readonly hints: readonly string[];
}

/** Carries a call out, or attaches to the run of the same call that was made at the same time, in whatever process. */
async function once(
  { call, bytes }: Given,
  { runs, hints }: Among,
  { caller, arrivedAt }: ToolContext,
  make: (keep: () => Promise<ChangeHeader>) => Promise<RunOrOutcome>,
): Promise<RunOrOutcome> {
  return withHints(await runs.once({ call, caller, arrivedAt, bytes }, make), hints);
}

function startOnce(given: Given, plan: Plan, among: Among, context: ToolContext): Promise<RunOrOutcome> {
  return once(given, among, context, async (keep) => ({ run: await startOrFind(await keep(), plan, among.runs) }));
}

function withHints(answer: RunOrOutcome, hints: readonly string[]): RunOrOutcome {
  return "run" in answer ? { ...answer, hints: [...(answer.hints ?? []), ...hints] } : answer;
}

/** Planning takes longer than a call may take: it goes on without the caller, who gets the run's ID. */
async function goOn(given: Given, planning: Planning, runs: Runs, context: ToolContext): Promise<RunOrOutcome> {
  const { call, bytes } = given;
  const { reply, confirm, caller } = context;
  const asks = confirm !== "off" && mayNeedConfirmation(call);
  if (reply?.accepted === false) {
    planning.stop();
    return { outcome: notDone(call, new Plan(), context) };
  }
  if (asks && confirm === "strict" && reply === undefined) {
    planning.stop();
    throw tookTooLong();
  }
  if (asks) {
    const header = await runs.keep(call, caller, bytes, true);
    const isAgreed = (plan: Plan): boolean => reply !== undefined && lossDigest(plan.losses) === reply.token;
    return { run: await runs.prepare(header, planning, (plan) => !needsConfirmation(call, plan) || isAgreed(plan)) };
  }
  const made = await runs.once({ call, caller, arrivedAt: context.arrivedAt, bytes }, async (keep) => ({
    run: await runs.start(await keep(), planning),
    isOurs: true,
  }));
  if (!("isOurs" in made)) planning.stop();
  return { run: made.run };
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
  if (tool === "delete_targeting") return input.ids.length + (input.names ?? []).length;
  return tool === "delete_options" ? (input.ids ?? []).length + (input.names ?? []).length : 0;
}

/** Asks the person; when the server calls again with the reply, acts on it. */
async function ask(given: Given, plan: Plan, among: Among, context: ToolContext): Promise<RunOrOutcome> {
  const { reply } = context;
  const digest = lossDigest(plan.losses);
  const nobody = (why: Undecided): Promise<UndecidedAnswer> =>
    undecided(given, plan, why, { runs: among.runs, context });
  const question = { outcome: { ask: { message: questionText(plan.losses), token: digest, undecided: nobody } } };
  if (reply === undefined) return question;
  if (!reply.accepted) return { outcome: notDone(given.call, plan, context) };
  // Something changed since the person was asked: what they agreed to is not what would happen now.
  if (reply.token !== digest) return question;
  return startOnce(given, plan, among, context);
}

/** Starts a kept run; where another process has started it, gives that. */
export async function startOrFind(header: ChangeHeader, plan: Plan, runs: Runs): Promise<Run | undefined> {
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
  const told = [...nextSteps, ...(await interruptedHints(context, run.header.runId))];
  return renderReport({ ...(await reportOf(run, context)), nextSteps: told });
}

/** A run as reports tell it. One that was planned after its call had answered tells what a person is to agree to. */
export async function reportOf(run: Run, context: ToolContext): Promise<ReportedRun> {
  const isAtRest = run.status() !== "running";
  const report = {
    ...reported(run, context.environment),
    ...(isAtRest && { strandedNames: strandedNames(run.state) }),
  };
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

/** The answer to a client that cannot ask: what would go, and the token with which the kept run is started. */
export async function needsYes(
  header: ChangeHeader,
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
    nextSteps: [
      ...hints,
      "show the effect to the person and wait for their decision",
      ...(await interruptedHints(context, runId)),
    ],
  });
}
