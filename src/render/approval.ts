import type { Decided } from "../changes/rows/entries.ts";
import type { Asked } from "../runs/outcome.ts";
import { plain } from "./fence.ts";

/** How a run got past the question to a person: what was decided, where, and by whom, where that is known. */
export interface Approval {
  readonly decision: "approved" | "declined" | "not_needed";
  readonly channel?: "client" | "view" | "page" | "token" | "terminal";
  readonly by?: string;
}

const CHANNELS = {
  agreed_in_client: "client",
  agreed_in_view: "view",
  agreed_on_page: "page",
  agreed_by_token: "token",
  agreed_in_terminal: "terminal",
} as const satisfies Partial<Record<Asked, Approval["channel"]>>;

/** The approval that a run's facts tell of; undefined where they tell of none. */
export function approvalOf(facts: {
  readonly asked?: Asked;
  readonly decided?: Pick<Decided, "who">;
}): Approval | undefined {
  const { asked, decided } = facts;
  if (asked === undefined) return undefined;
  if (asked === "not_needed") return { decision: "not_needed" };
  return { decision: "approved", channel: CHANNELS[asked], ...(decided && { by: approverName(decided.who) }) };
}

/** A declined approval. Clients without a person decline by themselves, so that nobody is named for one of a client. */
export function declinedIn(channel: "client" | "view" | "page", who?: string): Approval {
  return { decision: "declined", channel, ...(who !== undefined && { by: approverName(who) }) };
}

/** The name of a person in a caller's name: of an access-file entry its own, of a login through an issuer the subject. */
function approverName(who: string): string {
  const [, subject] = /^(?:\w+:)?https?:\/\/\S+ (.+)$/s.exec(who) ?? [];
  return subject ?? who.replace(/^token:/, "");
}

const PLACES = {
  client: "in the client",
  view: "in the view",
  page: "on the page",
  terminal: "in the terminal",
} as const;

/** The sentence that says who approved or declined, as a line; no line where nobody had to. */
export function approvalLines(approval: Approval | undefined): readonly string[] {
  const words = approval && approvalWords(approval);
  return words === undefined ? [] : [words];
}

/** The same as a sentence. */
export function approvalWords({ decision, channel, by }: Approval): string | undefined {
  if (decision === "not_needed" || channel === undefined) return undefined;
  if (channel === "token") return "Approved with the confirmation token: the agent says that the person approved it.";
  if (decision === "declined" && channel === "client") return "The client declined.";
  return `${decision === "approved" ? "Approved" : "Declined"} ${PLACES[channel]}${by === undefined ? "" : ` by ${plain(by)}`}.`;
}
