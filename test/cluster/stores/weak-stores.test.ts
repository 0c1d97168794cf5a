import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import * as z from "zod";
import { openDatabase } from "../../../src/runs/postgres/database.ts";
import { startCommand } from "../../support/server-process.ts";
import { closedPort } from "../../support/stub-server.ts";
import { killAll, startMember, startReplica } from "../cluster.ts";
import { statement, type TestPostgres, testPostgres } from "../postgres.ts";
import { transactionPooler } from "./pooler.ts";

let postgres: TestPostgres;
let weak: TestPostgres;
beforeAll(async () => {
  postgres = await testPostgres();
  weak = await testPostgres({ fsync: "off", full_page_writes: "off" });
}, 120_000);
afterEach(killAll);
afterAll(() => Promise.all([postgres.stop(), weak.stop()]));

const PASSWORD = "a-word-that-nobody-may-see";
const ROLE = "the_role_of_runs";
const SANDBOX = { TARGETING_MCP_MODE: "sandbox" } as const;

const diagnosis = z.looseObject({
  ok: z.boolean(),
  checks: z.array(
    z.looseObject({ about: z.string(), state: z.string(), found: z.string(), remedy: z.string().optional() }),
  ),
  store: z.strictObject({
    kind: z.enum(["files", "postgres"]),
    ok: z.boolean(),
    server: z.string().optional(),
    tables: z
      .strictObject({
        found: z.number(),
        wanted: z.number(),
        runs: z.number(),
        bytes: z.record(z.string(), z.number()),
      })
      .optional(),
    problems: z.array(z.string()),
  }),
});

async function doctor(store: string, more: Readonly<Record<string, string>> = {}) {
  const command = startCommand(["doctor", "--json"], { ...SANDBOX, TARGETING_MCP_STORE: store, ...more });
  const { code } = await command.exited;
  const text = command.lines.join("\n") + command.stderr();
  expect(text).not.toContain(PASSWORD);
  expect(text).not.toContain(ROLE);
  const found = diagnosis.parse(JSON.parse(command.lines.join("\n")));
  expect({ code, ok: found.ok }).toEqual({ code: found.store.ok ? 0 : 1, ok: found.store.ok });
  return { ...found, notes: found.checks.filter(({ about, state }) => about === "store" && state === "note") };
}

/** Returns the address with which a role that is not a superuser connects to a new database. */
async function asRole(server: TestPostgres, ...statements: readonly string[]): Promise<string> {
  const url = await server.database();
  const name = new URL(url).pathname.slice(1);
  await statement(url, `drop owned by ${ROLE}`).catch(() => undefined);
  for (const one of [`drop role if exists ${ROLE}`, `create role ${ROLE} login`]) await statement(url, one);
  onTestFinished(async () => {
    await statement(url, `drop owned by ${ROLE} cascade`);
    await statement(url, `drop role ${ROLE}`);
  });
  await statement(url, `grant create on database ${name} to ${ROLE}`);
  for (const one of statements) await statement(url, one.replaceAll("DATABASE", name));
  const { host, pathname } = new URL(url);
  return `postgres://${ROLE}:${PASSWORD}@${host}${pathname}`;
}

async function migrated(url: string): Promise<string> {
  expect(await startMember(["migrate"], { ...SANDBOX, TARGETING_MCP_STORE: url }).exited).toBe(0);
  return url;
}

/** Returns statements that create functions with names of PostgreSQL's own, which the role finds before those. */
function withOwn(...functions: readonly string[]): readonly string[] {
  return [
    "create schema own",
    `grant usage on schema own to ${ROLE}`,
    ...functions.map((one) => `create function own.${one}`),
    `alter role ${ROLE} set search_path = own, pg_catalog`,
  ];
}

test("doctor tells of the store, its sizes, and the runs in the state folder, and never of its user", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "targeting-mcp-state-"));
  for (const id of ["01J0000000000000000000000A", "01J0000000000000000000000B"])
    mkdirSync(join(stateDir, "runs", id), { recursive: true });
  const found = await doctor(await migrated(await asRole(postgres)), { TARGETING_MCP_STATE_DIR: stateDir });
  expect(found.store).toMatchObject({
    kind: "postgres",
    ok: true,
    tables: { found: 1, wanted: 1, runs: 0 },
    problems: [],
  });
  expect(found.store.server).toMatch(/^PostgreSQL \d+/);
  expect(found.store.tables?.bytes).toMatchObject({ run: expect.any(Number), entry: expect.any(Number) });
  expect(found.notes.map(({ found }) => found)).toEqual([`not in the database: 2 runs in ${stateDir}`]);
  const files = startCommand(["doctor", "--json"], { ...SANDBOX, TARGETING_MCP_STATE_DIR: stateDir });
  await files.exited;
  expect(diagnosis.parse(JSON.parse(files.lines.join("\n"))).store).toEqual({ kind: "files", ok: true, problems: [] });
});

test("doctor and the start name weak settings, and commits are durable all the same", async () => {
  const url = await asRole(weak, `alter role ${ROLE} set synchronous_commit = off`);
  await migrated(url);
  const names = ["fsync", "full_page_writes", "synchronous_commit"];
  const found = await doctor(url);
  expect(found.notes.map(({ found }) => found.split(" ")[0])).toEqual(names);
  expect(found.store.problems).toHaveLength(3);
  const replica = await startReplica({ ...SANDBOX, TARGETING_MCP_STORE: url });
  const warned = replica
    .stderr()
    .split("\n")
    .filter((line) => line.includes('"level":"warn"'));
  for (const name of names) expect(warned.filter((line) => line.includes(`"${name} is off`))).toHaveLength(1);
  const database = openDatabase({ url, connections: 2 });
  const show = "select current_setting('synchronous_commit') as is";
  expect(await database.rows(show)).toEqual([{ is: "on" }]);
  await database.close();
  // Behind a pooler, the next transaction may have another session, in which the setting is off. So each append sets
  // it.
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query("begin");
  expect((await client.query(show)).rows).toEqual([{ is: "off" }]);
  await client.query("select targeting_mcp.append('r', 'run:r', gen_random_uuid(), 0, null, null, null, '6 s')");
  expect((await client.query(show)).rows).toEqual([{ is: "on" }]);
  await client.end();
});

test("an asynchronous standby is named, also to a role that may not see which standbys are synchronous", async () => {
  const url = await migrated(await asRole(postgres));
  const replication = { connectionString: await postgres.database(), replication: "true" };
  const standby = new pg.Client(replication);
  standby.on("error", () => undefined);
  await standby.connect();
  const [{ xlogpos = "" } = {}] = (await standby.query<{ xlogpos: string }>("IDENTIFY_SYSTEM")).rows;
  void standby.query(`START_REPLICATION PHYSICAL ${xlogpos}`).catch(() => undefined);
  const counted = "select count(*)::int as n from pg_stat_replication";
  await expect.poll(async () => (await statement(url, counted)).rows).toEqual([{ n: 1 }]);
  const { notes } = await doctor(url);
  expect(notes.map(({ found }) => found)).toEqual([expect.stringContaining("asynchronous")]);
  Reflect.get(standby, "connection").stream.destroy();
  await expect.poll(async () => (await statement(url, counted)).rows).toEqual([{ n: 0 }]);
});

test("a pooler in transaction mode is named, and leases then go by time alone", async () => {
  const url = await migrated(await postgres.database());
  const pooled = await transactionPooler(url);
  const { store } = await doctor(pooled);
  expect(store).toMatchObject({ ok: true, problems: [expect.stringContaining("a pooler in transaction mode")] });
  expect((await doctor(pooled, { TARGETING_MCP_STORE_LISTEN: url })).store.problems).toEqual([]);
  const settings = { ...SANDBOX, TARGETING_MCP_SANDBOX_URL: await closedPort(), TARGETING_MCP_STORE: pooled };
  await startMember(["worker"], settings).logged("driving");
  await startMember(["worker"], { ...settings, TARGETING_MCP_STORE_LISTEN: url }).logged("driving");
  const numbers = await statement(url, "select sign(number)::int as sign from targeting_mcp.worker order by 1");
  expect(numbers.rows).toEqual([{ sign: -1 }, { sign: 1 }]);
  // Other processes do not take the leases of such a process before they end, even if it shows no sign of life.
  await statement(url, "select targeting_mcp.take('l', -7, gen_random_uuid(), '1 minute')");
  await statement(url, "select targeting_mcp.take('m', 7000, gen_random_uuid(), '1 minute')");
  const take = async (name: string) =>
    (await statement(url, `select * from targeting_mcp.take('${name}', 8, gen_random_uuid(), '1 minute')`)).rows.length;
  await expect.poll(() => take("m"), { timeout: 20_000 }).toBe(1);
  expect(await take("l")).toBe(0);
});

test.each([
  ["is away", async () => `postgres://${ROLE}:${PASSWORD}@${(await closedPort()).slice(7)}/runs`, /cannot be reached/],
  ["does not let the user in", () => asRole(postgres, `alter role ${ROLE} nologin`), /does not let this user in/],
  ["has no tables", () => asRole(postgres), /no tables yet/],
  [
    "has tables of a much newer version",
    async () => {
      const url = await migrated(await asRole(postgres));
      await statement(url, "insert into targeting_mcp.migration values (2), (3)");
      return url;
    },
    /newer version 3;/,
  ],
  [
    "gives no right to the tables",
    async () => {
      const url = await asRole(postgres);
      const { host, pathname } = new URL(url);
      await migrated(`postgres://tester@${host}${pathname}`);
      return url;
    },
    /permission denied for schema/,
  ],
  [
    "gives too few rights on the tables",
    async () => {
      const url = await asRole(postgres);
      const { host, pathname } = new URL(url);
      const owner = await migrated(`postgres://tester@${host}${pathname}`);
      await statement(owner, `grant usage on schema targeting_mcp to ${ROLE}`);
      await statement(owner, `grant all on all tables in schema targeting_mcp to ${ROLE}`);
      await statement(owner, `revoke delete on targeting_mcp.run from ${ROLE}`);
      return url;
    },
    /lacks rights on run, worker_number$/,
  ],
  [
    "is older than PostgreSQL 14",
    async () => {
      const old =
        "select case $1 when 'server_version_num' then '130012' when 'server_version' then '13.12' else pg_catalog.current_setting($1) end";
      return migrated(await asRole(postgres)).then(async (url) => {
        const { host, pathname } = new URL(url);
        const owner = `postgres://tester@${host}${pathname}`;
        for (const one of withOwn(`current_setting(text) returns text language sql as $$ ${old} $$`))
          await statement(owner, one);
        return url;
      });
    },
    /it is PostgreSQL 13\.12/,
  ],
])("a store that %s: doctor and the start end with 1 and say so", async (_, make, words) => {
  const url = await make();
  const { store, checks } = await doctor(url);
  expect(store.ok).toBe(false);
  expect(store.problems[0]).toMatch(words);
  expect(checks).toContainEqual(
    expect.objectContaining({ about: "store", state: "problem", found: store.problems[0] }),
  );
  if (String(words).includes("reached")) return;
  const http = startMember(["http", "--port", "0", "--no-migrate"], { ...SANDBOX, TARGETING_MCP_STORE: url });
  expect(await http.exited).toBe(1);
  expect(http.stderr()).toMatch(new RegExp(words.source.replace("$", "")));
  expect(http.stderr()).not.toMatch(new RegExp(`${ROLE}|${PASSWORD}`));
});

test("a role that may not make the tables is refused at the start", async () => {
  const url = await asRole(postgres, `revoke create on database DATABASE from ${ROLE}`);
  const http = startMember(["http", "--port", "0"], { ...SANDBOX, TARGETING_MCP_STORE: url });
  expect(await http.exited).toBe(1);
  expect(http.stderr()).toMatch(/permission denied for database .*create the schema targeting_mcp/);
});

test("a role that owns the schema makes the tables, although it may make no other schema", async () => {
  const grants = [
    `revoke create on database DATABASE from ${ROLE}`,
    `create schema targeting_mcp authorization ${ROLE}`,
  ];
  const url = await migrated(await asRole(postgres, ...grants));
  await startReplica({ ...SANDBOX, TARGETING_MCP_STORE: url });
});

test("a lease whose end lies far ahead, since the server's clock was set back, is taken over; who asks again has it", async () => {
  const url = await migrated(await postgres.database());
  const one = "11111111-1111-4111-8111-111111111111";
  const take = async (token: string) =>
    (await statement(url, `select taken_over, was_unsettled from targeting_mcp.take('l', -7, '${token}', '6 s')`)).rows;
  expect(await take(one)).toEqual([{ taken_over: false, was_unsettled: false }]);
  expect(await take(one)).toEqual([{ taken_over: false, was_unsettled: false }]);
  const other = "22222222-2222-4222-8222-222222222222";
  expect(await take(other)).toEqual([]);
  await statement(url, "update targeting_mcp.lease set until = clock_timestamp() + interval '1 hour'");
  expect(await take(other)).toEqual([{ taken_over: true, was_unsettled: true }]);
  expect(await take(one)).toEqual([]);
});

test("a statement that the server gives up, or has no room for, is made again", async () => {
  const url = await asRole(postgres, `alter role ${ROLE} set statement_timeout = '200ms'`);
  await migrated(url);
  const holder = new pg.Client({ connectionString: url });
  await holder.connect();
  await holder.query("select pg_advisory_lock(1)");
  const database = openDatabase({ url, connections: 2 });
  const waiting = database.rows("select pg_advisory_lock(1) is null as is_null");
  const counted = "select count(*)::int as n from pg_stat_activity where query like '%pg_advisory_lock(1) is null%'";
  await expect.poll(async () => (await statement(url, counted)).rows[0]?.n).toBeGreaterThan(1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  await holder.end();
  expect(await waiting).toEqual([{ is_null: false }]);
  await database.close();
});

test("a standby is refused, and a start waits until it becomes the primary", async () => {
  const pair = await testPostgres();
  onTestFinished(() => pair.stop());
  const url = await migrated(await pair.database());
  await pair.cutOffStandby();
  await pair.failOver("standby");
  const { store } = await doctor(url);
  expect(store).toMatchObject({ ok: false, problems: [expect.stringContaining("it is a standby")] });
  const worker = startMember(["worker"], { ...SANDBOX, TARGETING_MCP_STORE: url });
  await worker.logged("waiting for the store");
  await statement(url, "select pg_promote()");
  await worker.logged("driving");
});
