/** Why nobody has agreed or disagreed, for an agent. */
export const UNDECIDED_WORDS: Readonly<Record<"unanswered" | "closed", string>> = {
  unanswered: "the person has not answered the question yet",
  closed: "the question was closed without a decision",
};

/** What an agent is to do about it; `runId` where a later yes still starts that run. */
export function undecidedStep(why: "unanswered" | "closed", runId: string | undefined): string {
  const again = "ask the person, and make the call again once they want it: they are then asked anew";
  if (runId === undefined) return `${UNDECIDED_WORDS[why]}: nothing was changed; ${again}`;
  return (
    `${UNDECIDED_WORDS[why]}: nothing was changed. A yes within ten minutes still starts run ${runId}, as long as this ` +
    `server lives: look with get_run and waitMs. cancel_run ends it; else ${again}`
  );
}
