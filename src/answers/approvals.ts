/** What an agent learns while a run waits for a person's decision on the page, which was opened or is at an address. */
export function waitsOnPage(runId: string, address: string | undefined): string {
  const who =
    address === undefined
      ? "a page with this run was opened for the person, who decides there"
      : `a person who may approve it decides on the page at ${address}`;
  return `${who}; nothing was changed yet. get_run {"runId":"${runId}","waitMs":25000} waits for the decision; cancel_run ends it`;
}

/** How a task stands that waits for a decision on the page, which was opened or is at an address. */
export function taskWaitsText(address: string | undefined): string {
  const where = address === undefined ? "in the page that was opened" : `on the page at ${address}`;
  return `Approval required; nothing was sent. A person decides ${where}.`;
}

/** What a client shows to its person before it opens the page of a run that waits for approval. */
export function opensPageText(effect = "a change waits there."): string {
  return `Your approval is needed on the page of this server: ${effect} Log in there to see all of it, and to decide.`;
}

/** The same while it waits for a decision in a view of the client. */
export function waitsInView(runId: string): string {
  return (
    "the client shows this run to the person, who decides there; nothing was changed yet. " +
    `get_run {"runId":"${runId}","waitMs":25000} waits for the decision; cancel_run ends it`
  );
}

/** What can be done where approval is needed, and nothing can ask a person for it. */
export const STRICT_REMEDY =
  "TARGETING_MCP_CONFIRM is strict: use a client that can ask (elicitation), run targeting-mcp page where a browser can " +
  "be opened (TARGETING_MCP_PAGE), or make the change in the web console.";

/** The same over HTTP, where no person can log in who may approve. */
export const NOBODY_APPROVES =
  "Nobody can approve this here: use a client that can ask (elicitation); or let an entry of TARGETING_MCP_ACCESS_FILE " +
  'say "approves": true for this project, or set TARGETING_MCP_CONFIRM=ask (docs/guides/run-for-a-team.md).';

/** What an agent can do where nobody came to the page, and no other channel is left. */
export const NOBODY_CAME =
  "Ask the person to run targeting-mcp page on this machine, with the settings of this server, and to decide there; " +
  "or use a client that can ask (elicitation).";

/** Why another channel was used than the page. */
export const NOBODY_CAME_HINT = "a page was opened for the person, but nobody looked at it";

/** That a person declined on the page, and what they saw. */
export function declinedNote(effect: string | undefined): string {
  const shown = effect === undefined ? "" : ` They were shown: ${effect}`;
  return `the person declined; nothing was changed. Do not try again unless they ask for it.${shown}`;
}

/** Why a run whose effect has changed cannot be approved. */
export function staleNote(changed: string): string {
  return `this has changed since it was planned and cannot be approved any more; make the call again (${changed})`;
}

/** Why nobody has decided, for an agent. */
export const UNDECIDED_WORDS: Readonly<Record<"unanswered" | "closed", string>> = {
  unanswered: "the person has not answered the question yet",
  closed: "the question was closed without a decision",
};

/** That nobody has decided, and so nothing was changed. */
export function undecidedNote(why: keyof typeof UNDECIDED_WORDS): string {
  return `${UNDECIDED_WORDS[why]}: nothing was changed`;
}

/** What an agent can do about it; `runId` where a later approval still starts that run. */
export function undecidedSteps(runId: string | undefined): readonly string[] {
  const again = "ask the person. If they want it, make the call again: they are then asked for approval";
  if (runId === undefined) return [again];
  return [
    `get_run {"runId":"${runId}","waitMs":25000}: an approval within 10 minutes still starts it, while this server runs`,
    `cancel_run {"runId":"${runId}"} ends it; or ${again}`,
  ];
}
