import type { Server } from "node:http";
import { createInterface } from "node:readline";
import { openPort, originOf } from "../platform/listen.ts";
import { messageOf } from "../platform/text.ts";
import { SettingsError } from "../settings/value-types.ts";

/** Returns the signals that stop a process. SIGHUP only on Windows (console closed), so that `nohup` works. */
export function stopSignals(platform: NodeJS.Platform): readonly NodeJS.Signals[] {
  return platform === "win32" ? ["SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP"] : ["SIGTERM", "SIGINT"];
}

/** Resolves at the first signal to stop. Ignores later ones, because with npx, Ctrl-C may arrive twice. */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of stopSignals(process.platform)) process.on(name, () => resolve());
  });
}

/** Ignores errors of standard output if its reader has ended, such as `head`. */
export function allowClosedOutput(): void {
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

export function orStopped<T>(work: Promise<T>, asked: Promise<void>): Promise<T | undefined> {
  return Promise.race([work, asked.then(() => undefined)]);
}

export class QuestionInterrupted extends Error {}

/** Asks a person for approval in the terminal. Throws a QuestionInterrupted after Ctrl-C. */
export function askInTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  return new Promise((resolve, reject) => {
    terminal.once("SIGINT", () => {
      reject(new QuestionInterrupted());
      terminal.close();
    });
    // If the input ends without an answer, that counts as no.
    terminal.once("close", () => resolve(false));
    terminal.question(`${question} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      terminal.close();
    });
  });
}

/** Opens the port of a server and returns its address. Throws a SettingsError if the port cannot be opened. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  try {
    return originOf(host, await openPort(server, host, port));
  } catch (cause) {
    throw cannotListen(host, port, cause);
  }
}

export function cannotListen(host: string, port: number, cause: unknown): SettingsError {
  const why = messageOf(cause);
  return new SettingsError(`cannot listen on ${host}, port ${port} (${why}). Use another --host or --port`);
}
