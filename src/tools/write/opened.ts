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

/** The question about a waiting run. Returns undefined if there is nothing left to decide. */
export async function runQuestion(runId: string, context: ToolContext): Promise<RunQuestion | undefined> {
  const { waits, effect } = (await waitingAnywhere(runId, context))?.state.facts ?? {};
  if (waits === undefined || waits.stale !== undefined) return undefined;
  const { digest, parts } = waits;
  return { runId, digest, message: questionText({ sentence: effect ?? waits.effect, parts }) };
}

/** Records the decision of the person behind the client on a waiting run, for the effect that they were shown. */
export function decideInClient(
  { runId, digest }: Pick<RunQuestion, "runId" | "digest">,
  isApproved: boolean,
  context: ToolContext,
): Promise<Outcome> {
  const answer = isApproved ? "approved" : "declined";
  const saw = (effect: string): boolean => effect === digest;
  return decide(runId, { answer, channel: "client", person: personOf(context), saw }, context, { grant });
}
