import type { ToolContext } from "../context.ts";
import type { ToolOutcome, ToolQuestion } from "../definition.ts";

/** Something that may need a person's yes, and what follows from each way in which it can be decided. */
export interface Wish<R> {
  readonly needsYes: boolean;
  /** What exactly a person agrees to: a yes to anything else counts for nothing. */
  readonly digest: string;
  /** The question to them. */
  readonly message: string;
  readonly undecided?: ToolQuestion["ask"]["undecided"];
  /** Goes ahead. */
  readonly start: () => Promise<R>;
  /** Answers a no. */
  readonly declined: () => Promise<R> | R;
  /** Answers with a token that stands for a later yes. */
  readonly token: () => Promise<R>;
  /** What a client is told that cannot ask, where a token is not enough. */
  readonly refusal: () => Error;
}

/** How a wish is decided. */
type Decision = "start" | "ask" | "token" | "refuse";

/** Who decides (contract, Confirmation): the first channel that is there. */
export function decisionOn(needsYes: boolean, { confirm, canAsk }: Pick<ToolContext, "confirm" | "canAsk">): Decision {
  if (!needsYes || confirm === "off") return "start";
  if (canAsk()) return "ask";
  return confirm === "strict" ? "refuse" : "token";
}

/**
 * Goes ahead with a wish, or asks a person first: in the client, and when the server calls again with the reply acts on
 * it. Where something changed since they were asked they are asked anew. Throws the refusal.
 */
export async function decided<R>(
  wish: Wish<R>,
  context: Pick<ToolContext, "confirm" | "canAsk" | "reply">,
): Promise<R | Extract<ToolOutcome, ToolQuestion>> {
  const { digest, message, undecided } = wish;
  const { reply } = context;
  switch (decisionOn(wish.needsYes, context)) {
    case "start":
      return wish.start();
    case "token":
      return wish.token();
    case "refuse":
      throw wish.refusal();
    case "ask":
      if (reply?.accepted === false) return wish.declined();
      if (reply?.token === digest) return wish.start();
      return { ask: { message, token: digest, ...(undecided && { undecided }) } };
  }
}
