import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import * as z from "zod";
import { atEnd } from "./ends.ts";
import type { Asked } from "./warm-command.ts";

/** The built command. */
export const COMMAND = join(import.meta.dirname, "..", "..", "dist", "main.js");

/** A program beside this file, as the setup of the tests has built it (test/support/setup.ts). */
export function builtProgram(name: "asking-server" | "client-process" | "warm-command"): string {
  return join(process.env.TEST_PROGRAMS ?? "", `${name}.mjs`);
}

const rpcLine = z.looseObject({ jsonrpc: z.literal("2.0"), id: z.union([z.string(), z.number()]).optional() });
export type RpcLine = z.infer<typeof rpcLine>;

/** An environment without any setting of this machine, with a state folder of its own, and nothing in the sandbox. */
export function cleanEnvironment(given: Readonly<Record<string, string>> = {}): Record<string, string> {
  const stateDir = mkdtempSync(join(tmpdir(), "targeting-mcp-"));
  return {
    PATH: process.env.PATH ?? "",
    TARGETING_MCP_STATE_DIR: stateDir,
    TARGETING_MCP_SANDBOX_SEED: "none",
    ...given,
  };
}

const ended = z.tuple([z.object({ code: z.number(), text: z.string(), stderr: z.string() })], z.unknown());
let warm: ChildProcess | undefined;
let before: Promise<unknown> = Promise.resolve();

/**
 * Runs the built command to its end, in a process that all tests of a worker share: for commands that end by
 * themselves, ask nothing, and are not killed. They run one after the other. Gives the exit code and what was written.
 */
export function runCommand(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const asked: Asked = { command: COMMAND, args: [...args], env: cleanEnvironment(environment), cwd: process.cwd() };
  const run = before.then(async () => {
    warm ??= startWarm();
    const answered = once(warm, "message");
    warm.send(asked);
    const [answer] = ended.parse(await answered);
    return answer;
  });
  before = run.catch(() => {
    warm?.kill();
    warm = undefined;
  });
  return run;
}

/** It ends with the worker, which it does not keep alive. */
function startWarm(): ChildProcess {
  const child = fork(builtProgram("warm-command"), { stdio: ["ignore", "ignore", "ignore", "ipc"], execArgv: [] });
  child.once("exit", () => child.emit("error", new Error("the process that runs commands has ended")));
  child.unref();
  child.channel?.unref();
  return child;
}

/** Starts the built command, to speak JSON-RPC with it by hand; it is killed when the test ends. */
export function startCommand(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return startNode([COMMAND, ...args], environment);
}

/** Starts Node with a program, to speak JSON-RPC with it by hand; it is killed when the test ends. */
export function startNode(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return startProgram(process.execPath, args, environment);
}

/** Starts a program, in `cwd` if given, to speak JSON-RPC with it by hand; it is killed when the test ends. */
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
    /** Every line of standard output so far. */
    lines,
    stderr: () => stderr,
    send(message: unknown) {
      child.stdin.write(`${typeof message === "string" ? message : JSON.stringify(message)}\n`);
    },
    /** The answer with an ID, as soon as it is there. */
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

/** The opening messages of a 2025-era client. */
export const OPENING: readonly unknown[] = [
  {
    jsonrpc: "2.0",
    id: "open",
    method: "initialize",
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "by-hand", version: "1" } },
  },
  { jsonrpc: "2.0", method: "notifications/initialized" },
];

/** A request that calls a tool. */
export function toolCall(id: string | number, name: string, args: unknown) {
  return { jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: args } };
}
