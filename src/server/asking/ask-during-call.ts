import type { ServerContext } from "@modelcontextprotocol/server";
import { UNDECIDED_WORDS } from "../../render/approvals.ts";
import type { Reply, ToolContext } from "../../tools/context.ts";
import type { ToolOutcome, ToolQuestion, Undecided, UndecidedAnswer } from "../../tools/definition.ts";
import { atMostOneWait } from "../../tools/writing/follow-run.ts";
import type { Log } from "../log.ts";
import { askOlder, type Said } from "./ask.ts";

/** How often one call may ask: each reply can lead to another question, since the plan may change meanwhile. */
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
 * Asks the person behind a 2025-era client while the call waits, for at most the wait of a call. Without a reply by
 * then the call is answered; a later yes still counts, where the tool can act on it. A question that the client closes
 * decides nothing.
 */
export async function askDuringCall(question: ToolQuestion, asking: Asking): Promise<ToolOutcome> {
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

/** The answer to a call whose question has no decision yet. */
export async function undecided(
  { ask }: ToolQuestion,
  why: Undecided,
  { environment }: Pick<ToolContext, "environment">,
): Promise<UndecidedAnswer> {
  if (why === "closed" && ask.onPage !== undefined) return { answer: await ask.onPage() };
  if (ask.undecided !== undefined) return ask.undecided(why);
  const note = `${UNDECIDED_WORDS[why]}: nothing was done`;
  const step = "ask the person, and make the call again once they want it";
  return {
    answer: {
      structured: { environment, status: "needs_confirmation", notes: [note], nextSteps: [step] },
      text: `Approval required; nothing was sent. ${note.charAt(0).toUpperCase()}${note.slice(1)}.\nNext: ${step}`,
      isError: false,
    },
  };
}
