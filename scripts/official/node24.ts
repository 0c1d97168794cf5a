// Runs official MCP tools, which need a newer Node than this package, and the servers that they check.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

/** The output of a command, and its exit code. */
export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A tool that takes longer than this is stuck. */
const LONGEST_MS = 5 * 60_000;
const START_MS = 20_000;

/** Runs a command of a package from the registry under Node 24. */
export async function underNode24(spec: string, args: readonly string[]): Promise<Finished> {
  const child = spawn("npx", ["--yes", "--package", "node@24", "--package", spec, "--", ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    timeout: LONGEST_MS,
  });
  const printed = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed.stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    printed.stderr += text;
  });
  await once(child, "close");
  return { code: child.exitCode, ...printed };
}

/** Calls `work` with a new folder, and removes the folder afterwards. */
export async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "targeting-mcp-"));
  try {
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Starts a server that serves MCP over HTTP and logs its address (`"message":"serving"`), and stops it after `work`.
 */
export function withServer<T>(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  work: (url: string) => Promise<T>,
): Promise<T> {
  return inFolder(async (folder) => {
    const { PATH = "", HOME = "" } = process.env;
    const child = spawn(process.execPath, args, {
      env: { PATH, HOME, TARGETING_MCP_STATE_DIR: folder, ...env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const exited = once(child, "exit");
    let log = "";
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    try {
      return await work(await addressIn(() => log, exited));
    } finally {
      child.kill();
      await exited;
    }
  });
}

async function addressIn(log: () => string, exited: Promise<unknown>): Promise<string> {
  let ended = false;
  exited.then(
    () => {
      ended = true;
    },
    () => {
      ended = true;
    },
  );
  for (let waited = 0; waited < START_MS && !ended; waited += 50) {
    const [, url] = /"message":"serving".*?"url":"([^"]+)"/.exec(log()) ?? [];
    if (url !== undefined) return url;
    await delay(50);
  }
  throw new Error(`the server did not start:\n${log()}`);
}
