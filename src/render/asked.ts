import type { Asked } from "../runs/outcome.ts";

/** Who agreed to a run, or said no to it, and where. */
export type AskedOrDeclined = Asked | "declined_in_client" | "declined_in_view" | "declined_on_page";

const ASKED_WORDS: Readonly<Record<AskedOrDeclined, string>> = {
  agreed_in_client: "A person agreed to this in the client.",
  agreed_in_view: "A person agreed to this in the view.",
  agreed_on_page: "A person agreed to this on the page.",
  agreed_by_token: "It was confirmed with the token: a person's yes, as the client says.",
  not_needed: "Nobody had to be asked.",
  declined_in_client: "A person said no to this in the client.",
  declined_in_view: "A person said no to this in the view.",
  declined_on_page: "A person said no to this on the page.",
};

/** The line that says who agreed. */
export function askedWords(asked: AskedOrDeclined): string {
  return ASKED_WORDS[asked];
}
