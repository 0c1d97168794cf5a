import {
  type Approval,
  declinedBeforeNote,
  declinedIn,
  type Effect,
  effectText,
  PAGE_NOT_OPENED_HINT,
  PAGE_NOT_OPENED_REMEDY,
  waitsInView,
  waitsOnPage,
} from "../../answers/approvals.ts";
import type { ApprovalCall } from "../../changes/approvals.ts";
import { lossDigest } from "../../changes/change-kinds.ts";
import type { ChangeRun } from "../../changes/change-run.ts";
import type { ChangeHeader } from "../../changes/changes.ts";
import type { Plan } from "../../changes/plan/plan.ts";
import type { Run, ToolCall } from "../../runs/kind.ts";
import type { RunHeader } from "../../runs/store.ts";
import { changesOf } from "../apis.ts";
import { type ToolAnswer, type ToolContext, ToolError, type ToolOutcome, type ToolServices } from "../define-tool.ts";
import { approvalOfRun, ownRun, reportedRun, reportRun } from "../run-reports.ts";
import { effectOf, storedEffect, waitingRun } from "./awaiting-decision.ts";
import { decisionFor } from "./confirmation-token.ts";
import { type ApprovalRequest, decide, decided, inClient } from "./decide.ts";
import { waitWithinCall } from "./within-call.ts";

/** Answers with a token, because nobody has opened the page. Throws a ToolError in strict mode, which has no tokens. */
export function tokenInstead(
  effect: string,
  { confirm }: Pick<ToolContext, "confirm">,
  token: (hint: string) => Promise<ToolAnswer>,
): Promise<ToolAnswer> {
  if (confirm !== "strict") return token(PAGE_NOT_OPENED_HINT);
  throw new ToolError(
    `the change needs approval, and nobody opened the approval page. ${effect}`,
    PAGE_NOT_OPENED_REMEDY,
  );
}

const PAGE_WAIT_MS = 24 * 3_600_000;
/** A waiting call checks for a decision, perhaps stored by another process, after each pause of this many ms. */
const LOOK_MS = 100;

export async function keepWaiting(header: ChangeHeader, plan: Plan, context: ToolServices): Promise<void> {
  const effect = await effectOf(header, plan, context);
  plan.facts = {
    ...plan.facts,
    effect: effect.sentence,
    waits: { ...storedEffect(effect, lossDigest(plan.losses)), until: context.clock.now() + PAGE_WAIT_MS },
  };
  await changesOf(context).propose(header, plan);
}

/** Calls `make`, which stores a call's run with `keep`. Or returns the run of an identical call of the same time. */
export type KeptOnce = <Made>(
  make: (keep: () => Promise<ChangeHeader>) => Promise<Made>,
) => Promise<Made | { readonly run: ChangeRun }>;

/** Stores the run of a call and waits for a decision on the page. If nobody opens it, answers as `otherwise` does. */
export async function decideOnPage(
  once: KeptOnce,
  plan: Plan,
  context: ToolContext,
  otherwise: (header: ChangeHeader) => Promise<ToolAnswer>,
): Promise<{ readonly run: ChangeRun } | { readonly outcome: ToolAnswer }> {
  const kept = await once(async (keep) => {
    const header = await keep();
    await keepWaiting(header, plan, context);
    return { header };
  });
  return "run" in kept ? kept : { outcome: await askOnPage(kept.header, context, () => otherwise(kept.header)) };
}

/**
 * Returns a function that asks on the web page about a run that was planned after its call was answered. If nobody opens
 * the page, the agent's next call gets a confirmation token, except in strict mode.
 */
export function askLater(context: ToolContext) {
  return async (header: ChangeHeader, plan: Plan): Promise<void> => {
    await keepWaiting(header, plan, context);
    const { runId, call } = header;
    const shown = context.page?.show({ runId, tool: call.tool }) ?? Promise.resolve(false);
    void shown
      .catch(() => false)
      .then((came) => {
        if (!came && context.confirm !== "strict") changesOf(context).remember(runId, plan.losses);
      });
  };
}

interface AskedWork {
  readonly call: ApprovalCall;
  readonly name: string;
  readonly effect: Effect;
}

interface RequestedWork
  extends AskedWork,
    Pick<ApprovalRequest<ToolAnswer>, "needsApproval" | "digest" | "start" | "undecided"> {
  readonly after: After;
  /** Returns the answer if the work was declined. `note`: set if a recent call for the same work was declined. */
  readonly declined: (approval: Approval | undefined, note?: string) => ToolAnswer;
  readonly token: (hints: readonly string[]) => Promise<ToolAnswer>;
}

/**
 * Starts work other than a change, such as event tests, or asks a person for approval first. If the same work was
 * declined recently, only reports that.
 */
export async function decidedWork(work: RequestedWork, context: ToolContext): Promise<ToolOutcome> {
  const { call, effect, declined, token } = work;
  const { approvals, caller, clock } = context;
  const mayAsk = work.needsApproval && context.confirm !== "off";
  const before = mayAsk ? await approvals.runs.lastDeclined(call, caller) : undefined;
  if (before !== undefined) {
    return declined(approvalOfRun(before), declinedBeforeNote(clock.now() - before.state.updatedAt));
  }
  const otherwise = async () => tokenInstead(effectText(effect), context, (hint) => token([hint]));
  const onPage = async () => askOnPage(await keepApproval(work, context), context, otherwise, work.after);
  return decided<ToolAnswer>(
    {
      ...work,
      effect: () => effect,
      onPage,
      closed: context.page?.isOffered() ? onPage : undefined,
      declined: async () => {
        // The decision is stored, so that nobody is asked again if the same call is repeated soon.
        const { runId } = await keepApproval(work, context);
        await decide(runId, { ...inClient(context), answer: "declined" }, context);
        return declined(declinedIn("client"));
      },
      token: () => token([]),
    },
    context,
  );
}

function keepApproval(
  { call, name, effect }: AskedWork,
  { approvals, caller, clock, requested }: ToolContext,
): Promise<RunHeader<ApprovalCall>> {
  const waits = { ...storedEffect(effect, ""), until: clock.now() + PAGE_WAIT_MS };
  return approvals.keep(call, caller, name, { effect: effect.sentence, waits }, requested);
}

/** Shows a waiting run in a view, or on the page, and waits there. If nobody opens the page, calls `otherwise`. */
async function askOnPage(
  { runId, call: { tool } }: Pick<RunHeader<ToolCall>, "runId" | "call">,
  context: ToolContext,
  otherwise: () => Promise<ToolAnswer>,
  after?: After,
): Promise<ToolAnswer> {
  if (context.opens !== undefined) return openedByClient({ runId, tool }, context, after);
  if (context.inView) return shownInView(runId, context);
  let came: boolean | undefined;
  const coming = (context.page?.show({ runId, tool }) ?? Promise.resolve(false)).then((shown) => {
    came = shown;
  });
  await waitWithinCall(Promise.race([coming, untilDecided(runId, context)]), context);
  if (came === false && !(await isDecided(runId, context))) return otherwise();
  return waitOnPage(runId, context, after);
}

type After = (run: Run) => Promise<ToolAnswer>;

/** Asks the client to open the web page. If it does not, goes on with the next channel, but never with a token. */
async function openedByClient(
  shown: { readonly runId: string; readonly tool: string },
  context: ToolContext,
  after: After | undefined,
): Promise<ToolAnswer> {
  const { runId } = shown;
  await context.page?.show(shown);
  let opened: string | undefined;
  const opening = context.opens?.(runId, context).then((next) => {
    opened = next;
  });
  await waitWithinCall(Promise.race([opening, untilDecided(runId, context)]), context);
  if (opened === "view") return shownInView(runId, context);
  if (opened !== "asked") return waitOnPage(runId, context, after);
  return { ...(await reportedRun(await ownRun(runId, context), context)), opens: runId };
}

/** Waits for a decision until the call must be answered. A task does not wait, because its client polls the status. */
export async function waitOnPage(runId: string, context: ToolContext, after?: After): Promise<ToolAnswer> {
  if (!context.asTask) await waitWithinCall(untilDecided(runId, context), context);
  const isWaiting = !(await isDecided(runId, context));
  const run = await context.runs.find(runId);
  if (after !== undefined && run !== undefined && !isWaiting) return after(run);
  return reportRun(run, context, isWaiting ? [waitsOnPage(runId, context.page?.address?.())] : []);
}

/** Returns the answer for a view of a waiting run, with the secret that the view needs to send a decision. */
export async function shownInView(runId: string, context: ToolContext): Promise<ToolAnswer> {
  const waiting = await waitingRun(runId, context);
  const { waits } = waiting?.state.facts ?? {};
  const answer = await reportRun(await context.runs.find(runId), context, waits ? [waitsInView(runId)] : []);
  return waits ? { ...answer, decision: await decisionFor({ runId, digest: waits.digest }, context) } : answer;
}

export async function untilDecided(runId: string, context: ToolContext): Promise<void> {
  const { clock, signal, stopping, arrivedAt, waitMs } = context;
  const isOver = () => signal.aborted || stopping.aborted || clock.now() > arrivedAt + waitMs;
  while (!(isOver() || (await isDecided(runId, context)))) await clock.sleep(LOOK_MS);
}

async function isDecided(runId: string, { runs }: Pick<ToolContext, "runs">): Promise<boolean> {
  return (await runs.isUnstarted(runId)) !== true;
}
