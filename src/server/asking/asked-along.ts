import type { ServerContext } from "@modelcontextprotocol/server";
import { UNDECIDED_WORDS } from "../../render/undecided.ts";
import type { Reply, ToolContext } from "../../tools/context.ts";
import type { ToolOutcome, ToolQuestion, Undecided, UndecidedAnswer } from "../../tools/definition.ts";
import { atMostOneWait } from "../../tools/writing/follow-run.ts";
import type { Log } from "../log.ts";
import { askOlder, type Said } from "./ask.ts";

/** A person who is asked anew each time, since something changes each time, is not asked for ever. */
const MOST_ROUNDS = 8;

/** A call that may ask, and how it goes on with the reply. */
interface Asking {
  readonly context: ToolContext;
  readonly call: ServerContext;
  readonly run: (reply: Reply) => Promise<ToolOutcome>;
  /** How often this call has asked, this time included. */
  readonly round: number;
  readonly log: Log;
}

/**
 * Asks the person behind a 2025-era client while the call waits, but no longer than calls may (contract, Confirmation,
 * channel 1). A question without an answer by then ends the call; a later yes to it still counts, where the tool can act
 * on it. A question that the client closes decides nothing.
 */
export async function askedAlong(question: ToolQuestion, asking: Asking): Promise<ToolOutcome> {
  const { context, call, run, round, log } = asking;
  const open = askOlder(call, question.ask.message);
  call.mcpReq.signal.addEventListener("abort", open.end, { once: true });
  let said: Said | undefined;
  const noted = open.said.then((decision) => {
    said = decision;
  });
  await atMostOneWait(noted, context);
  call.mcpReq.signal.removeEventListener("abort", open.end);
  call.mcpReq.signal.throwIfAborted();
  if (said === "yes" || said === "no") {
    if (round < MOST_ROUNDS) return run({ token: question.ask.token, accepted: said === "yes" });
    said = "closed";
  }
  const { answer, later } = await undecided(question, said ?? "unanswered", context);
  if (later === undefined) open.end();
  else {
    open.said
      .then((decision) => (decision === "closed" ? undefined : later(decision === "yes")))
      .catch((error: unknown) => log.error("a late answer to a question could not be acted on", { error }));
  }
  return answer;
}

/** What a call is answered while nobody has decided. */
export async function undecided(
  { ask }: ToolQuestion,
  why: Undecided,
  { environment }: Pick<ToolContext, "environment">,
): Promise<UndecidedAnswer> {
  if (ask.undecided !== undefined) return ask.undecided(why);
  const step = `${UNDECIDED_WORDS[why]}: nothing was done; ask the person, and make the call again once they want it`;
  return {
    answer: {
      structured: { environment, status: "needs_confirmation", nextSteps: [step] },
      text: `Not done yet: a person has to agree first.\nNext: ${step}`,
      isError: false,
    },
  };
}
