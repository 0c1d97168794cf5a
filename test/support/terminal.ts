import { spawn } from "node:child_process";
import { atEnd } from "./ends.ts";
import { COMMAND, cleanEnvironment } from "./server-process.ts";

/**
 * A module for `node --import` that makes the pipes of a process look like a terminal in raw mode, on every platform.
 */
const AS_TERMINAL =
  "data:text/javascript,process.stdin.isTTY = process.stdout.isTTY = true; process.stdin.setRawMode = () => process.stdin;";

/** What a terminal in raw mode sends when a person presses Ctrl+C. */
export const CTRL_C = "\u0003";

/** Starts the built command as if in a terminal. Killed at the end of the test. */
export function startInTerminal(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const env = cleanEnvironment({ TERM: "dumb", ...environment });
  const child = spawn(process.execPath, ["--import", AS_TERMINAL, COMMAND, ...args], { env });
  atEnd(() => {
    child.kill("SIGKILL");
  });
  let text = "";
  let read = 0;
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const one of waiting) one();
  };
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (more: string) => {
      text += more;
      wake();
    });
  }
  let ended = false;
  const exited = new Promise<number | null>((resolve) => {
    child.on("close", (code) => {
      ended = true;
      wake();
      resolve(code);
    });
  });
  /** Waits until the command prints a text after the last answer. Returns the output since that answer. */
  const until = async (words: string): Promise<string> => {
    while (!text.includes(words, read)) {
      if (ended) throw new Error(`the command ended without printing ${JSON.stringify(words)}: ${text.slice(read)}`);
      await new Promise<void>((resolve) => {
        waiting.add(resolve);
      });
    }
    return text.slice(read);
  };
  return {
    exited,
    /** All output so far. */
    said: () => text,
    until,
    /** Waits for a question, then answers it. Returns the output before the answer. */
    async answer(question: string, keys: string): Promise<string> {
      await until(question);
      const said = await until("[y/N] ");
      read = text.length;
      child.stdin.write(keys === CTRL_C ? keys : `${keys}\r`);
      return said;
    },
  };
}
