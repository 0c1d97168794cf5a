import type { Tone, TonedLine } from "../answers/plan-words.ts";
import { askInTerminal, QuestionInterrupted } from "../runtime/terminal.ts";

export function printNote(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Prints `undone` if the answer is no. Without a terminal, prints `without` and returns false. */
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
  const texts = lines.map(({ text, tone }) => {
    const color = COLORS[tone];
    return isColored && color !== undefined ? `\u001b[${color}m${text}\u001b[0m` : text;
  });
  process.stdout.write(`${texts.join("\n")}\n`);
}
