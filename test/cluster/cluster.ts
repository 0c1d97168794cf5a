import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import * as z from "zod";
import { startSandbox } from "../../src/sandbox/index.ts";
import { type ToolResult, toolResult } from "../support/clients.ts";
import { cleanEnvironment } from "../support/server-process.ts";
import { type TestPostgres, testPostgres } from "./postgres.ts";
import { openServiceGate, type ServiceGate } from "./service-gate.ts";

const COMMAND = join(import.meta.dirname, "..", "..", "dist", "main.js");
const logLine = z.looseObject({ message: z.string(), url: z.string().optional() });

/** A process of a cluster. */
export interface Member {
  readonly child: ChildProcess;
  readonly stderr: () => string;
  readonly exited: Promise<number | null>;
  /** Waits for the log line with this message. */
  logged(message: string): Promise<z.infer<typeof logLine>>;
}

/** A process that serves clients. */
export interface Replica extends Member {
  readonly url: string;
}

/** Whether tests run that take a minute or more, or need a machine without other work. */
export const isLong = process.env.TARGETING_MCP_TEST_LONG === "on";

const started = new Set<ChildProcess>();

/** Starts the built command with the settings of the cluster. */
export function startMember(args: readonly string[], settings: Readonly<Record<string, string>>): Member {
  const child = spawn(process.execPath, [COMMAND, ...args], { env: cleanEnvironment(settings) });
  started.add(child);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const exited = new Promise<number | null>((resolve) => child.on("close", resolve));
  return {
    child,
    exited,
    stderr: () => stderr,
    async logged(message) {
      for (;;) {
        const lines = stderr.split("\n").filter((line) => line.startsWith("{") && line.endsWith("}"));
        const found = lines.map((line) => logLine.parse(JSON.parse(line))).find((line) => line.message === message);
        if (found !== undefined) return found;
        if (child.exitCode !== null) throw new Error(`the process ended: ${stderr}`);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    },
  };
}

/** Starts a replica, and waits until it serves clients. */
export async function startReplica(settings: Readonly<Record<string, string>>, ...args: readonly string[]) {
  const member = startMember(["http", "--port", "0", ...args], settings);
  const { url = "" } = await member.logged("serving");
  return { ...member, url };
}

/** Starts a worker, and waits until it executes runs. */
export async function startWorker(settings: Readonly<Record<string, string>>): Promise<Member> {
  const member = startMember(["worker"], settings);
  await member.logged("driving");
  return member;
}

/** Kills every process that was started and still runs. */
export function killAll(): void {
  for (const child of started) child.kill("SIGKILL");
  started.clear();
}

/**
 * Starts PostgreSQL for the tests of a file. After each test, kills the test's processes and calls the functions in
 * `closing`.
 */
export function withPostgres(settings: Readonly<Record<string, string>> = {}) {
  const closing: (() => unknown)[] = [];
  let started: TestPostgres | undefined;
  beforeAll(async () => {
    started = await testPostgres(settings);
  });
  afterEach(async () => {
    killAll();
    for (const close of closing.splice(0)) await close();
  });
  afterAll(() => started?.stop());
  return {
    closing,
    get postgres(): TestPostgres {
      return there(started);
    },
  };
}

/**
 * Does the same, and for each test starts a service behind a gate and creates an empty store. Returns the settings of
 * processes that use them: these defaults, and `more`.
 */
export function withService(more: Readonly<Record<string, string>> = {}) {
  const cluster = withPostgres();
  let made: { readonly service: Service; readonly gate: ServiceGate; readonly store: string } | undefined;
  beforeEach(async () => {
    const service = await startService();
    const gate = await openServiceGate(service.url);
    cluster.closing.push(gate.close, service.close);
    made = { service, gate, store: await cluster.postgres.database() };
  });
  return {
    closing: cluster.closing,
    get postgres(): TestPostgres {
      return cluster.postgres;
    },
    get service(): Service {
      return there(made).service;
    },
    get gate(): ServiceGate {
      return there(made).gate;
    },
    get store(): string {
      return there(made).store;
    },
    get settings() {
      const { gate, store } = there(made);
      return {
        TARGETING_MCP_STORE: store,
        TARGETING_MCP_MODE: "live",
        TARGETING_API_URL: gate.url,
        TARGETING_API_KEY: "sandbox-key",
        ...more,
      };
    },
  };
}

type Service = Awaited<ReturnType<typeof startService>>;

function there<T>(made: T | undefined): T {
  if (made === undefined) throw new Error("it is there from the first hook on");
  return made;
}

/** Calls a tool of a replica on a new connection. */
export async function call(
  url: string,
  name: string,
  args: Record<string, unknown>,
  token = "nobody asks",
): Promise<ToolResult> {
  const client = new Client({ name: "cluster", version: "1" }, { versionNegotiation: { mode: "auto" } });
  const headers = { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  try {
    return toolResult.parse(await client.callTool({ name, arguments: args }));
  } finally {
    await client.close();
  }
}

const report = z.looseObject({
  runId: z.string().default(""),
  status: z.string().default(""),
  counts: z.record(z.string(), z.number()).default({}),
});

/** Returns what an answer says about its run. */
export function reportOf({ structuredContent }: ToolResult): z.infer<typeof report> {
  return report.parse(structuredContent ?? {});
}

/**
 * Makes a call, and returns the report of its run. On a busy machine, the call may time out before its run is stored.
 * It is then repeated, as its answer advises, and joins the run if that was stored after all.
 */
export async function runOf(url: string, name: string, args: Record<string, unknown>, token?: string) {
  const until = Date.now() + 60_000;
  for (;;) {
    const answer = await call(url, name, args, token);
    const told = reportOf(answer);
    if (told.runId !== "") return told;
    if (Date.now() > until) throw new Error(`${name} made no run: ${JSON.stringify(answer).slice(0, 500)}`);
  }
}

/**
 * Waits until a replica reports that a run has stopped. While the store is unavailable, the replica cannot report it.
 */
export async function restOf(url: string, runId: string, withinMs = 60_000, token?: string) {
  const until = Date.now() + withinMs;
  for (;;) {
    const told = reportOf(await call(url, "get_run", { runId, waitMs: 1000 }, token));
    if (told.status !== "running" && told.status !== "") return told;
    if (Date.now() > until) throw new Error(`run ${runId} does not rest: ${JSON.stringify(told)}`);
  }
}

const state = z.looseObject({
  projects: z.array(
    z.looseObject({ options: z.array(z.looseObject({ _id: z.string(), targeting: z.string(), name: z.string() })) }),
  ),
});
const made = z.looseObject({ results: z.array(z.looseObject({ data: z.looseObject({ _id: z.string() }) })) });

/** Starts a service, with functions that read its data. */
export async function startService(managementKeys: readonly { readonly key: string; readonly project: string }[] = []) {
  const sandbox = await startSandbox({ lockWaitMs: 0, keys: { managementKeys } });
  const send = async (path: string, body: unknown, key = "sandbox-key"): Promise<unknown> => {
    const headers = { "x-api-key": key, "content-type": "application/json" };
    const answer = await fetch(`${sandbox.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${path}: ${await answer.text()}`);
    return answer.json();
  };
  const optionsThere = async () => {
    const all = state.parse(await (await fetch(`${sandbox.url}/_sandbox/state`)).json()).projects;
    return all.flatMap(({ options }) => options);
  };
  return {
    url: sandbox.url,
    close: () => sandbox.close(),
    async targeting(name: string, key?: string): Promise<string> {
      const { results } = made.parse(await send("/context-targeting/bulk/create", { items: [{ name }] }, key));
      return results[0]?.data._id ?? "";
    },
    faults: (...faults: readonly object[]) => send("/_sandbox/faults", { faults }),
    /** Returns all options in the service. */
    optionsThere,
    /** Returns the names of a targeting's options. A name that exists twice is returned twice. */
    async options(targeting: string): Promise<readonly string[]> {
      return (await optionsThere()).filter((one) => one.targeting === targeting).map(({ name }) => name);
    },
    /** Removes all faults. */
    calm: () => fetch(`${sandbox.url}/_sandbox/faults`, { method: "DELETE" }),
  };
}

/** Returns options to add, with different names. */
export function optionItems(count: number, prefix = "o"): readonly { readonly name: string }[] {
  return Array.from({ length: count }, (_, n) => ({ name: `${prefix}${n}`, contexts: [`${prefix}-${n}`] }));
}
