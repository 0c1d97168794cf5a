import { questionText } from "../../answers/approvals.ts";
import type { ToolContext } from "../context.ts";
import { grant } from "../granted-approval.ts";
import { decide, type Outcome, personOf } from "./decide.ts";
import { waitingAnywhere } from "./waiting.ts";

export interface RunQuestion {
  readonly runId: string;
  readonly digest: string;
  readonly message: string;
}

/** The question about a run; undefined where nothing is to be decided on it any more. */
export async function runQuestion(runId: string, context: ToolContext): Promise<RunQuestion | undefined> {
  const { waits, effect } = (await waitingAnywhere(runId, context))?.state.facts ?? {};
  if (waits === undefined || waits.stale !== undefined) return undefined;
  const { digest, parts } = waits;
  return { runId, digest, message: questionText({ sentence: effect ?? waits.effect, parts }) };
}

/** Decides on a run that waits for approval as the person behind the client said, by the effect that they were shown. */
export function decideInClient(
  { runId, digest }: Pick<RunQuestion, "runId" | "digest">,
  isApproved: boolean,
  context: ToolContext,
): Promise<Outcome> {
  const answer = isApproved ? "approved" : "declined";
  const saw = (effect: string): boolean => effect === digest;
  return decide(runId, { answer, channel: "client", person: personOf(context), saw }, context, { grant });
}
