// A server process to measure. Benchmarks send it raw messages over stdio, in the 2025 era of the protocol.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

/**
 * The programs to compare: the built command, and a minimal server with one tool on the same SDK, which is not bundled.
 */
export const PROGRAMS = {
  ours: join(import.meta.dirname, "..", "dist", "main.js"),
  control: join(import.meta.dirname, "one-tool-server.mjs"),
} as const;

/** A running server. */
export interface ServerProcess {
  readonly child: ChildProcessByStdio<Writable, Readable, null>;
  /** Sends a request, and waits for the line that answers it. Only one request at a time. */
  ask(method: string, params?: unknown): Promise<string>;
  /** Closes the server's input, and waits until the process has ended. */
  end(): Promise<void>;
}

/**
 * Starts a server with its state in `stateDir`, and sends the messages that open a session, without waiting for
 * answers.
 */
export function startServer(
  program: string,
  stateDir: string,
  more: Readonly<Record<string, string>> = {},
): ServerProcess {
  const child = spawn(process.execPath, [program], {
    env: { PATH: process.env.PATH, TARGETING_MCP_STATE_DIR: stateDir, TARGETING_MCP_LOG_LEVEL: "silent", ...more },
    stdio: ["pipe", "pipe", "inherit"],
  });
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  let id = 0;
  const clientInfo = { name: "bench", version: "1" };
  send({ id, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo } });
  send({ method: "notifications/initialized" });
  return {
    child,
    async ask(method, params) {
      id += 1;
      send({ id, method, params });
      for (;;) {
        const { value, done } = await lines.next();
        if (done) throw new Error(`${program} ended without an answer to ${method}`);
        if (value.includes(`"id":${id}`)) return value;
      }
    },
    async end() {
      const ended = once(child, "exit");
      child.stdin.end();
      await ended;
    },
  };
}

/** Returns the median of some numbers. */
export function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
