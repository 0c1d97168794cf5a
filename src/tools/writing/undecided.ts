import type { ChangeHeader, Changes, StartPlanned } from "../../changes/changes.ts";
import { CONFIRMATION_MS, lossDigest } from "../../changes/confirmation.ts";
import type { Plan } from "../../changes/plan/plan.ts";
import { RunState } from "../../changes/state/change-state.ts";
import { undecidedNote, undecidedSteps } from "../../render/approvals.ts";
import { effectText } from "../../render/effects.ts";
import { renderReport } from "../../render/run-report.ts";
import type { ToolContext } from "../context.ts";
import type { Undecided, UndecidedAnswer } from "../definition.ts";
import { beginPlanned, decide, personOf } from "./decide.ts";
import { type Given, toldUnstarted } from "./planned.ts";
import { effectOf, keepElsewhere, tokenLater } from "./waiting.ts";

/**
 * The answer where nobody has decided. A question that is only unanswered has a run that a later yes starts, if it would
 * still do the same, and a later no ends. One that was closed has none: no person may have seen it.
 */
export async function undecided(
  { call, bytes }: Given,
  plan: Plan,
  why: Undecided,
  {
    changes,
    context,
    kept,
  }: { readonly changes: Changes; readonly context: ToolContext; readonly kept?: ChangeHeader },
): Promise<UndecidedAnswer> {
  const header = why === "unanswered" ? (kept ?? (await changes.keep(call, context.caller, bytes))) : undefined;
  const effect = await effectOf({ runId: (header ?? kept)?.runId, call }, plan, context);
  if (header !== undefined) {
    const until = context.clock.now() + CONFIRMATION_MS;
    await keepElsewhere(header, plan, { effect, elsewhere: "client", until }, context);
  }
  const state = new RunState(plan);
  const answer = renderReport({
    ...toldUnstarted(call, state, context),
    ...(header && { runId: header.runId }),
    status: "needs_confirmation",
    notes: [effectText(effect), undecidedNote(why)],
    nextSteps: undecidedSteps(header?.runId),
  });
  if (header === undefined) return { answer };
  const digest = lossDigest(plan.losses);
  return {
    answer,
    async later(accepted) {
      const saw = (seen: string): boolean => seen === digest;
      const decided = { channel: "client", person: personOf(context), saw } as const;
      if (!accepted) {
        await decide(header.runId, { ...decided, answer: "declined" }, context);
        return;
      }
      // It may have been cancelled meanwhile.
      if ((await context.runs.isUnstarted(header.runId)) !== true) return;
      const stopping = new AbortController();
      const again = changes.plan(call, stopping.signal, context.runs.part(header.runId, "input"));
      const planning = { plan: again, stop: () => stopping.abort() };
      const decision = { ...decided, answer: "approved" } as const;
      const begin = (made: Plan, start: StartPlanned) => beginPlanned(header, made, { decision, start }, context);
      await changes.prepare(header, planning, begin, { meanwhile: state, ask: tokenLater(context) });
    },
  };
}
