/** Why nobody has agreed or disagreed, for an agent. */
export const UNDECIDED_WORDS: Readonly<Record<"unanswered" | "closed", string>> = {
  unanswered: "the person has not answered the question yet",
  closed: "the question was closed without a decision",
};

/** That nobody has decided, and so nothing was changed. */
export function undecidedNote(why: keyof typeof UNDECIDED_WORDS): string {
  return `${UNDECIDED_WORDS[why]}: nothing was changed`;
}

/** What an agent can do about it; `runId` where a later yes still starts that run. */
export function undecidedSteps(runId: string | undefined): readonly string[] {
  const again = "ask the person, and make the call again once they want it: they are then asked anew";
  if (runId === undefined) return [again];
  return [
    `look with get_run, runId ${runId} and waitMs: a yes within ten minutes still starts it, as long as this server lives`,
    `cancel_run with runId ${runId} ends it; else ${again}`,
  ];
}
