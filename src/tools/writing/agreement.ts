import * as z from "zod";
import { parseJson } from "../../platform/json.ts";
import { STRICT_REMEDY } from "../../render/approvals.ts";
import { askedTwiceHint, changedQuestion } from "../../render/effects.ts";
import type { Asked } from "../../runs/outcome.ts";
import type { ToolContext } from "../context.ts";
import { type ToolAnswer, ToolError, type ToolOutcome, type ToolQuestion } from "../definition.ts";

/** Something that may need a person's yes, and what follows from each way in which it can be decided. */
export interface ApprovalRequest<R> {
  readonly needsApproval: boolean;
  /** What exactly a person agrees to: an approval to anything else counts for nothing. */
  readonly digest: string;
  /** The question to them. */
  readonly message: string;
  /** The same in a sentence, by which a later question tells what has changed. */
  readonly effect: string;
  /** Says how the effect differs from the one that a person was asked about before. */
  readonly changedFrom?: (effect: string) => string;
  readonly undecided?: ToolQuestion["ask"]["undecided"];
  /** Lets a person decide on the page where they closed the question; absent where `undecided` does that. */
  readonly closed?: (() => Promise<ToolAnswer>) | undefined;
  /** Goes ahead; `hints` are for the answer. */
  readonly start: (asked: Asked, hints: readonly string[]) => Promise<R>;
  /** Answers a decline. */
  readonly declined: () => Promise<R> | R;
  /** Lets a person decide in a view or on the page; absent where this cannot be decided there. */
  readonly onPage?: () => Promise<R>;
  /** Answers with a token that means a later yes. */
  readonly token: () => Promise<R>;
  /** What would happen, for an agent whose client cannot ask, where a token is not enough. */
  readonly described: () => string;
}

/** How a wish is decided. */
type Decision = "start" | "ask" | "page" | "token" | "refuse";

/** Whether a person decides outside of the call, in a view of their client or on the page. */
export function isDecidedElsewhere({ page, inView }: Pick<ToolContext, "page" | "inView">): boolean {
  return inView === true || page?.isOffered() === true;
}

/** Which channel decides: the first that is there. `strict` gives no token. */
export function chooseChannel(
  needsApproval: boolean,
  context: Pick<ToolContext, "confirm" | "canAsk" | "page" | "inView">,
): Decision {
  const { confirm, canAsk } = context;
  if (!needsApproval || confirm === "off") return "start";
  if (canAsk()) return "ask";
  if (isDecidedElsewhere(context)) return "page";
  return confirm === "strict" ? "refuse" : "token";
}

/**
 * Goes ahead with a wish, or asks a person first: in the client, and when the server calls again with the reply acts on
 * it. Where something changed since they were asked they are asked again. Throws a ToolError where nobody can be asked.
 */
export async function decided<R>(
  wish: ApprovalRequest<R>,
  context: Pick<ToolContext, "confirm" | "canAsk" | "page" | "inView" | "reply">,
): Promise<R | Extract<ToolOutcome, ToolQuestion>> {
  const { reply } = context;
  // What cannot be decided on the page goes on to the next channel.
  const { page, inView, ...others } = context;
  switch (chooseChannel(wish.needsApproval, wish.onPage === undefined ? others : context)) {
    case "start":
      return wish.start("not_needed", []);
    case "token":
      return wish.token();
    case "page":
      if (wish.onPage !== undefined) return wish.onPage();
      throw cannotAsk(wish, context);
    case "refuse":
      throw cannotAsk(wish, context);
    case "ask": {
      if (reply === undefined) return question(wish);
      if (!reply.accepted) return wish.declined();
      const asked = readQuestion(reply.token);
      // What they agreed to is not what would happen now.
      if (asked?.digest !== wish.digest) return question(wish, wish.changedFrom?.(asked?.effect ?? ""));
      return wish.start("agreed_in_client", asked.changed === undefined ? [] : [askedTwiceHint(asked.changed)]);
    }
  }
}

function cannotAsk(
  { described }: Pick<ApprovalRequest<unknown>, "described">,
  { page }: Pick<ToolContext, "page">,
): ToolError {
  return new ToolError(
    `this needs approval, and this client cannot ask a person. ${described()}`,
    page?.remedy ?? STRICT_REMEDY,
  );
}

/** The question to a person; `changed` says what has changed since they were asked the last time. */
function question<R>(
  { digest, effect, message, undecided, closed }: ApprovalRequest<R>,
  changed?: string,
): ToolQuestion {
  return {
    ask: {
      message: changed === undefined ? message : changedQuestion(changed, message),
      token: writeQuestion({ digest, effect, ...(changed !== undefined && { changed }) }),
      ...(undecided && { undecided }),
      ...(closed && { onPage: closed }),
    },
  };
}

const askedForm = z.object({ digest: z.string(), effect: z.string(), changed: z.string().exactOptional() });

/** What a person was asked: what would go, as a digest and as a sentence, and what had changed where it was asked again. */
export type Question = Readonly<z.output<typeof askedForm>>;

/** The token of a question, which comes back with the reply; sealed on its way. */
function writeQuestion(asked: Question): string {
  return JSON.stringify(asked);
}

/** What a reply is about; undefined where it is about something else. */
export function readQuestion(token: string): Question | undefined {
  return askedForm.safeParse(parseJson(token)).data;
}
