import { createInterface } from "node:readline";

/** The person pressed Ctrl-C at a question. */
export class QuestionInterrupted extends Error {}

/** Asks a question in the terminal; only a yes counts. Throws an QuestionInterrupted on Ctrl-C. */
export function askInTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  return new Promise((resolve, reject) => {
    terminal.once("SIGINT", () => {
      reject(new QuestionInterrupted());
      terminal.close();
    });
    // An input that ends answers nothing, which is no yes.
    terminal.once("close", () => resolve(false));
    terminal.question(`${question} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      terminal.close();
    });
  });
}
