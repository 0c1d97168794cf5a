import type { Server } from "node:http";
import { createInterface } from "node:readline";
import { openPort, originOf } from "../platform/listen.ts";
import { SettingsError } from "../settings/value-types.ts";

/**
 * Returns the signals that ask a process to end. On Windows closing a console window sends SIGHUP; elsewhere `nohup`
 * must be respected.
 */
export function stopSignals(platform: NodeJS.Platform): readonly NodeJS.Signals[] {
  return platform === "win32" ? ["SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP"] : ["SIGTERM", "SIGINT"];
}

/**
 * Resolves when this process is asked to end. It may be asked twice: npx forwards an interrupt that the terminal has
 * sent to both. Later signals therefore do nothing; each command limits the time for stopping.
 */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    for (const name of stopSignals(process.platform)) process.on(name, () => resolve());
  });
}

/** Returns the result of some work; undefined if this process is asked to end before the work is done. */
export function orStopped<T>(work: Promise<T>, asked: Promise<void>): Promise<T | undefined> {
  return Promise.race([work, asked.then(() => undefined)]);
}

/** The person pressed Ctrl-C at a question. */
export class QuestionInterrupted extends Error {}

/** Asks a question in the terminal. Only a yes counts. Throws a QuestionInterrupted on Ctrl-C. */
export function askInTerminal(question: string): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout });
  return new Promise((resolve, reject) => {
    terminal.once("SIGINT", () => {
      reject(new QuestionInterrupted());
      terminal.close();
    });
    // An input that ends without an answer approves nothing.
    terminal.once("close", () => resolve(false));
    terminal.question(`${question} [y/N] `, (answer) => {
      resolve(/^y(es)?$/i.test(answer.trim()));
      terminal.close();
    });
  });
}

/** Opens the port of a server. Returns its address. Throws a SettingsError if the port cannot be opened. */
export async function listen(server: Server, host: string, port: number): Promise<string> {
  try {
    return originOf(host, await openPort(server, host, port));
  } catch (cause) {
    throw cannotListen(host, port, cause);
  }
}

/** Returns the error for a server that cannot listen, for the person who started it. */
export function cannotListen(host: string, port: number, cause: unknown): SettingsError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new SettingsError(`cannot listen on ${host}, port ${port} (${why}): choose others with --host and --port`);
}
