import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import * as z from "zod";
import { atEnd } from "./ends.ts";
import { WarmProcess } from "./warm-process.ts";

/** The path of the built command. */
export const COMMAND = join(import.meta.dirname, "..", "..", "dist", "main.js");

/** Returns the path of a program of this folder in the version that ./setup.ts has built. */
export function builtProgram(name: "asking-server" | "client-process"): string {
  return join(process.env.TEST_PROGRAMS ?? "", `${name}.mjs`);
}

const rpcLine = z.looseObject({ jsonrpc: z.literal("2.0"), id: z.union([z.string(), z.number()]).optional() });
type RpcLine = z.infer<typeof rpcLine>;

/** Returns an environment with no settings of this machine. It has its own state folder and an empty sandbox. */
export function cleanEnvironment(given: Readonly<Record<string, string>> = {}): Record<string, string> {
  const stateDir = mkdtempSync(join(tmpdir(), "targeting-mcp-"));
  return {
    PATH: process.env.PATH ?? "",
    TARGETING_MCP_STATE_DIR: stateDir,
    TARGETING_MCP_SANDBOX_SEED: "none",
    ...given,
  };
}

/**
 * Runs the built command until it ends, in a process that has run it before. Only for commands that end by themselves
 * and ask no questions. Returns the exit code and the output.
 */
export async function runCommand(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const child = new WarmProcess(COMMAND, args, cleanEnvironment(environment));
  const [[code], out, stderr] = await Promise.all([once(child, "close"), text(child.stdout), text(child.stderr)]);
  return { code: z.number().parse(code), text: out.replace(/\n$/, ""), stderr };
}

/**
 * Returns whether the built command may run in a process that has run it before. Options for Node need a new process.
 * Long test suites set no TEST_PROCESSES, so they always use new processes.
 */
export function isWarm(environment: Readonly<Record<string, string>>): boolean {
  return process.env.TEST_PROCESSES === "warm" && !Object.keys(environment).some((name) => name.startsWith("NODE_"));
}

/**
 * Starts the built command, so that a test can exchange JSON-RPC messages without an SDK. Ends with the test. Tests of
 * the process itself, its streams or its signals use `startNode` instead.
 */
export function startCommand(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  if (!isWarm(environment)) return startNode([COMMAND, ...args], environment);
  const child = new WarmProcess(COMMAND, args, cleanEnvironment(environment));
  atEnd(() => child.leave());
  return spokenWith(child);
}

/**
 * Starts Node with a program, so that a test can exchange JSON-RPC messages without an SDK. Killed at the end of the
 * test.
 */
export function startNode(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return startProgram(process.execPath, args, environment);
}

/**
 * Starts a program in the folder `cwd`, so that a test can exchange JSON-RPC messages without an SDK. Killed at the end
 * of the test.
 */
export function startProgram(
  program: string,
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  cwd = process.cwd(),
) {
  const child = spawn(program, [...args], { env: cleanEnvironment(environment), cwd });
  atEnd(() => {
    child.kill("SIGKILL");
  });
  return spokenWith(child);
}

function spokenWith(child: ChildProcessWithoutNullStreams | WarmProcess) {
  const lines: string[] = [];
  let stderr = "";
  const waiting = new Set<() => void>();
  const wake = (): void => {
    for (const resolve of waiting) resolve();
    waiting.clear();
  };
  createInterface({ input: child.stdout }).on("line", (line) => {
    lines.push(line);
    wake();
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const exited = new Promise<{ code: number | null; signal: string | null }>((resolve) => {
    child.on("close", (code, signal) => {
      resolve({ code, signal });
      wake();
    });
  });
  return {
    child,
    exited,
    /** All lines of standard output so far. */
    lines,
    stderr: () => stderr,
    /** Ends a server by closing its input, so that its process can run the next command. Returns the exit code. */
    async end() {
      if (child instanceof WarmProcess) child.leave();
      else child.stdin.end();
      return (await exited).code;
    },
    send(message: unknown) {
      child.stdin.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
    },
    /** Waits for the response with this ID. */
    async answer(id: string | number): Promise<RpcLine> {
      while (true) {
        const found = lines.map((line) => rpcLine.parse(JSON.parse(line))).find((line) => line.id === id);
        if (found !== undefined) return found;
        if (child.exitCode !== null) throw new Error(`the command ended without answering ${id}: ${stderr}`);
        await new Promise<void>((resolve) => {
          waiting.add(resolve);
        });
      }
    },
  };
}

/** The messages with which a client of a protocol version of 2025 opens a connection. */
export const OPENING: readonly unknown[] = [
  {
    jsonrpc: "2.0",
    id: "open",
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "by-hand", version: "1" } },
  },
  { jsonrpc: "2.0", method: "notifications/initialized" },
];

/** Returns a request that calls a tool. */
export function toolCall(id: string | number, name: string, args: unknown) {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } };
}
