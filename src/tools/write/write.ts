import * as z from "zod";
import { declinedBeforeNote, type Effect, effectOfCall, effectText } from "../../answers/approvals.ts";
import { newRunHint, RESUMED_RUN } from "../../answers/run-headline.ts";
import { appliedBeforeNote } from "../../answers/run-report.ts";
import type { WriteCall } from "../../changes/call.ts";
import { CONFIRMATION_MS, changeOf, lossDigest, needsConfirmation } from "../../changes/change-kinds.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader, StartPlanned } from "../../changes/changes.ts";
import { isGoing, Plan, type Planning } from "../../changes/plan/plan.ts";
import type { ByteSource } from "../../platform/held-folder.ts";
import { changesOf } from "../apis.ts";
import { type ToolAnswer, type ToolContext, ToolError, type ToolOutcome } from "../define-tool.ts";
import { checkAllowed, tooManyDeletes } from "../execution-guard.ts";
import { reportRun } from "../run-reports.ts";
import { storeWaitingElsewhere, tokenLater } from "./awaiting-decision.ts";
import {
  beginPlanned,
  chooseChannel,
  decide,
  decided,
  inClient,
  isDecidedElsewhere,
  readQuestion,
  startDecided,
} from "./decide.ts";
import { askLater, decideOnPage, type KeptOnce, tokenInstead } from "./on-page.ts";
import { answerWithToken, type Given, planInTime, tookTooLong, undecided } from "./within-call.ts";

/** Returns the output schema of tools that report runs. Without fields of nested objects, it takes fewer tokens. */
export const runOutput = () =>
  z.looseObject({
    environment: z.string(),
    runId: z.string().optional(),
    status: z.string().optional(),
    counts: z.looseObject({}).optional(),
    failures: z.array(z.looseObject({})).optional(),
    results: z.array(z.looseObject({})).optional(),
    nextSteps: z.array(z.string()).optional(),
  });

export const dryRunArgument = () => ({
  dryRun: z.boolean().optional().describe("Plan, send nothing"),
});

interface WriteOptions {
  readonly dryRun?: boolean | undefined;
  readonly bytes?: ByteSource | undefined;
}

/** Plans a change, asks a person if it needs approval, applies it, and reports the result. `dryRun`: only plans it. */
export async function write(
  call: WriteCall | undefined,
  { dryRun, bytes }: WriteOptions,
  context: ToolContext,
): Promise<ToolOutcome> {
  if (call === undefined)
    throw new ToolError("the call changes nothing", "Say what to change or delete, or give confirmation alone.");
  const refused = tooManyDeletes(call, context.maxDeletes);
  if (refused !== undefined) throw new ToolError(`${refused.message}; nothing was deleted`, refused.remedy);
  await checkAllowed(call, bytes, context);
  if (dryRun) {
    // Loaded only here, because few calls are dry runs.
    const { dryRun: planOnly } = await import("./dry-runs.ts");
    return planOnly({ call, bytes }, context);
  }
  const answer = await runOrQuestion({ call, bytes }, context);
  if (!("run" in answer)) return answer.outcome;
  const { run, hints = [] } = answer;
  const notes = hints.length > 0 || run === undefined ? hints : await sameCallNote(run, context);
  return reportRun(run, context, [], { notes });
}

/** Within this time, in milliseconds, a repeated call may be a mistake. So its answer names the earlier run. */
const REPEATED_MS = 3_600_000;

/** Returns a note about a recent run of an identical call. */
async function sameCallNote({ header }: ChangeRun, context: ToolContext): Promise<readonly string[]> {
  const { repeats: runId } = header;
  const before = runId === undefined ? undefined : (await changesOf(context).runs.stored(runId))?.record.rest;
  if (runId === undefined || before === undefined) return [];
  const { status, updatedAt: at } = before;
  return context.clock.now() - at < REPEATED_MS ? appliedBeforeNote({ status, at, runId }) : [];
}

type RunOrOutcome =
  | { readonly run: ChangeRun | undefined; readonly hints?: readonly string[] }
  | { readonly outcome: ToolOutcome };

async function runOrQuestion(given: Given, context: ToolContext): Promise<RunOrOutcome> {
  const { call, bytes } = given;
  const changes = changesOf(context);
  const before = context.confirm === "off" ? undefined : await changes.runs.lastDeclined(call, context.caller);
  if (before !== undefined)
    return { run: before, hints: [declinedBeforeNote(context.clock.now() - before.state.updatedAt)] };
  const { going, ended } = await changes.runs.findEarlierRun(call, context.caller);
  if (going !== undefined) return { run: going, hints: [RESUMED_RUN] };
  const hints = ended?.open ? [newRunHint(ended)] : [];
  const plan = await planInTime((signal) => changes.plan(call, signal, bytes), context);
  if (isGoing(plan)) return withHints(await goOn(given, plan, context), hints);
  const effect = () => effectOfCall(plan.losses, plan.objects, plan.facts);
  return carryOut({ given, plan, effect, hints }, context);
}

interface PlannedCall {
  readonly given: Given;
  readonly plan: Plan;
  readonly effect: () => Effect;
  /** The run of the call, if it is stored already. */
  readonly stored?: ChangeHeader;
  readonly hints?: readonly string[];
}

/** Starts a planned change, or asks a person for approval first. */
export async function carryOut(
  { given, plan, effect, stored, hints = [] }: PlannedCall,
  context: ToolContext,
): Promise<RunOrOutcome> {
  // If an identical call arrived at the same time, its run is used, so that the change is applied only once.
  const once: KeptOnce = (make) =>
    stored === undefined ? changesOf(context).once({ ...context, ...given }, make) : make(async () => stored);
  const digest = lossDigest(plan.losses);
  const outcome = await decided<RunOrOutcome>(
    {
      needsApproval: needsConfirmation(plan),
      digest: stored === undefined ? digest : `${stored.runId} ${digest}`,
      effect,
      undecided: async (why) => {
        const none = () => undecided(given, plan, why, context, stored);
        if (why !== "closed" || !isDecidedElsewhere(context)) return none();
        // Some hosts close a question without showing it. The person is then asked in a view or on the web page, but
        // the agent gets no token.
        const shown = await decideOnPage(once, plan, context, async () => (await none()).answer);
        return { answer: "run" in shown ? await reportRun(shown.run, context) : shown.outcome };
      },
      onPage: () =>
        decideOnPage(once, plan, context, async (header) =>
          tokenInstead(effectText(effect()), context, (hint) =>
            answerWithToken(header, plan, context, [...hints, hint]),
          ),
        ),
      start: async (asked, more) => {
        const decision = asked === "agreed_in_client" ? inClient(context) : undefined;
        const started = await once(async (keep) => ({
          run: await startDecided(await keep(), plan, decision, context),
        }));
        return withHints(started, [...hints, ...more]);
      },
      declined: async () => ({ outcome: await declined(given, plan, context, { effect: effect(), stored }) }),
      token: async () => {
        const token = async (keep: () => Promise<ChangeHeader>): Promise<RunOrOutcome> => ({
          outcome: await answerWithToken(await keep(), plan, context, hints),
        });
        return withHints(await once(token), hints);
      },
    },
    context,
  );
  return "ask" in outcome ? { outcome } : outcome;
}

function withHints(answer: RunOrOutcome, hints: readonly string[]): RunOrOutcome {
  return "run" in answer ? { ...answer, hints: [...(answer.hints ?? []), ...hints] } : answer;
}

async function goOn(given: Given, planning: Planning, context: ToolContext): Promise<RunOrOutcome> {
  const { call, bytes } = given;
  const changes = changesOf(context);
  const { reply, confirm, caller } = context;
  if (reply?.accepted === false) {
    planning.stop();
    return { outcome: await declined(given, new Plan(), context) };
  }
  if (chooseChannel(changeOf(call).mayTakeAway, context) === "start") {
    let isOurs = false;
    try {
      return await changes.once({ ...context, call, bytes }, async (keep) => {
        const run = await changes.start(await keep(), { ...planning, plan: planning.plan.then(approvalNotNeeded) });
        isOurs = true;
        return { run };
      });
    } finally {
      if (!isOurs) planning.stop();
    }
  }
  const isPage = context.page?.isOffered() ?? false;
  // Strict mode has no tokens. So without the web page, a person can be asked after the answer only in a task.
  if (confirm === "strict" && reply === undefined && !isPage && !(context.asTask && context.canAsk())) {
    planning.stop();
    throw tookTooLong();
  }
  const waiting = await changes.waitingRun(call, caller);
  const header =
    waiting?.header ?? (await changes.keep(call, caller, bytes, { ...context.requested, unplanned: true }));
  const asked = reply && readQuestion(reply.token);
  const decision = asked && inClient(context, (digest) => digest === asked.digest);
  const ask = isPage ? askLater(context) : tokenLater(context);
  const begin = (plan: Plan, start: StartPlanned) => beginPlanned(header, plan, { decision, start }, context);
  return { run: await changes.prepare(header, planning, begin, { meanwhile: waiting?.state, ask }) };
}

/** Stores and ends the run of a call that was declined in the client, and reports it. The report is not an error. */
async function declined(
  { call, bytes }: Given,
  plan: Plan,
  context: ToolContext,
  { effect, stored }: { readonly effect?: Effect; readonly stored?: ChangeHeader | undefined } = {},
): Promise<ToolAnswer> {
  const header = stored ?? (await changesOf(context).keep(call, context.caller, bytes, context.requested));
  // Only a run that waits for approval can be declined, so the run is stored as waiting first.
  if (effect === undefined) await changesOf(context).propose(header, plan);
  else {
    const until = context.clock.now() + CONFIRMATION_MS;
    await storeWaitingElsewhere(header, plan, { effect, elsewhere: "client", until }, context);
  }
  await decide(header.runId, { ...inClient(context), answer: "declined" }, context);
  return reportRun(await context.runs.find(header.runId), context);
}

function approvalNotNeeded(plan: Plan): Plan {
  plan.note({ asked: "not_needed" });
  return plan;
}
