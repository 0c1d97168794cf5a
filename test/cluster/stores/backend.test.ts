import { readFileSync } from "node:fs";
import pg from "pg";
import { expect, test } from "vitest";
import { duringCall, systemClock } from "../../../src/platform/clock.ts";
import { type Backend, ShareFullError, withShares } from "../../../src/runs/backend.ts";
import { postgresBackend } from "../../../src/runs/postgres/backend.ts";
import { openDatabase } from "../../../src/runs/postgres/database.ts";
import { StoredLease } from "../../../src/runs/postgres/member.ts";
import { migrate } from "../../../src/runs/postgres/migrations.ts";
import { prepareStore } from "../../../src/runs/postgres/start.ts";
import { DamagedRunError, LostEntriesError, RunStoreError } from "../../../src/runs/store.ts";
import { backendContract } from "../../runs/backend-contract.ts";
import { restRun, startRun, summaryOf } from "../../support/records.ts";
import { withPostgres } from "../cluster.ts";

const cluster = withPostgres({ fsync: "off" });

async function migrated(): Promise<string> {
  const url = await cluster.postgres.database();
  const database = openDatabase({ url, connections: 2 });
  await migrate(database);
  await database.close();
  return url;
}

function backendIn(url: string, clock = systemClock): Backend {
  const backend = postgresBackend({ url, connections: 5, clock, keep: { days: 30, runs: 500 } });
  cluster.closing.push(() => backend.close());
  return backend;
}

/** Starts a run and returns its lease. */
async function leaseOfNew(runs: Backend["runs"], runId: string): Promise<StoredLease> {
  const of = { project: "project", caller: "me", environment: "sandbox", createdAt: 7, fingerprint: "same" } as const;
  await runs.create({ runId, kind: "contract", call: {}, ...of });
  await startRun(runs, runId);
  const lease = await runs.lease(runId);
  if (!(lease instanceof StoredLease)) throw new Error("nobody holds it");
  return lease;
}

backendContract("in PostgreSQL", async (clock) => {
  const url = await migrated();
  return [backendIn(url, clock), backendIn(url)];
});

test("more than a thousand unfinished runs all count towards the share of their caller", async () => {
  const url = await migrated();
  const backend = backendIn(url);
  const { runs } = withShares(backend, { bytes: 200_000, dryRuns: 2 });
  const of = { kind: "contract", call: {}, project: "p", caller: "me", environment: "sandbox", createdAt: 7 } as const;
  const first = "01JABCDEFGHJKMNPQRSTVW0000";
  await runs.create({ runId: first, ...of, fingerprint: "first" });
  await runs.parts.keep(first, "input", ["x".repeat(190_000)]);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(
    `insert into targeting_mcp.run (id, project, caller, environment, fingerprint, header)
     select '01JABCDEFGHJKMNPQRSTVW1' || lpad(n::text, 3, '0'), 'p', 'me', 'sandbox', 'more', '{}'
     from generate_series(0, 999) n`,
  );
  await client.end();
  await expect(runs.sizes.checkRoom?.("me", 20_000)).rejects.toThrow(ShareFullError);
});

test("a key for signing can be replaced as the error about another key says", async () => {
  const url = await migrated();
  const start = (key: string) =>
    prepareStore({ url, connections: 2 }, { migrates: false, sealKey: key.repeat(43) }).then(() => "started");
  expect([await start("a"), await start("a")]).toEqual(["started", "started"]);
  const refused = await start("b").catch((thrown: unknown) => thrown);
  const remedy = refused instanceof RunStoreError ? refused.remedy : "";
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(remedy.slice(remedy.indexOf("delete from")));
  await client.end();
  expect(await start("b")).toBe("started");
});

test("a run of a newer version is not read", async () => {
  const { runs } = backendIn(await migrated());
  const runId = "01JABCDEFGHJKMNPQRSTVWXYZ0";
  const of = { project: "project", caller: "me", environment: "sandbox", createdAt: 7, fingerprint: "same" } as const;
  const newer = { version: 2, runId, kind: "contract", call: {}, ...of };
  await runs.create(newer);
  await expect(runs.read(runId)).rejects.toThrow("newer version");
});

test("a run is damaged where its journal does not hold all that was appended to it", async () => {
  const url = await migrated();
  const { runs } = backendIn(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const damages = [
    "delete from targeting_mcp.entry where run = $1",
    "delete from targeting_mcp.entry where run = $1 and seq = 1",
    "update targeting_mcp.entry set body = substr(body, 1, 3) where run = $1 and seq = 0",
  ];
  for (const [at, damage] of [undefined, ...damages].entries()) {
    const runId = `01JABCDEFGHJKMNPQRSTVWXY${at}0`;
    const of = { project: "project", caller: "me", environment: "sandbox", createdAt: 7, fingerprint: "same" } as const;
    await runs.create({ runId, kind: "contract", call: {}, ...of });
    await startRun(runs, runId);
    const lease = await runs.lease(runId);
    if (lease === undefined) throw new Error("nobody holds it");
    const journal = await runs.journal(runId, lease);
    for (const line of ["one", "two"]) {
      journal.append([JSON.stringify({ t: line })]);
      await journal.flush();
    }
    await journal.appendLate([JSON.stringify({ t: "late" })]);
    await journal.close();
    const about = { tool: "some_tool", caller: "me", fingerprint: "same", status: "succeeded", counts: { items: 1 } };
    await restRun(runs, runId, { ...about, startedAt: 7, updatedAt: 8, open: false });
    await lease.release();
    if (damage === undefined) {
      expect(await runs.read(runId)).toMatchObject({ record: { status: "finished" } });
      expect(await summaryOf(runs, runId)).not.toHaveProperty("isDamaged");
      continue;
    }
    await client.query(damage, [runId]);
    await expect(runs.read(runId)).rejects.toThrow(DamagedRunError);
    expect(await summaryOf(runs, runId)).toMatchObject({ isDamaged: true });
  }
  await client.end();
});

test("entries that a store has lost are noticed by the next flush, whoever had them written", async () => {
  const url = await migrated();
  const { runs } = backendIn(url);
  const runId = "01JABCDEFGHJKMNPQRSTVWXYZ1";
  const lease = await leaseOfNew(runs, runId);
  const journal = await runs.journal(runId, lease);
  const added = (text: string): void => journal.append([JSON.stringify({ t: text })]);
  added("one");
  await journal.flush();
  // Simulates a standby that became the primary without the last commit.
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("delete from targeting_mcp.entry where run = $1", [runId]);
  await client.query("update targeting_mcp.run set seq = 0, bytes = 0 where id = $1", [runId]);
  await client.end();
  added("two");
  await journal.write();
  await expect(journal.flush()).rejects.toThrow(LostEntriesError);
  // Nothing may be sent any more, even if the first error was ignored.
  await expect(journal.intend(lease)).rejects.toThrow(LostEntriesError);
  await journal.appendLate(['{"t":"stopped"}']);
  await expect(journal.close()).rejects.toThrow(LostEntriesError);
  const lines: string[] = [];
  for await (const line of (await runs.read(runId))?.entries ?? []) lines.push(line);
  expect(lines).toEqual(['{"t":"stopped"}']);
  await lease.release();
});

test("who asks to stop a run is answered after an append that did not see it is durable", async () => {
  const url = await migrated();
  const { runs } = backendIn(url);
  const runId = "01JABCDEFGHJKMNPQRSTVWXYZ0";
  const lease = await leaseOfNew(runs, runId);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  const append = "select stop_asked from targeting_mcp.append($1, $2, $3, 0, 'intent', null, null, '6 s')";
  const { rows } = await client.query(append, [runId, lease.name, lease.token]);
  expect(rows).toEqual([{ stop_asked: false }]);
  const events: string[] = [];
  const asking = runs.stops.ask(runId).then(() => events.push("asked"));
  const waiting = async () => {
    const { rows } = await client.query("select count(*)::int from pg_stat_activity where wait_event_type = 'Lock'");
    return rows;
  };
  await expect.poll(waiting).toEqual([{ count: 1 }]);
  events.push("durable");
  await client.query("commit");
  await asking;
  expect(events).toEqual(["durable", "asked"]);
  await client.end();
  await lease.release();
});

test("the statement of the guide for a restored database stops the runs that were in progress, before they send more", async () => {
  const url = await migrated();
  const { runs } = backendIn(url);
  const [going, waiting] = ["01JABCDEFGHJKMNPQRSTVWXYZ3", "01JABCDEFGHJKMNPQRSTVWXYZ4"];
  const lease = await leaseOfNew(runs, going);
  const of = { project: "project", caller: "me", environment: "sandbox", createdAt: 7, fingerprint: "other" } as const;
  await runs.create({ runId: waiting, kind: "contract", call: {}, ...of });
  const guide = readFileSync("docs/guides/run-on-several-machines.md", "utf8");
  const [, sql = ""] = /```sql\n(.+?)```/s.exec(guide) ?? [];
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query(sql);
  await client.end();
  expect(await runs.stops.asked(going)).toHaveLength(1);
  expect(await runs.stops.asked(waiting)).toEqual([]);
  const journal = await runs.journal(going, lease);
  journal.append([JSON.stringify({ t: "intent" })]);
  expect(await journal.intend(lease)).toMatchObject({ stopAsked: true });
  await journal.close();
});

test("a lease that is given only after its call was answered is released", async () => {
  const url = await migrated();
  const { runs } = backendIn(url);
  const runId = "01JABCDEFGHJKMNPQRSTVWXYZ5";
  const of = { project: "project", caller: "me", environment: "sandbox", createdAt: 7, fingerprint: "late" } as const;
  await runs.create({ runId, kind: "contract", call: {}, ...of });
  // The first lease also gives the process its number.
  await (await runs.lease(runId))?.release();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  // The database holds the next lease until this transaction ends.
  await client.query("begin; lock table targeting_mcp.lease in exclusive mode");
  const until = systemClock.monotonic() + 200;
  const starting = duringCall(until, () => {
    runs.mention?.(runId);
    return runs.lease(runId);
  });
  await expect(starting).rejects.toThrow(`run ${runId} may have started`);
  await client.query("commit");
  const released = async (): Promise<unknown> =>
    (await client.query("select epoch, released from targeting_mcp.lease where name = $1", [`run:${runId}`])).rows;
  await expect.poll(released).toEqual([{ epoch: "2", released: true }]);
  const next = await runs.lease(runId);
  expect(next?.isTakenOver).toBe(false);
  await next?.release();
  await client.end();
});

test("a call takes over the turn of a dead process, however often callers gave up before", async () => {
  const url = await migrated();
  const { runs } = backendIn(url);
  await runs.withCallLock("same", async () => "made");
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const released = async () => (await client.query("select released from targeting_mcp.lease")).rows;
  await expect.poll(released).toEqual([{ released: true }]);
  // Simulates a process that died with the lease, and a next holder that released it before the dead process's last
  // request was certainly over.
  await client.query("update targeting_mcp.lease set unsettled = true");
  // Shorter than the call would have to wait for that request.
  const until = systemClock.monotonic() + 2000;
  expect(await duringCall(until, () => runs.withCallLock("same", async () => "made again"))).toBe("made again");
  await client.end();
});
