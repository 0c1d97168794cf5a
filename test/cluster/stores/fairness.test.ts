import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { restOf, runOf, startReplica, startService, startWorker, withPostgres } from "../cluster.ts";
import { statement } from "../postgres.ts";

const cluster = withPostgres();

/**
 * Returns settings of processes with the keys of some projects, and an access token for each caller: `caller of
 * project`.
 */
async function shared(projects: readonly string[], callers: readonly (readonly [string, string])[]) {
  const keys = projects.map((project) => ({ key: `key-of-${project}`, project }));
  const service = await startService(keys);
  cluster.closing.push(service.close);
  const file = join(await mkdtemp(join(tmpdir(), "targeting-mcp-access-")), "access.json");
  const access = {
    projects: Object.fromEntries(keys.map(({ key, project }) => [project, { targetingApiKey: key }])),
    tokens: callers.map(([name, project]) => ({ name, token: `token-of-the-caller-${name}`, project })),
  };
  await writeFile(file, JSON.stringify(access), { mode: 0o600 });
  const store = await cluster.postgres.database();
  const settings = {
    TARGETING_MCP_STORE: store,
    TARGETING_MCP_MODE: "live",
    TARGETING_API_URL: service.url,
    TARGETING_MCP_ACCESS_FILE: file,
    TARGETING_MCP_WAIT_MS: "300",
  };
  const tokenOf = (name: string): string => `token-of-the-caller-${name}`;
  /** Starts a run of this many requests. */
  const begin = async (url: string, name: string, requests: number, prefix: string): Promise<string> => {
    const items = Array.from({ length: requests * 100 }, (_, n) => ({ name: `${prefix} ${n}` }));
    return (await runOf(url, "create_targetings", { items }, tokenOf(name))).runId;
  };
  const rest = (url: string, name: string, runId: string) => restOf(url, runId, 120_000, tokenOf(name));
  return { service, store, settings, begin, rest };
}

test("callers of one project have one request each in turn, however many runs one of them has", async () => {
  const callers = ["anna", "ben"] as const;
  const { service, store, settings, begin, rest } = await shared(
    ["shop"],
    callers.map((one) => [one, "shop"]),
  );
  const replica = await startReplica({ ...settings, TARGETING_MCP_DRIVE: "off" });
  await service.faults({ kind: "slow", delayMs: 150, on: "write", probability: 1 });
  const many: string[] = [];
  for (let run = 0; run < 4; run += 1) many.push(await begin(replica.url, "anna", 6, `run ${run}`));
  const single = await begin(replica.url, "ben", 6, "the other");
  await startWorker(settings);
  expect(await rest(replica.url, "ben", single)).toMatchObject({ status: "succeeded" });
  for (const runId of many) expect(await rest(replica.url, "anna", runId)).toMatchObject({ status: "succeeded" });
  // Before a request is sent, it is announced in an entry. The first two entries of a run are its plan.
  const query =
    "select r.caller from targeting_mcp.entry e join targeting_mcp.run r on r.id = e.run where e.seq > 1 order by e.at";
  const order = (await statement(store, query)).rows
    .map(({ caller }) => (String(caller).includes("ben") ? "b" : "a"))
    .join("");
  const [, between = ""] = /(b.*b)/.exec(order) ?? [];
  process.stdout.write(`${order}\n`);
  expect(between.length).toBeGreaterThanOrEqual(9);
  // An answer and the next announcement may be in one entry, so up to three entries of one caller can follow each
  // other.
  expect(between).not.toMatch(/aaaa|bbb/);
});

test("a process writes to as many projects at a time as it may, and another one takes the rest", async () => {
  const names = ["one", "two", "three"];
  const { service, store, settings, begin, rest } = await shared(
    names,
    names.map((name) => [name, name]),
  );
  await service.faults({ kind: "slow", delayMs: 400, on: "write", probability: 1 });
  const narrow = { ...settings, TARGETING_MCP_PARALLEL_PROJECTS: "1" };
  const replica = await startReplica(narrow);
  const runs = [];
  for (const name of names) runs.push({ name, runId: await begin(replica.url, name, 4, name) });
  await startWorker(narrow);
  for (const { name, runId } of runs)
    expect(await rest(replica.url, name, runId)).toMatchObject({ status: "succeeded" });
  // The time from the first to the last request that each process sent for a project. These times never overlap for two
  // projects.
  const query = `
    with wrote as (
      select l.worker, r.project, min(e.at) as first, max(e.at) as last
      from targeting_mcp.run r join targeting_mcp.lease l on l.name = 'run:' || r.id
      join targeting_mcp.entry e on e.run = r.id and e.epoch = l.epoch and e.seq > 1 group by 1, 2
    )
    select (select count(distinct worker)::int from wrote) as workers, (select count(*)::int from wrote) as runs,
      (select count(*)::int from wrote a join wrote b on a.worker = b.worker and a.project < b.project
       and a.first <= b.last and b.first <= a.last) as overlaps`;
  expect((await statement(store, query)).rows).toEqual([{ workers: 2, runs: 3, overlaps: 0 }]);
});
