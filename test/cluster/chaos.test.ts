import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import * as z from "zod";
import {
  call,
  killAll,
  type Member,
  type Replica,
  reportOf,
  startReplica,
  startService,
  startWorker,
} from "./cluster.ts";
import { statement, type TestPostgres, testPostgres } from "./postgres.ts";

const PROJECTS = 10;
const OPTIONS = 48;
const CONTEXT_IDS = 800;
const CHAOS_MS = 25_000;

let postgres: TestPostgres;
let close = async (): Promise<void> => {};

beforeAll(async () => {
  postgres = await testPostgres();
});
afterEach(async () => {
  killAll();
  await close();
});
afterAll(() => postgres.stop());

const rows = z.looseObject({
  results: z
    .array(z.looseObject({ outcome: z.string(), name: z.string().default(""), _id: z.string().optional() }))
    .default([]),
  cursor: z.string().optional(),
});

/** Settings of processes that hold the keys of ten projects, with a caller for each. */
async function manyProjects() {
  const keys = Array.from({ length: PROJECTS }, (_, n) => ({ key: `key-of-${n}`, project: `project-${n}` }));
  const service = await startService(keys);
  close = () => service.close();
  const file = join(await mkdtemp(join(tmpdir(), "targeting-mcp-access-")), "access.json");
  const projects = Object.fromEntries(keys.map(({ key, project }) => [project, { targetingApiKey: key }]));
  const tokens = keys.map(({ project }) => ({ name: project, token: `token-of-the-${project}`, project }));
  await writeFile(file, JSON.stringify({ projects, tokens }), { mode: 0o600 });
  const settings = {
    TARGETING_MCP_STORE: await postgres.database(),
    TARGETING_MCP_MODE: "live",
    TARGETING_API_URL: service.url,
    TARGETING_MCP_ACCESS_FILE: file,
    TARGETING_MCP_WAIT_MS: "2000",
    TARGETING_MCP_REQUEST_TIMEOUT_MS: "5000",
  };
  return { keys, tokens: tokens.map(({ token }) => token), service, settings };
}

/** Calls until some replica answers about a run, or about anything else than that it cannot. */
async function insist(replicas: readonly Replica[], name: string, args: Record<string, unknown>, token: string) {
  for (let tries = 0; ; tries += 1) {
    const replica = replicas[tries % replicas.length];
    try {
      const answer = await call(replica?.url ?? "", name, args, token);
      if (answer.isError !== true || reportOf(answer).runId !== "") return answer;
      if (tries > 60) throw new Error(JSON.stringify(answer.structuredContent));
    } catch (thrown) {
      if (tries > 60) throw thrown;
    }
    await delay(500);
  }
}

test("random deaths and pauses of every process, and of the store: 0 lost, 0 doubled, 0 misreported", async () => {
  const { keys, tokens, service, settings } = await manyProjects();
  const replicas = await Promise.all([1, 2, 3].map(() => startReplica(settings)));
  const workers = await Promise.all([1, 2].map(() => startWorker(settings)));
  await service.faults(
    { kind: "slow", delayMs: 250, on: "write", probability: 0.5, seed: 1 },
    { kind: "reset", applied: true, on: "write", probability: 0.05, seed: 2 },
    { kind: "status", status: 503, on: "write", probability: 0.05, seed: 3 },
  );
  const ids = Array.from({ length: CONTEXT_IDS }, (_, n) => n);
  const runs = await Promise.all(
    keys.map(async ({ key, project }, n) => {
      const targetingId = await service.targeting(project, key);
      const names = Array.from({ length: OPTIONS }, (_, at) => `${project} option ${at}`);
      const items = names.map((name) => ({ name, contexts: ids.map((id) => `${name.slice(-9)}-${id}`) }));
      const token = tokens[n] ?? "";
      const made = reportOf(await insist(replicas, "bulk_add_options", { targetingId, items }, token));
      return { runId: made.runId, token, targetingId, names };
    }),
  );
  const members: (Member & { again: () => Promise<Member> })[] = [
    ...replicas.map((replica, at) => ({
      ...replica,
      again: async () => {
        const fresh = await startReplica(settings);
        replicas[at] = fresh;
        return fresh;
      },
    })),
    ...workers.map((worker) => ({ ...worker, again: () => startWorker(settings) })),
  ];
  const until = Date.now() + CHAOS_MS;
  for (let round = 0; Date.now() < until; round += 1) {
    const at = (round * 3) % members.length;
    const victim = members[at];
    if (victim === undefined) throw new Error("there are five");
    if (round % 3 === 0) {
      victim.child.kill("SIGSTOP");
      await delay(7500);
      victim.child.kill("SIGCONT");
    } else if (round % 3 === 1) {
      victim.child.kill("SIGKILL");
      members[at] = { ...(await victim.again()), again: victim.again };
    } else {
      await postgres.kill();
      await delay(500);
      await postgres.start();
    }
    await delay(500);
  }
  const wrong: string[] = [];
  const counted = { items: 0, unknown: 0 };
  for (const { runId, token, targetingId, names } of runs) {
    let told = reportOf(await insist(replicas, "get_run", { runId, waitMs: 2000 }, token));
    for (let tries = 0; told.status === "running" && tries < 60; tries += 1) {
      told = reportOf(await insist(replicas, "get_run", { runId, waitMs: 2000 }, token));
    }
    if (!["succeeded", "partial", "unknown"].includes(told.status)) wrong.push(`${runId} is ${told.status}`);
    const there = await service.options(targetingId);
    const outcomes = new Map<string, string>();
    let cursor: string | undefined;
    do {
      const page = rows.parse(
        (
          await insist(
            replicas,
            "get_run",
            { runId, limit: 50, outcome: "succeeded", ...(cursor && { cursor }) },
            token,
          )
        ).structuredContent,
      );
      for (const { name, outcome } of page.results) outcomes.set(name, outcome);
      cursor = page.cursor;
    } while (cursor !== undefined);
    for (const name of names) {
      counted.items += 1;
      const times = there.filter((one) => one === name).length;
      const isTold = outcomes.get(name) === "succeeded";
      if (!isTold) counted.unknown += 1;
      if (times > 1 || (isTold && times !== 1)) wrong.push(`${name} is there ${times} times`);
    }
    const { succeeded = 0, unknown = 0, failed = 0, items = 0 } = told.counts;
    if (succeeded + unknown !== items || failed > 0) wrong.push(`${runId}: ${JSON.stringify(told.counts)}`);
  }
  process.stdout.write(`items ${counted.items}, not told as succeeded ${counted.unknown}, wrong ${wrong.length}\n`);
  expect(wrong).toEqual([]);
});

test("runs of a worker that is killed go on within five seconds", async () => {
  const { tokens, service, settings } = await manyProjects();
  const replica = await startReplica({ ...settings, TARGETING_MCP_DRIVE: "off" });
  await service.faults({ kind: "slow", delayMs: 700, on: "write", probability: 1 });
  let worker = await startWorker(settings);
  const items = Array.from({ length: 3000 }, (_, n) => ({ name: `targeting ${n}` }));
  const { runId } = reportOf(await insist([replica], "create_targetings", { items }, tokens[0] ?? ""));
  const newest = async () => {
    const query = `select coalesce(max(epoch), 0)::int as epoch, count(*)::int as entries from targeting_mcp.entry where run = '${runId}'`;
    const [row] = z
      .array(z.object({ epoch: z.number(), entries: z.number() }))
      .parse((await statement(settings.TARGETING_MCP_STORE, query)).rows);
    return row ?? { epoch: 0, entries: 0 };
  };
  const holder = async () => {
    const query = `select epoch::int from targeting_mcp.lease where name = 'run:${runId}'`;
    return (await statement(settings.TARGETING_MCP_STORE, query)).rows[0]?.epoch;
  };
  const [takenUp, wrote]: [number[], number[]] = [[], []];
  for (let death = 0; death < 4; death += 1) {
    const next = await startWorker(settings);
    const before = await newest();
    await expect.poll(async () => (await newest()).entries).toBeGreaterThan(before.entries);
    const { epoch } = await newest();
    worker.child.kill("SIGKILL");
    const killedAt = Date.now();
    await expect.poll(holder, { interval: 50, timeout: 20_000 }).toBeGreaterThan(epoch);
    takenUp.push(Date.now() - killedAt);
    await expect.poll(async () => (await newest()).epoch, { interval: 50, timeout: 20_000 }).toBeGreaterThan(epoch);
    wrote.push(Date.now() - killedAt);
    worker = next;
  }
  const told = (times: readonly number[]): string => times.toSorted((one, other) => one - other).join(", ");
  process.stdout.write(`after a kill -9: taken up ${told(takenUp)} ms, next request ${told(wrote)} ms\n`);
  expect(Math.max(...takenUp)).toBeLessThan(5000);
});
