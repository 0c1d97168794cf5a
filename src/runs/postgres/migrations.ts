import { RunStoreError } from "../store.ts";
import { type Database, hangUp } from "./database.ts";

/** The schema of all tables. Every statement names it, so the search path of the database role does not matter. */
const SCHEMA = "targeting_mcp";

const FIRST = `
create sequence targeting_mcp.worker_number as int cycle;

-- A process of the cluster. It is alive for as long as it holds the advisory lock of its number.
create table targeting_mcp.worker (
  number int primary key,
  name text not null,
  seen_at timestamptz not null,
    -- The projects whose orphaned runs it continues. An entry "!RUN" names a run that it may not execute.
  projects text[] not null
);

create table targeting_mcp.lease (
  name text collate "C" primary key,
    -- Each time a process takes the lease, the epoch increases and the token changes.
  epoch bigint not null,
  token uuid not null,
  worker int not null,
  until timestamptz not null,
  released boolean not null,
    -- Whether an earlier holder could still send requests when the lease was taken or released.
  unsettled boolean not null,
    -- How many times other processes have asked for the lease.
  asked bigint not null default 0
) with (fillfactor = 70);

create table targeting_mcp.run (
  id text collate "C" primary key,
  project text not null,
  caller text not null,
  environment text not null,
  fingerprint text not null,
  header text not null,
    -- The status and the record change only together with the version (compare-and-set).
  status text not null default 'planning',
  version bigint not null default 0,
    -- Who wrote this version. It allows an update to be repeated if its answer was lost.
  version_by uuid,
  record text,
    -- The number of journal entries, without those that previous executors added late, and the number of these.
  seq bigint not null default 0,
  late int not null default 0,
  bytes bigint not null default 0,
  changes bigint not null default 0,
  changed_at timestamptz not null default clock_timestamp(),
    -- Whether the run may be unfinished.
  open boolean not null default true
) with (fillfactor = 70);
create index run_of_caller on targeting_mcp.run (caller, id desc);
create index run_of_call on targeting_mcp.run (fingerprint, id desc);
create index run_open on targeting_mcp.run (id desc) where open;
create index run_left on targeting_mcp.run (project, id) where status = 'running';

create table targeting_mcp.entry (
  run text collate "C" not null references targeting_mcp.run on delete cascade,
  seq bigint not null,
  late int not null,
  epoch bigint not null,
  at timestamptz not null default clock_timestamp(),
  body bytea not null,
  primary key (run, seq, late)
);

-- The current version of each part of a run.
create table targeting_mcp.part (
  run text collate "C" not null references targeting_mcp.run on delete cascade,
  name text not null,
  version uuid not null,
  primary key (run, name)
);
create table targeting_mcp.piece (
  run text collate "C" not null references targeting_mcp.run on delete cascade,
  version uuid not null,
  n int not null,
  bytes bytea not null,
  primary key (run, version, n)
);

create table targeting_mcp.stop_wish (
  run text collate "C" not null references targeting_mcp.run on delete cascade,
  id uuid not null,
  primary key (run, id)
);

create table targeting_mcp.suite (
  caller text not null,
  id text not null,
  body text not null,
  kept_at timestamptz not null default clock_timestamp(),
  primary key (caller, id)
);
create table targeting_mcp.yes (
  id text primary key,
  body text not null default '',
  taken_by uuid not null,
  taken_at timestamptz not null default clock_timestamp()
);

create table targeting_mcp.name (
  project text not null,
  id text not null,
  name text not null,
  seen_at bigint not null,
  primary key (project, id)
);
create index name_seen on targeting_mcp.name (project, seen_at desc);

-- Context IDs that were read, with the record of their option at that time.
create table targeting_mcp.content (
  project text not null,
  option text not null,
  record text not null,
  ids text not null,
  kept_at timestamptz not null default clock_timestamp(),
  primary key (project, option)
);
create index content_kept on targeting_mcp.content (kept_at);

create table targeting_mcp.audit (
  n bigint generated always as identity primary key,
  at timestamptz not null default clock_timestamp(),
  line text not null
);
create table targeting_mcp.setting (name text primary key, value text not null);

-- When each timeline of the database began. A new one begins when another database server becomes the primary.
create table targeting_mcp.timeline (id text primary key, since timestamptz not null default clock_timestamp());

-- Returns whether another database server became the primary just now. It may lack the last confirmed changes, such as
-- renewals of leases. So for some seconds, no lease that seems expired is taken over.
create function targeting_mcp.is_new() returns boolean language plpgsql as $$
declare
  mine text := left(pg_walfile_name(pg_current_wal_lsn()), 8);
begin
  insert into targeting_mcp.timeline (id, since)
    select mine, case when exists (select from targeting_mcp.timeline) then clock_timestamp() else '-infinity' end
    where not exists (select from targeting_mcp.timeline where id = mine) on conflict do nothing;
  return exists (
    select from targeting_mcp.timeline
    where id = mine and since between clock_timestamp() - interval '5 seconds' and clock_timestamp()
  );
end $$;

-- Returns whether a process does not seem to live. After a start of the database server, all processes first get time
-- to show that they live. Processes with a number below 0 never can, because a pooler shares their sessions. If the
-- database server seems to have started in the future, its clock was set back, and this wait is skipped.
create function targeting_mcp.is_gone(worker int) returns boolean language sql volatile as $$
  select worker > 0
    and pg_postmaster_start_time() not between clock_timestamp() - interval '5 seconds' and clock_timestamp()
    and pg_try_advisory_xact_lock_shared(1953325936, worker)
$$;

-- Takes a lease. Returns no row while another process holds it. If the previous holder did not release it, that holder may
-- still run. A process that repeats the request because the answer was lost gets the lease that it already holds. If a
-- lease seems to end far in the future, the clock was set back, and the lease can be taken over.
create function targeting_mcp.take(a_name text, a_worker int, a_token uuid, ttl interval)
returns table (new_epoch bigint, taken_over boolean, was_unsettled boolean, asked_before bigint) language plpgsql as $$
declare
  held targeting_mcp.lease;
  is_silent boolean;
begin
  insert into targeting_mcp.lease values (a_name, 1, a_token, a_worker, clock_timestamp() + ttl, false, false)
    on conflict do nothing;
  if found then
    return query select 1::bigint, false, false, 0::bigint;
    return;
  end if;
  select * into held from targeting_mcp.lease where name = a_name for update skip locked;
  if not found then return; end if;
  if held.token = a_token and not held.released then
    return query select held.epoch, held.unsettled, held.unsettled, held.asked;
    return;
  end if;
  is_silent := not held.released
    and (
      held.until not between clock_timestamp() and clock_timestamp() + ttl + interval '1 minute'
      or (held.worker <> a_worker and targeting_mcp.is_gone(held.worker))
    )
    and not targeting_mcp.is_new();
  if not held.released and not is_silent then return; end if;
  update targeting_mcp.lease
    set epoch = epoch + 1, token = a_token, worker = a_worker, until = clock_timestamp() + ttl,
      released = false, unsettled = held.unsettled or is_silent
    where name = a_name;
  return query select held.epoch + 1, is_silent, held.unsettled or is_silent, held.asked;
end $$;

-- Renews a lease. Returns how many times other processes have asked for it. Returns no row if another process holds it.
create function targeting_mcp.renew(a_name text, a_token uuid, ttl interval)
returns table (epoch bigint, asked bigint) language sql as $$
  update targeting_mcp.lease l set until = clock_timestamp() + ttl
    where l.name = a_name and l.token = a_token and not l.released
    returning l.epoch, l.asked
$$;

-- Appends an entry to a journal, and renews the lease of the run and the write lock of its project in the same commit.
-- Refuses a process that has lost one of them, and an entry that is not the next one of the journal. An append may be
-- repeated if its answer was lost.
create function targeting_mcp.append(
  a_run text, a_lease text, a_token uuid, a_seq bigint, a_body bytea, a_turn text, a_turn_token uuid, ttl interval
) returns table (result text, turn_asked bigint, seq_now bigint, stop_asked boolean) language plpgsql as $$
declare
  my_epoch bigint;
  turn_asks bigint := 0;
  found_seq bigint;
    -- Null if nothing is appended.
  is_to_stop boolean;
begin
    -- A pooler can reset the setting of the session, so it is checked here.
  if current_setting('synchronous_commit') = 'off' then perform set_config('synchronous_commit', 'on', true); end if;
  select r.epoch into my_epoch from targeting_mcp.renew(a_lease, a_token, ttl) r;
  if not found then
    return query select 'run lost', 0::bigint, 0::bigint, null::boolean;
    return;
  end if;
  if a_turn is not null then
    select r.asked into turn_asks from targeting_mcp.renew(a_turn, a_turn_token, ttl) r;
    if not found then
      return query select 'turn lost', 0::bigint, 0::bigint, null::boolean;
      return;
    end if;
  end if;
  if a_body is not null then
    update targeting_mcp.run
      set seq = seq + 1, bytes = bytes + length(a_body), changes = changes + 1, changed_at = clock_timestamp()
      where id = a_run and seq = a_seq;
    if not found then
      select seq into found_seq from targeting_mcp.run where id = a_run;
      if found_seq = a_seq + 1 and exists (
        select from targeting_mcp.entry where run = a_run and seq = a_seq and late = 0 and epoch = my_epoch
      ) then
        return query select 'ok', turn_asks, found_seq, null::boolean;
      else
        return query select 'elsewhere', turn_asks, coalesce(found_seq, -1), null::boolean;
      end if;
      return;
    end if;
    insert into targeting_mcp.entry (run, seq, late, epoch, body) values (a_run, a_seq, 0, my_epoch, a_body);
        -- A request to stop locks the row of the run first. So a request that is not seen here is made after this commit.
    is_to_stop := exists (select from targeting_mcp.stop_wish where run = a_run);
  end if;
  return query select 'ok', turn_asks, a_seq + 1, is_to_stop;
end $$;
`;

/** The migrations. A released one is never changed. They only add, so that two versions can use the same tables. */
export const MIGRATIONS: readonly string[] = [FIRST];

const MIGRATING = "1953325936, 0";
/** How long a process waits for another one that migrates, in milliseconds. */
const MIGRATING_MS = 60_000;
/** How long a migration may take, in milliseconds: tables may be large. */
const MIGRATION_MS = 3_600_000;

const THERE = `select to_regnamespace('${SCHEMA}') is not null as schema, to_regclass('${SCHEMA}.migration') is not null as tables`;

const LAST = `select coalesce(max(number), 0) as found from ${SCHEMA}.migration`;

export interface Tables {
  readonly found: number;
  readonly wanted: number;
}

/** Runs the missing migrations in one transaction, which works behind a pooler, too. `found`: the version before. */
export async function migrate(database: Pick<Database, "direct">): Promise<Tables> {
  const client = await database.direct(MIGRATING_MS);
  try {
    await client.query("begin");
    await client.query(`select pg_advisory_xact_lock(${MIGRATING})`);
    // A database role that only owns the schema may not run "create schema if not exists", so this checks first.
    const { rows: there } = await client.query<{ schema: boolean; tables: boolean }>(THERE);
    if (there[0]?.schema !== true) await client.query(`create schema ${SCHEMA}`);
    if (there[0]?.tables !== true) {
      await client.query(
        `create table ${SCHEMA}.migration (number int primary key, at timestamptz not null default now())`,
      );
    }
    const { rows } = await client.query<{ found: number }>(LAST);
    const found = rows[0]?.found ?? 0;
    for (const [place, sql] of MIGRATIONS.entries()) {
      if (place < found) continue;
      const text = `${sql}; insert into ${SCHEMA}.migration values (${place + 1})`;
      const migration = { text, query_timeout: MIGRATION_MS };
      await client.query(migration);
    }
    await client.query("commit");
    return { found, wanted: MIGRATIONS.length };
  } finally {
    hangUp(client);
  }
}

export async function tablesOf(database: Pick<Database, "rows">): Promise<Tables> {
  const wanted = MIGRATIONS.length;
  const [there] = await database.rows<{ is: boolean }>(`select to_regclass('${SCHEMA}.migration') is not null as is`);
  if (there?.is !== true) return { found: 0, wanted };
  const [last] = await database.rows<{ found: number }>(LAST);
  return { found: last?.found ?? 0, wanted };
}

/** Throws a RunStoreError if this version cannot use the tables. Tables of the next version are accepted. */
export function checkTables({ found, wanted }: Tables): void {
  if (found < wanted) {
    const which = found === 0 ? "has no tables yet" : `has tables of version ${found}, but version ${wanted} is needed`;
    throw new RunStoreError(`the database of TARGETING_MCP_STORE ${which}`, "Run targeting-mcp migrate.");
  }
  if (found > wanted + 1) {
    throw new RunStoreError(
      `the tables of TARGETING_MCP_STORE have the newer version ${found}; this server knows version ${wanted}`,
      "Use a newer version of targeting-mcp.",
    );
  }
}
