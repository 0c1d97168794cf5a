// Compares runs in PostgreSQL with runs in files: durable appends, the cost of a run, runs per second with one, two and
// four workers, a caller's list among many runs, and the time until another worker claims the runs of a killed one.
// `npm run bench -- store`.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import * as z from "zod";
import { systemClock } from "../src/platform/clock.ts";
import type { Backend } from "../src/runs/backend.ts";
import { fileBackend } from "../src/runs/files/backend.ts";
import { postgresBackend } from "../src/runs/postgres/backend.ts";
import { openDatabase } from "../src/runs/postgres/database.ts";
import { migrate } from "../src/runs/postgres/migrations.ts";
import { startSandbox } from "../src/sandbox/index.ts";
import { ulidSource } from "../src/spec/names-and-contexts.ts";
import { statement, testPostgres } from "../test/cluster/postgres.ts";
import { startRun } from "../test/support/records.ts";
import { callerAt } from "./mixed-load.ts";
import { median, PROGRAMS } from "./server-process.ts";

const APPENDING_MS = 2000;
const SMALL_RUNS = 40;
const PROJECTS = 50;
/** The number of runs of each project, and of requests in each run. */
const RUNS = 2;
const REQUESTS = 2;
/**
 * How many projects a worker writes to at the same time. With the default of 50, a single worker would take all
 * projects and leave none to the others. `apart`: 1, with which even four workers leave a part of two cores unused.
 * `full`: 3, with which two workers use almost all of them.
 */
const PARALLEL = { apart: 1, full: 3 } as const;
const DEATHS = 5;

const newRunId = ulidSource(Date.now, Math.random);
const keep = { days: 30, runs: 1_000_000 };
const postgres = await testPostgres();
const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-bench-"));
const children = new Set<ChildProcess>();

async function emptyStore(): Promise<string> {
  const url = await postgres.database();
  const database = openDatabase({ url, connections: 2 });
  await migrate(database);
  await database.close();
  return url;
}

function headerOf(caller = "me", project = "p") {
  const runId = newRunId();
  const call = { tool: "create_targetings", input: { items: [] } };
  return {
    runId,
    kind: "changes",
    call,
    project,
    caller,
    environment: "live" as const,
    createdAt: Date.now(),
    fingerprint: runId,
  };
}

/** Returns the number of durable appends per second with the given number of simultaneous runs. */
async function appends({ runs }: Backend, count: number): Promise<number> {
  let made = 0;
  const until = Date.now() + APPENDING_MS;
  const line = [`{"t":"sent","body":"${"x".repeat(300)}"}`];
  const one = async (): Promise<void> => {
    const header = headerOf();
    await runs.create(header);
    await startRun(runs, header.runId);
    const lease = await runs.lease(header.runId);
    if (lease === undefined) throw new Error("no other process has it");
    const journal = await runs.journal(header.runId, lease);
    for (; Date.now() < until; made += 1) {
      journal.append(line);
      await journal.flush();
    }
    await journal.close();
    await lease.release();
  };
  await Promise.all(Array.from({ length: count }, one));
  return made / (APPENDING_MS / 1000);
}

const line = z.looseObject({ message: z.string(), url: z.string().default("") });

/** Starts the built command. Resolves with its address when it logs that it serves or that the worker is ready. */
async function started(args: readonly string[], settings: Readonly<Record<string, string>>) {
  const child = spawn(process.execPath, [PROGRAMS.ours, ...args], {
    env: { PATH: process.env.PATH ?? "", ...settings },
    stdio: ["ignore", "ignore", "pipe"],
  });
  children.add(child);
  for await (const text of createInterface({ input: child.stderr })) {
    const said = line.parse(JSON.parse(text));
    if (said.message !== "serving" && said.message !== "driving") continue;
    child.stderr.resume();
    return { child, url: said.url };
  }
  throw new Error(`${args.join(" ")} ended`);
}

async function ended(child: ChildProcess, signal: NodeJS.Signals = "SIGTERM"): Promise<void> {
  const gone = once(child, "exit");
  child.kill(signal);
  await gone;
  children.delete(child);
}

const keys = Array.from({ length: PROJECTS }, (_, n) => ({ key: `key-of-${n}`, project: `project-${n}` }));
const sandbox = await startSandbox({ lockWaitMs: 0, keys: { managementKeys: keys } });
const slow = (delayMs: number) =>
  fetch(`${sandbox.url}/_sandbox/faults`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ faults: [{ kind: "slow", delayMs, on: "write", probability: 1 }] }),
  });
const tokenOf = (project: string): string => `token-of-the-${project}`;
const access = {
  projects: Object.fromEntries(keys.map(({ key, project }) => [project, { targetingApiKey: key }])),
  tokens: keys.map(({ project }) => ({ name: project, token: tokenOf(project), project })),
};
await writeFile(join(folder, "access.json"), JSON.stringify(access), { mode: 0o600 });
const common = {
  TARGETING_MCP_MODE: "live",
  TARGETING_API_URL: sandbox.url,
  TARGETING_MCP_ACCESS_FILE: join(folder, "access.json"),
  TARGETING_MCP_STATE_DIR: join(folder, "state"),
  TARGETING_MCP_CONFIRM: "off",
};

async function appending(): Promise<void> {
  const files = fileBackend({ stateDir: join(folder, "appends"), clock: systemClock, keep });
  const stored = postgresBackend({ url: await emptyStore(), connections: 20, clock: systemClock, keep });
  for (const count of [1, 16]) {
    const [ofFiles, ofStore] = [await appends(files, count), await appends(stored, count)];
    console.log(
      `${count} runs: ${ofFiles.toFixed(0)} durable appends a second in files, ${ofStore.toFixed(0)} in PostgreSQL`,
    );
    console.log(
      `durable appends of ${count} runs, PostgreSQL compared with files: ${(ofStore / ofFiles).toFixed(2)} (at least 0.1)`,
    );
  }
  await Promise.all([files.close(), stored.close()]);
}

/** Measures a small write over HTTP, alternately with files and with the store. */
async function costs(): Promise<void> {
  const servers = [
    await started(["http", "--port", "0"], common),
    await started(["http", "--port", "0"], { ...common, TARGETING_MCP_STORE: await emptyStore() }),
  ];
  const times = servers.map((): number[] => []);
  for (let run = 0; run < SMALL_RUNS; run += 1) {
    for (const [at, { url }] of servers.entries()) {
      const begin = performance.now();
      await callerAt(url, tokenOf("project-0"))("create_targetings", { items: [{ name: `Run ${at} ${run}` }] });
      if (run >= 5) times[at]?.push(performance.now() - begin);
    }
  }
  const [files = Number.NaN, stored = Number.NaN] = times.map((of) => median(of));
  console.log(`a small run: ${files.toFixed(1)} ms in files, ${stored.toFixed(1)} ms in PostgreSQL`);
  console.log(`the cost of a small run, PostgreSQL compared with files: ${(stored / files).toFixed(2)} (at most 4)`);
  for (const { child } of servers) await ended(child);
}

interface Driven {
  readonly perSecond: number;
  /** The share of the machine's processor time that was used. */
  readonly busy: number;
}

function cpuTimes() {
  const all = cpus().map(({ times }) => times);
  const idle = all.reduce((sum, one) => sum + one.idle, 0);
  return { idle, all: all.reduce((sum, { user, nice, sys, idle, irq }) => sum + user + nice + sys + idle + irq, 0) };
}

/**
 * Returns the runs per second with the given number of workers, each of which writes to `parallel` of the 50 projects
 * at the same time. All runs wait until the workers have started.
 */
async function driven(workers: number, parallel: number): Promise<Driven> {
  const store = await emptyStore();
  const settings = { ...common, TARGETING_MCP_STORE: store, TARGETING_MCP_WAIT_MS: "1" };
  const replica = await started(["http", "--port", "0"], { ...settings, TARGETING_MCP_DRIVE: "off" });
  for (let run = 0; run < RUNS; run += 1) {
    const items = Array.from({ length: REQUESTS * 100 }, (_, n) => ({ name: `W${workers} R${run} T${n}` }));
    for (let at = 0; at < PROJECTS; at += 10) {
      const some = keys.slice(at, at + 10);
      await Promise.all(
        some.map(({ project }) =>
          callerAt(replica.url, tokenOf(project))("create_targetings", { items }).catch(() => undefined),
        ),
      );
    }
  }
  await ended(replica.child);
  // Makes the runs claimable only now, so that all workers have started before.
  await statement(store, "update targeting_mcp.run set status = 'interrupted' where status = 'running'");
  const count =
    "select count(*)::int as all, count(*) filter (where status <> 'running')::int as done, min(changed_at) as first from targeting_mcp.run where version > 0";
  const all: number = (await statement(store, count)).rows[0].all;
  const narrow = { ...settings, TARGETING_MCP_PARALLEL_PROJECTS: String(parallel) };
  const drivers = await Promise.all(Array.from({ length: workers }, () => started(["worker"], narrow)));
  const begin =
    "update targeting_mcp.run set status = 'running' where status = 'interrupted'; select pg_notify('targeting_mcp_left', '')";
  await delay(500);
  const before = cpuTimes();
  await statement(store, begin);
  for (let done = 0; done < all; ) {
    await delay(100);
    done = (await statement(store, count)).rows[0].done;
  }
  const after = cpuTimes();
  // The time from the first request of the first run to the last entry of the last run.
  const span =
    "select extract(epoch from max(at) - min(at) filter (where epoch > 1))::float8 as seconds from targeting_mcp.entry";
  const seconds = Number((await statement(store, span)).rows[0].seconds);
  for (const { child } of drivers) await ended(child);
  return { perSecond: all / seconds, busy: 1 - (after.idle - before.idle) / (after.all - before.all) };
}

async function workers(): Promise<void> {
  await slow(50);
  const [one, two, four] = await drivenBy([1, 2, 4], PARALLEL.apart);
  if (one === undefined || two === undefined || four === undefined) throw new Error("three were measured");
  for (const [count, of, least] of [
    [2, two, 1.8],
    [4, four, 3],
  ] as const) {
    const ratio = of.perSecond / one.perSecond;
    const what = `runs a second with ${count} workers that write to one project each, compared with one worker`;
    // If the machine is fully used, more processes cannot do more.
    if (of.busy > 0.9 && ratio < least)
      console.log(`${what}: ${ratio.toFixed(2)} (no target, because the processors are fully used)`);
    else console.log(`${what}: ${ratio.toFixed(2)} (at least ${least})`);
  }
  await drivenBy([1, 2, 4], PARALLEL.full);
}

async function drivenBy(counts: readonly number[], parallel: number): Promise<readonly Driven[]> {
  const found: Driven[] = [];
  for (const count of counts) {
    const one = await driven(count, parallel);
    found.push(one);
    const [rate, share] = [one.perSecond.toFixed(1), (100 * one.busy).toFixed(0)];
    console.log(
      `workers: ${count}, projects of each at a time: ${parallel}; ${rate} runs a second, ${share} % of the machine`,
    );
  }
  return found;
}

/** Measures the first page of a caller's runs, with few and with many runs of that caller. */
async function listing(): Promise<void> {
  const lists: { readonly url: string; readonly child: ChildProcess; readonly times: number[] }[] = [];
  for (const count of [1000, 100_000]) {
    const store = await emptyStore();
    const server = await started(["http", "--port", "0"], {
      ...common,
      TARGETING_MCP_STORE: store,
      TARGETING_MCP_KEEP_RUNS: "1000000",
    });
    await callerAt(server.url, tokenOf("project-0"))("create_targetings", { items: [{ name: `List ${count}` }] });
    await statement(
      store,
      `insert into targeting_mcp.run (id, project, caller, environment, fingerprint, header, status, version, record, open)
       select left(id, 16) || lpad(n::text, 10, '0'), project, caller, environment, n::text, header, status, version, record, false
       from targeting_mcp.run, generate_series(1, ${count}) n`,
    );
    await statement(store, "analyze");
    lists.push({ ...server, times: [] });
  }
  for (let call = 0; call < 40; call += 1) {
    for (const { url, times } of lists) {
      const begin = performance.now();
      await callerAt(url, tokenOf("project-0"))("get_run", {});
      if (call >= 5) times.push(performance.now() - begin);
    }
  }
  const [few = Number.NaN, many = Number.NaN] = lists.map(({ times }) => median(times));
  console.log(`a list of runs: ${few.toFixed(1)} ms among 1,000, ${many.toFixed(1)} ms among 100,000`);
  console.log(`a list of a caller's runs, among 100,000, compared with 1,000: ${(many / few).toFixed(2)} (at most 3)`);
  for (const { child } of lists) await ended(child);
}

/** Measures the time from a worker's kill -9 until another worker has claimed its run. */
async function takingUp(): Promise<void> {
  await slow(300);
  const store = await emptyStore();
  const settings = { ...common, TARGETING_MCP_STORE: store, TARGETING_MCP_WAIT_MS: "1" };
  const replica = await started(["http", "--port", "0"], { ...settings, TARGETING_MCP_DRIVE: "off" });
  let worker = await started(["worker"], settings);
  const items = Array.from({ length: 8000 }, (_, n) => ({ name: `Taken up ${n}` }));
  await callerAt(replica.url, tokenOf("project-1"))("create_targetings", { items }).catch(() => undefined);
  const query = "select coalesce(max(epoch), 0)::int as epoch, count(*)::int as entries from targeting_mcp.entry";
  const newest = async (): Promise<{ epoch: number; entries: number }> => (await statement(store, query)).rows[0];
  const times: number[] = [];
  for (let death = 0; death < DEATHS; death += 1) {
    const next = await started(["worker"], settings);
    const before = await newest();
    for (let now = before; now.entries < before.entries + 2; now = await newest()) await delay(50);
    const { epoch } = await newest();
    await ended(worker.child, "SIGKILL");
    const killedAt = performance.now();
    while ((await newest()).epoch <= epoch) await delay(20);
    times.push((performance.now() - killedAt) / 1000);
    worker = next;
  }
  console.log(`the next request after a worker's kill -9, median: ${median(times).toFixed(2)} s (at most 5)`);
  console.log(`the next request after a worker's kill -9, worst: ${Math.max(...times).toFixed(2)} s (at most 5)`);
  await ended(worker.child, "SIGKILL");
  await ended(replica.child);
}

try {
  await appending();
  await costs();
  await workers();
  await listing();
  await takingUp();
} finally {
  for (const child of children) child.kill("SIGKILL");
  await sandbox.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
