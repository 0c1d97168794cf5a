import type { Tone, TonedLine } from "../answers/plan-words.ts";
import { askInTerminal, QuestionInterrupted } from "../runtime/terminal.ts";

export function printNote(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Words for agents (arguments, tools), and words for people that replace them (flags, commands). */
const FOR_COMMANDS: readonly (readonly [agent: string, person: string])[] = [
  ["byName: true", "--by-name"],
  ["with the argument base", "with --base"],
  ["give targetingId or targetingName", "use --targeting"],
  ["list_options with saveTo writes its base", "targeting-mcp export TARGETING --to FILE writes its base"],
  [" Without files, leave prune out and delete the unwanted options with delete_options.", ""],
  ["list_options with saveTo and a new file", "targeting-mcp export TARGETING --to FILE --base-only"],
];

/** Returns a text for agents with the flags and commands that a person uses instead. */
export function forCommand(text: string): string {
  return FOR_COMMANDS.reduce((rewritten, [agent, person]) => rewritten.replaceAll(agent, person), text);
}

/**
 * Asks in the terminal. Prints `undone` if the answer is no. Without a terminal, prints `without` and returns false.
 */
export async function confirmInTerminal(question: string, undone: string, without: string): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) {
    printNote(without);
    return false;
  }
  try {
    if (await askInTerminal(question)) return true;
  } catch (thrown) {
    if (!(thrown instanceof QuestionInterrupted)) throw thrown;
  }
  printNote(undone);
  return false;
}

const COLORS: Readonly<Record<Tone, string | undefined>> = {
  comes: "32",
  changes: "33",
  goes: "31",
  stops: "31",
  plain: undefined,
};

/** Prints lines, in colour if standard output is a terminal and NO_COLOR is not set. */
export function printLines(lines: readonly TonedLine[]): void {
  const { NO_COLOR = "" } = process.env;
  const isColored = process.stdout.isTTY && NO_COLOR === "";
  const texts = lines.map(({ text: said, tone }) => {
    const text = forCommand(said);
    const color = COLORS[tone];
    return isColored && color !== undefined ? `\u001b[${color}m${text}\u001b[0m` : text;
  });
  process.stdout.write(`${texts.join("\n")}\n`);
}
