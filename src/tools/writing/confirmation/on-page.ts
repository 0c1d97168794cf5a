import type { ChangeRun } from "../../../changes/change-run.ts";
import type { ChangeHeader, Changes } from "../../../changes/changes.ts";
import { lossDigest } from "../../../changes/confirmation.ts";
import type { Plan } from "../../../changes/plan/plan.ts";
import { effectParts, effectSentence, effectText } from "../../../render/changes/effect.ts";
import { NOBODY_CAME, waitsOnPage } from "../../../render/page-words.ts";
import type { ToolContext } from "../../context.ts";
import { type ToolAnswer, ToolError } from "../../definition.ts";
import { reportRun } from "../../runs/run-reports.ts";
import { atMostOneWait } from "../follow-run.ts";
import type { Given } from "../planned.ts";

/** Where a person's yes is needed and nobody came to the page. */
export function nobodyCame({ losses }: Plan): ToolError {
  return new ToolError(`this needs a person's yes, and nobody came to the page. ${effectText(losses)}`, NOBODY_CAME);
}

/** How long a run waits for a decision on the page, in milliseconds. */
const PAGE_WAIT_MS = 24 * 3_600_000;
/** How often a call looks whether a person has decided, in whatever process, in milliseconds. */
const LOOK_MS = 100;

/** Keeps a run as one that waits for a person's decision on the page. */
async function keepWaiting(
  header: ChangeHeader,
  plan: Plan,
  { changes, clock }: { readonly changes: Changes } & Pick<ToolContext, "clock">,
): Promise<void> {
  const { losses } = plan;
  plan.facts = {
    ...plan.facts,
    effect: effectSentence(losses),
    waits: {
      digest: lossDigest(losses),
      effect: effectText(losses),
      parts: effectParts(losses),
      until: clock.now() + PAGE_WAIT_MS,
    },
  };
  await changes.propose(header, plan);
}

/** Keeps a call's run for a person's decision on the page, and waits for it; `otherwise` where nobody comes there. */
export async function decideOnPage(
  { call, bytes }: Given,
  plan: Plan,
  { changes, context }: { readonly changes: Changes; readonly context: ToolContext },
  otherwise: (header: ChangeHeader) => Promise<ToolAnswer>,
): Promise<{ readonly run: ChangeRun } | { readonly outcome: ToolAnswer }> {
  const kept = await changes.once({ ...context, call, bytes }, async (keep) => {
    const header = await keep();
    await keepWaiting(header, plan, { changes, clock: context.clock });
    return { header };
  });
  return "run" in kept ? kept : { outcome: await askOnPage(kept.header, context, () => otherwise(kept.header)) };
}

/** The same for a plan, which is a run already. */
export async function decidePlanOnPage(
  header: ChangeHeader,
  plan: Plan,
  { changes, context }: { readonly changes: Changes; readonly context: ToolContext },
  otherwise: () => Promise<ToolAnswer>,
): Promise<ToolAnswer> {
  await keepWaiting(header, plan, { changes, clock: context.clock });
  return askOnPage(header, context, otherwise);
}

/**
 * Shows a waiting run to a person, and waits for the decision as long as the call may. Gives `otherwise` where nobody
 * came to the page.
 */
async function askOnPage(
  { runId }: ChangeHeader,
  context: ToolContext,
  otherwise: () => Promise<ToolAnswer>,
): Promise<ToolAnswer> {
  let came: boolean | undefined;
  const coming = (context.page?.show(runId) ?? Promise.resolve(false)).then((shown) => {
    came = shown;
  });
  await atMostOneWait(Promise.race([coming, untilDecided(runId, context)]), context);
  if (came === false && !(await isDecided(runId, context))) return otherwise();
  await atMostOneWait(untilDecided(runId, context), context);
  const isWaiting = !(await isDecided(runId, context));
  return reportRun(await context.runs.find(runId), context, isWaiting ? [waitsOnPage(runId)] : []);
}

/** Resolves when a waiting run was decided, or the call is over. */
export async function untilDecided(runId: string, context: ToolContext): Promise<void> {
  const { clock, signal, stopping, arrivedAt, waitMs } = context;
  const isOver = () => signal.aborted || stopping.aborted || clock.now() > arrivedAt + waitMs;
  while (!(isOver() || (await isDecided(runId, context)))) await clock.sleep(LOOK_MS);
}

async function isDecided(runId: string, { changes }: Pick<ToolContext, "changes">): Promise<boolean> {
  return (await changes?.runs.stored(runId))?.started !== false;
}
