import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { MIGRATIONS } from "../../src/runs/postgres/migrations.ts";
import {
  call,
  type Member,
  reportOf,
  restOf,
  runOf,
  startMember,
  startReplica,
  startWorker,
  withService,
} from "./cluster.ts";
import { statement } from "./postgres.ts";

const cluster = withService({ TARGETING_MCP_WAIT_MS: "1500" });

/** Updates the tables, and then makes them look like those of a later version that only adds to them. */
async function tablesNewerBy(versions: number): Promise<void> {
  expect(await startMember(["migrate"], cluster.settings).exited).toBe(0);
  for (let number = MIGRATIONS.length + 1; number <= MIGRATIONS.length + versions; number += 1) {
    await statement(
      cluster.store,
      `alter table targeting_mcp.run add added_${number} text; create table targeting_mcp.added_${number} (n int);
       insert into targeting_mcp.migration values (${number})`,
    );
  }
}

/** Returns groups that need this many requests. */
function groups(requests: number, prefix = "Group") {
  return Array.from({ length: 150 * requests }, (_, at) => {
    const name = `${prefix} ${at}`;
    return { name, type: "collection", contexts: [name] };
  });
}

/** Stops a process with SIGTERM, as platforms do. Returns its exit code and how many milliseconds it took to end. */
async function ended(member: Member): Promise<{ readonly code: number | null; readonly ms: number }> {
  const begin = Date.now();
  member.child.kill("SIGTERM");
  return { code: await member.exited, ms: Date.now() - begin };
}

test("tables of the next version work, those of the one after it end the start with 1", async () => {
  await tablesNewerBy(1);
  const replica = await startReplica(cluster.settings);
  await startReplica(cluster.settings, "--no-migrate");
  await startWorker(cluster.settings);
  const items = groups(2);
  const targetingId = await cluster.service.targeting("Newer");
  const { runId } = await runOf(replica.url, "bulk_add_options", { targetingId, items });
  expect(await restOf(replica.url, runId)).toMatchObject({ status: "succeeded", counts: { succeeded: items.length } });
  const migrating = startMember(["migrate"], cluster.settings);
  expect(await migrating.exited).toBe(0);
  await statement(cluster.store, `insert into targeting_mcp.migration values (${MIGRATIONS.length + 2})`);
  const commands = [["http", "--port", "0"], ["worker"], ["http", "--port", "0", "--no-migrate"]];
  for (const refused of commands.map((args) => startMember(args, cluster.settings))) {
    expect(await refused.exited).toBe(1);
    expect(refused.stderr()).toContain("have the newer version 3");
  }
});

test("tables that are older, or not there, end the start with 1 under --no-migrate, which names migrate", async () => {
  const missing = [
    ["http", "--port", "0", "--no-migrate"],
    ["worker", "--no-migrate"],
  ];
  for (const refused of missing.map((args) => startMember(args, cluster.settings))) {
    expect(await refused.exited).toBe(1);
    expect(refused.stderr()).toContain("targeting-mcp migrate");
  }
  expect(await startMember(["migrate"], cluster.settings).exited).toBe(0);
  await statement(cluster.store, "delete from targeting_mcp.migration");
  const older = startMember(["worker", "--no-migrate"], cluster.settings);
  expect(await older.exited).toBe(1);
  expect(older.stderr()).toContain("targeting-mcp migrate");
});

test("processes that are replaced one after the other while runs go on: exit 0 in time, nothing lost or doubled", async () => {
  await cluster.service.faults({ kind: "slow", delayMs: 400, on: "write", probability: 1 });
  let members: readonly (Member & { readonly url?: string })[] = [
    await startReplica(cluster.settings),
    await startReplica(cluster.settings),
    await startWorker(cluster.settings),
  ];
  const [of, items] = [await cluster.service.targeting("Replaced"), groups(25)];
  const { runId } = await runOf(members[0]?.url ?? "", "bulk_add_options", { targetingId: of, items });
  const times: number[] = [];
  for (const [at, member] of members.entries()) {
    const fresh = await (member.url === undefined ? startWorker(cluster.settings) : startReplica(cluster.settings));
    members = members.with(at, fresh);
    await delay(300);
    const { code, ms } = await ended(member);
    expect({ code, stderr: member.stderr().includes('"level":"error"') }).toEqual({ code: 0, stderr: false });
    expect(ms).toBeLessThan(25_000);
    times.push(ms);
  }
  const url = members[0]?.url ?? "";
  expect(await restOf(url, runId)).toMatchObject({ status: "succeeded", counts: { succeeded: items.length } });
  expect([...(await cluster.service.options(of))].sort()).toEqual(items.map(({ name }) => name).sort());
  // None of these processes waits for an answer.
  const idle = await Promise.all(members.map((member) => ended(member)));
  process.stdout.write(`SIGTERM in the middle of runs: ${times.join(", ")} ms; idle: ${idle.map(({ ms }) => ms)} ms\n`);
  for (const { code, ms } of idle) {
    expect(code).toBe(0);
    expect(ms).toBeLessThan(3000);
  }
});

test("a process that only waits for others, or for the service's lock, ends within three seconds", async () => {
  const [one, other] = [await startReplica(cluster.settings), await startReplica(cluster.settings)];
  const targetingId = await cluster.service.targeting("Locked");
  await cluster.service.faults({ kind: "busy", retryAfterMs: 2000, on: "write", probability: 1 });
  const begun = await Promise.all(
    [one, other].map(({ url }, at) => call(url, "bulk_add_options", { targetingId, items: groups(1, `Of ${at}`) })),
  );
  expect(begun.map((answer) => reportOf(answer).status)).toEqual(["running", "running"]);
  for (const { code, ms } of await Promise.all([one, other].map((member) => ended(member)))) {
    expect(code).toBe(0);
    expect(ms).toBeLessThan(3000);
  }
});
