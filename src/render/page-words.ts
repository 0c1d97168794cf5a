/** What an agent is told while a run waits for a person's decision on the page, which was opened or is at an address. */
export function waitsOnPage(runId: string, address: string | undefined): string {
  const who =
    address === undefined
      ? "the person was shown a page with this run, and decides there"
      : `a person who may approve it decides on the page at ${address}`;
  return `${who}: nothing was changed yet. Look with get_run, runId ${runId} and waitMs; cancel_run ends it`;
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
    `the person is shown this run with the answer, and decides there: nothing was changed yet. Look with get_run, runId ` +
    `${runId} and waitMs; cancel_run ends it`
  );
}

/** What can be done where a person's yes is needed, and no channel is left to ask for it. */
export const STRICT_REMEDY =
  "TARGETING_MCP_CONFIRM is strict: use a client that can ask (elicitation), run targeting-mcp page where a browser can " +
  "be opened (TARGETING_MCP_PAGE), or make the change in the web console.";

/** The same over HTTP, where no person can log in who may approve. */
export const NOBODY_APPROVES =
  "Nobody can approve this here: use a client that can ask (elicitation); or let an entry of TARGETING_MCP_ACCESS_FILE " +
  'say "approves": true for this project, or set TARGETING_MCP_CONFIRM=ask (docs/guides/run-for-a-team.md).';

/** What the agent is told where nobody came to the page, and no other channel is left. */
export const NOBODY_CAME =
  "Ask the person to run targeting-mcp page on this machine, with the settings of this server, and to decide there; " +
  "or use a client that can ask (elicitation).";

/** Tells the agent that nobody came to the page, so that another channel was taken. */
export const NOBODY_CAME_HINT = "a page was opened for the person, and nobody came to look at it";

/** What is told of a no on the page. */
export function declinedNote(effect: string | undefined): string {
  const shown = effect === undefined ? "" : ` They were shown: ${effect}`;
  return `the person did not agree: nothing was changed; do not try again unless they ask for it.${shown}`;
}

/** What is told of a run whose effect is no longer the one that it was planned with. */
export function staleNote(changed: string): string {
  return `this changed since it was planned, so that it cannot be approved any more: make the call again (${changed})`;
}
