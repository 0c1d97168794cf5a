import * as z from "zod";
import { fileOf, type WriteCall, writeCall } from "../bulk/call.ts";
import {
  CONFIRMATION_MS,
  type Confirmation,
  lossDigest,
  needsConfirmation,
  openConfirmation,
  sealConfirmation,
} from "../bulk/confirmation.ts";
import type { ByteSource } from "../bulk/files/bytes.ts";
import type { TargetingMemory } from "../bulk/memory.ts";
import type { Plan } from "../bulk/plan/plan.ts";
import { countsOf, failureGroups, objectResult } from "../bulk/report.ts";
import { plannedRequests } from "../bulk/requests.ts";
import { RunState } from "../bulk/run-state.ts";
import type { Run, Runs } from "../bulk/runs.ts";
import type { RunHeader } from "../bulk/store.ts";
import { effectText, questionText } from "../render/effect.ts";
import { type ReportedRun, renderReport, toldFailures } from "../render/report.ts";
import type { ToolContext } from "./context.ts";
import { type ToolAnswer, ToolError, type ToolOutcome } from "./definition.ts";

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

/** The argument of tools that may take something away. */
export const confirmationArgument = () => ({
  confirmation: z.string().optional().describe("Token of a needs_confirmation answer, alone, once the person agreed"),
});

/** How a write is carried out. */
interface WriteOptions {
  readonly dryRun?: boolean | undefined;
  readonly confirmation?: string | undefined;
  readonly bytes?: ByteSource | undefined;
}

/**
 * Carries out a write: plans it, asks a person where it takes something away, runs it, and reports. `confirmation` is
 * a token of an earlier answer: the planned run that it names is started, and `call`, where given, must be the same.
 * `bytes` is the content of the call's file, where it has one.
 */
export async function write(
  call: WriteCall | undefined,
  { dryRun, confirmation, bytes }: WriteOptions,
  context: ToolContext,
): Promise<ToolOutcome> {
  const runs = runsOf(context);
  if (confirmation !== undefined) return confirmed(call, confirmation, runs, context);
  if (call === undefined) throw new ToolError("nothing was given to do", "Give the items, or the confirmation alone.");
  const going = dryRun ? undefined : await runs.unfinished(call, context.caller);
  if (going !== undefined) {
    return reportRun(going, context, [
      "this call was made before and had not finished: this is that run, taken up again",
    ]);
  }
  const plan = await runs.plan(call, context.signal, bytes);
  if (dryRun) return planned(call, plan, context);
  checkDeletes(call, plan, context);
  if (!needsConfirmation(call, plan) || context.confirm === "off") {
    return begin(await runs.keep(call, context.caller, bytes), plan, runs, context);
  }
  if (context.canAsk) return ask({ call, bytes }, plan, runs, context);
  if (context.confirm === "strict") {
    throw new ToolError(
      `this needs a person's yes, and this client cannot ask one. ${effectText(plan.losses)}`,
      "TARGETING_MCP_CONFIRM is strict: use a client that can ask (elicitation), or make the change in the web console.",
    );
  }
  return needsYes(await runs.keep(call, context.caller, bytes), plan, context);
}

/** The runs, for a tool that is listed only where the management API is configured. */
export function runsOf({ runs }: ToolContext): Runs {
  if (runs !== undefined) return runs;
  throw new ToolError("the management API is not configured", "Set TARGETING_API_URL and TARGETING_API_KEY.");
}

function checkDeletes({ tool }: WriteCall, { objects }: Plan, { maxDeletes }: ToolContext): void {
  const deletes = tool === "delete_targeting" || tool === "delete_options";
  if (!deletes || objects.length <= maxDeletes) return;
  throw new ToolError(
    `${objects.length} deletions in one call are more than the ${maxDeletes} that are allowed; nothing was deleted`,
    "Delete fewer at a time; TARGETING_MCP_MAX_DELETES sets the limit.",
  );
}

/** Asks the person; when the server calls again with the reply, acts on it. */
async function ask(
  { call, bytes }: { readonly call: WriteCall; readonly bytes: ByteSource | undefined },
  plan: Plan,
  runs: Runs,
  context: ToolContext,
): Promise<ToolOutcome> {
  const { reply } = context;
  const digest = lossDigest(plan.losses);
  const question = { ask: { message: questionText(plan.losses), token: digest } };
  if (reply === undefined) return question;
  if (!reply.accepted) return notDone(call, plan, context);
  // Something changed since the person was asked: what they agreed to is not what would happen now.
  if (reply.token !== digest) return question;
  return begin(await runs.keep(call, context.caller, bytes), plan, runs, context);
}

async function confirmed(
  call: WriteCall | undefined,
  token: string,
  runs: Runs,
  context: ToolContext,
): Promise<ToolOutcome> {
  const confirmation = openConfirmation(context.sealKey, token);
  if (confirmation === undefined || confirmation.caller !== context.caller) {
    throw new ToolError("confirmation is not a token that this server gave to this caller", "Call again without it.");
  }
  const stored = await runs.stored(confirmation.run);
  if (stored === undefined) throw new ToolError("the planned run is gone", "Call again without confirmation.");
  if (call !== undefined && !isSameCall(call, stored.header.call)) {
    throw new ToolError("the arguments beside confirmation are not the planned ones", "Give confirmation alone.");
  }
  if (stored.started) return reportRun(await runs.find(confirmation.run), context);
  return startConfirmed(stored.header, confirmation, runs, context);
}

async function startConfirmed(
  header: RunHeader,
  confirmation: Confirmation,
  runs: Runs,
  context: ToolContext,
): Promise<ToolOutcome> {
  if (confirmation.expiresAt < context.clock.now()) {
    throw new ToolError("the confirmation has expired; nothing was done", "Call again without it to plan anew.");
  }
  const plan = await runs.replan(header, context.signal);
  if (lossDigest(plan.losses) === confirmation.digest) return begin(header, plan, runs, context);
  const again = await runs.keep(header.call, context.caller, runs.part(header.runId, "input"));
  const anew = await needsYes(again, plan, context);
  return { ...anew, text: `What would be taken away has changed since the person agreed.\n${anew.text}` };
}

function isSameCall(one: WriteCall, other: WriteCall): boolean {
  return JSON.stringify(writeCall.parse(one)) === JSON.stringify(writeCall.parse(other));
}

/** Starts a run and waits for it as long as a call may take. */
async function begin(header: RunHeader, plan: Plan, runs: Runs, context: ToolContext): Promise<ToolAnswer> {
  const run = (await runs.start(header, plan)) ?? (await runs.find(header.runId));
  return reportRun(run && { ...run, rest: run.rest.then(() => remember(run, context.memory)) }, context);
}

/** Targetings that a run made, renamed or deleted are known by name from now on. */
async function remember({ header, state }: Run, memory: TargetingMemory): Promise<void> {
  const { tool } = header.call;
  const ids = (outcomes: readonly string[]) =>
    state.objects.flatMap(({ child, name = "" }, object) => {
      const _id = state.idOf(object);
      return child === undefined && _id !== undefined && outcomes.includes(state.standing(object))
        ? [{ _id, name }]
        : [];
    });
  if (tool === "create_targetings" || tool === "rename_targetings") await memory.remember(ids(["succeeded"]));
  if (tool === "delete_targeting") {
    await memory.forget(ids(["succeeded", "alreadyDone"]).map(({ _id }) => _id));
  }
}

/** Waits for a run to rest, but no longer than a call may take, and reports it. */
export async function reportRun(
  run: Run | undefined,
  context: ToolContext,
  nextSteps: readonly string[] = [],
): Promise<ToolAnswer> {
  if (run === undefined) throw new ToolError("there is no such run", "get_run without runId lists the runs.");
  const stop = (): boolean => run.stop(context.stopping.aborted ? "interrupted" : "cancelled");
  const unwatch = run.watch(({ items, pending }, waitingMs) => {
    const waiting = waitingMs > 0 ? `waiting ${waitingMs} ms for the service` : undefined;
    context.progress?.(items - pending, items, waiting);
  });
  context.signal.addEventListener("abort", stop, { once: true });
  if (context.signal.aborted) stop();
  const timer = new AbortController();
  try {
    await Promise.race([run.rest, wait(context, timer.signal)]);
  } finally {
    timer.abort();
    unwatch();
    context.signal.removeEventListener("abort", stop);
  }
  return renderReport({ ...reported(run, context.environment), nextSteps });
}

async function wait({ clock, waitMs }: ToolContext, signal: AbortSignal): Promise<void> {
  try {
    await clock.sleep(waitMs, signal);
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  }
}

/** A run as reports tell it, with its first results. */
export function reported(run: Run, environment: "live" | "sandbox"): ReportedRun {
  const { header, state } = run;
  return {
    environment,
    runId: header.runId,
    tool: header.call.tool,
    status: run.status(),
    counts: countsOf(state),
    requests: state.requests,
    failures: toldFailures(failureGroups(state)),
    results: firstResults(state),
    hasRejects: fileOf(header.call) !== undefined && run.status() !== "running" && state.counts().failed > 0,
  };
}

function firstResults(state: RunState) {
  return state.objects.slice(0, RESULTS_READ).map((_, object) => objectResult(state, object));
}

/** A run as its plan leaves it: only what failed in planning has an outcome. */
function plannedState(plan: Plan): RunState {
  const state = new RunState();
  for (const entry of plan.entries()) state.apply(entry);
  return state;
}

function planned(call: WriteCall, plan: Plan, { environment }: ToolContext): ToolAnswer {
  const state = plannedState(plan);
  return renderReport({
    environment,
    tool: call.tool,
    status: "planned",
    counts: countsOf(state),
    failures: toldFailures(failureGroups(state)),
    results: [],
    plan: plannedRequests(plan.steps),
    ...(plan.losses.length > 0 && {
      nextSteps: [`when it is carried out, a person may be asked: ${effectText(plan.losses)}`],
    }),
  });
}

async function needsYes(header: RunHeader, plan: Plan, context: ToolContext): Promise<ToolAnswer> {
  const state = plannedState(plan);
  const expiresAt = context.clock.now() + CONFIRMATION_MS;
  const { runId, caller } = header;
  const token = sealConfirmation(context.sealKey, { run: runId, digest: lossDigest(plan.losses), caller, expiresAt });
  return renderReport({
    environment: context.environment,
    runId,
    tool: header.call.tool,
    status: "needs_confirmation",
    counts: countsOf(state),
    failures: toldFailures(failureGroups(state)),
    results: [],
    confirmation: { token, effect: effectText(plan.losses), expiresAt: new Date(expiresAt).toISOString() },
    nextSteps: ["show the effect to the person and wait for their decision"],
  });
}

/** The person said no: nothing is attempted, and that is no error. */
function notDone(call: WriteCall, plan: Plan, { environment }: ToolContext): ToolAnswer {
  const state = plannedState(plan);
  state.apply({ t: "stop", cause: "cancelled", at: 0 });
  return renderReport({
    environment,
    tool: call.tool,
    status: "cancelled",
    counts: countsOf(state),
    failures: toldFailures(failureGroups(state)),
    results: [],
    nextSteps: ["the person did not agree: nothing was changed; do not try again unless they ask for it"],
  });
}
