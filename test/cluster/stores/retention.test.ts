import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.ts";
import type { Retention } from "../../../src/runs/files/run-store.ts";
import { postgresBackend } from "../../../src/runs/postgres/backend.ts";
import { openDatabase } from "../../../src/runs/postgres/database.ts";
import { migrate } from "../../../src/runs/postgres/migrations.ts";
import type { RunHeader } from "../../../src/runs/store.ts";
import { ulidSource } from "../../../src/spec/names-and-contexts.ts";
import { restRun, startRun } from "../../support/records.ts";
import { withPostgres } from "../cluster.ts";
import { statement } from "../postgres.ts";

const DAY_MS = 86_400_000;

const cluster = withPostgres({ fsync: "off" });

async function storeKeeping(keep: Retention, parallelProjects = 50) {
  const url = await cluster.postgres.database();
  const database = openDatabase({ url, connections: 2 });
  await migrate(database);
  await database.close();
  const backend = postgresBackend({ url, connections: 6, clock: systemClock, keep, parallelProjects });
  cluster.closing.push(() => backend.close());
  return { url, runs: backend.runs };
}

async function* pieces(text: string): AsyncGenerator<string> {
  yield text;
}

/** Stores runs with journals and parts that look as if they had stopped some time ago. */
function keeper({ runs, url }: Awaited<ReturnType<typeof storeKeeping>>) {
  let number = 0;
  return {
    async run(
      agoMs: number,
      more: Partial<RunHeader> & { readonly removed?: true; readonly open?: true } = {},
    ): Promise<string> {
      const at = Date.now() - agoMs;
      const { removed, open = false, ...given } = more;
      number += 1;
      const header: RunHeader = {
        ...{ runId: ulidSource(() => at, Math.random)(), kind: "test", call: { tool: "some_tool" } },
        ...{ project: "shop", caller: "me", environment: "live", createdAt: at, fingerprint: `call ${number}` },
        ...given,
      };
      const { runId, caller, fingerprint } = header;
      await runs.create(header);
      await startRun(runs, runId);
      const lease = await runs.lease(runId);
      if (lease === undefined) throw new Error("no other process has it");
      const journal = await runs.journal(runId, lease);
      journal.append(['{"t":"one"}']);
      await journal.close();
      await runs.parts.keep(runId, "input", pieces("the rows of the call"));
      await runs.parts.keep(runId, "former", pieces("how it was before"));
      if (removed) await runs.parts.keep(runId, "removed", pieces("what was taken away"));
      const counts = { items: 1, pending: open ? 1 : 0 };
      const status = open ? "interrupted" : "succeeded";
      await restRun(runs, runId, {
        tool: "some_tool",
        caller,
        fingerprint,
        status,
        counts,
        startedAt: at,
        updatedAt: at,
        open,
      });
      await lease.release();
      return runId;
    },
    /** Returns how many rows each table has of a run. */
    async rowsOf(runId: string): Promise<Readonly<Record<string, number>>> {
      const tables = ["entry", "part", "piece"];
      const counted = tables.map(
        (table) => `(select count(*)::int from targeting_mcp.${table} where run = '${runId}') as ${table}`,
      );
      return (await statement(url, `select ${counted.join(", ")}`)).rows[0];
    },
    left: async () => (await statement(url, "select id from targeting_mcp.run order by id")).rows.map(({ id }) => id),
  };
}

describe("retention", () => {
  test("by days: old runs go with all that belongs to them; open ones, and the way back of kept ones, stay", async () => {
    const store = await storeKeeping({ days: 30, runs: 500 });
    const kept = keeper(store);
    const old = await kept.run(31 * DAY_MS);
    const oldHolding = await kept.run(31 * DAY_MS, { removed: true });
    const open = await kept.run(40 * DAY_MS, { open: true });
    const recent = await kept.run(29 * DAY_MS, { removed: true });
    await store.runs.retention.tidy();
    expect(await kept.left()).toEqual([open, recent]);
    for (const gone of [old, oldHolding]) expect(await kept.rowsOf(gone)).toEqual({ entry: 0, part: 0, piece: 0 });
    expect(await kept.rowsOf(recent)).toEqual({ entry: 1, part: 3, piece: 3 });
    expect(await kept.rowsOf(open)).toEqual({ entry: 1, part: 2, piece: 2 });
  });

  test("by bytes: the newest runs of a caller stay, and those that are open or hold what was taken away", async () => {
    const store = await storeKeeping({ days: 30, runs: 500, bytes: 600 });
    const kept = keeper(store);
    const holding = await kept.run(5 * DAY_MS, { removed: true });
    const old = await kept.run(4 * DAY_MS);
    const open = await kept.run(3 * DAY_MS, { open: true });
    const newer = await kept.run(2 * DAY_MS);
    const newest = await kept.run(DAY_MS);
    const others = await kept.run(6 * DAY_MS, { caller: "you" });
    await store.runs.retention.tidy();
    expect(await kept.left()).toEqual([holding, open, newer, newest, others].toSorted());
    expect(await kept.rowsOf(old)).toEqual({ entry: 0, part: 0, piece: 0 });
  });

  test("by bytes: runs that were made while a clock was ahead take nothing from the newest, and stay", async () => {
    const store = await storeKeeping({ days: 30, runs: 500, bytes: 600 });
    const kept = keeper(store);
    const ahead = [await kept.run(-400 * DAY_MS), await kept.run(-401 * DAY_MS)];
    const old = await kept.run(4 * DAY_MS);
    const newer = await kept.run(2 * DAY_MS);
    const newest = await kept.run(DAY_MS);
    await store.runs.retention.tidy();
    expect(await kept.left()).toEqual([newer, newest, ...ahead].toSorted());
    expect(await kept.rowsOf(old)).toEqual({ entry: 0, part: 0, piece: 0 });
  });

  test("Context IDs that were kept long ago go, those kept since stay", async () => {
    const store = await storeKeeping({ days: 30, runs: 500 });
    const ages = [...Array.from({ length: 1200 }, () => 31), 29];
    await statement(
      store.url,
      `insert into targeting_mcp.content (project, option, record, ids, kept_at)
       select 'shop', n::text, '', '[]', clock_timestamp() - age * interval '1 day'
       from unnest(array[${ages.join()}]) with ordinality as given (age, n)`,
    );
    await store.runs.retention.tidy();
    const { rows } = await statement(store.url, "select option from targeting_mcp.content");
    expect(rows).toEqual([{ option: "1201" }]);
  });

  test("by number: each caller's newest stay, those that hold what was taken away go by days alone", async () => {
    const store = await storeKeeping({ days: 30, runs: 3 });
    const kept = keeper(store);
    const mine: string[] = [];
    for (let age = 8; age > 0; age -= 1) mine.push(await kept.run(age * 1000));
    const holding = await kept.run(20_000, { removed: true });
    const theirs = [await kept.run(30_000, { caller: "another" }), await kept.run(29_000, { caller: "another" })];
    const open = await kept.run(40_000, { open: true });
    // Whenever a run stops, old runs are removed. No process needs to start for this.
    await expect.poll(kept.left).toEqual([open, ...theirs, holding, ...mine.slice(-3)].sort());
  });

  test("plans that were not confirmed go after a day, unless a process has them", async () => {
    const store = await storeKeeping({ days: 30, runs: 500 });
    const at = (agoMs: number): RunHeader => ({
      ...{ runId: ulidSource(() => Date.now() - agoMs, Math.random)(), call: { tool: "some_tool" }, project: "shop" },
      ...{ kind: "changes", caller: "me", environment: "live", createdAt: 1, fingerprint: "plan" },
    });
    const [old, held, young] = [at(25 * 3_600_000), at(25 * 3_600_000 + 1), at(3_600_000)];
    for (const header of [old, held, young]) await store.runs.create(header);
    const lease = await store.runs.lease(held.runId);
    await store.runs.retention.tidy();
    expect(await store.runs.list({ caller: "me" })).toEqual([young.runId, held.runId]);
    await lease?.release();
  });

  test("of thousands of runs delays no append", async () => {
    const store = await storeKeeping({ days: 30, runs: 5 });
    const kept = keeper(store);
    await statement(
      store.url,
      `insert into targeting_mcp.run (id, project, caller, environment, fingerprint, header, status, version, open)
       select '0' || lpad(n::text, 25, '0'), 'shop', 'caller ' || n % 7, 'live', n::text, '{}', 'finished', 1, false
       from generate_series(1, 5000) n;
       insert into targeting_mcp.entry select id, n, 0, 1, now(), repeat('x', 2000)::bytea
       from targeting_mcp.run, generate_series(1, 5) n`,
    );
    const runId = await kept.run(0, { open: true });
    const lease = await store.runs.lease(runId);
    if (lease === undefined) throw new Error("no other process has it");
    const journal = await store.runs.journal(runId, lease);
    let appended = 0;
    const append = async (): Promise<void> => {
      journal.append(['{"t":"two"}']);
      await journal.flush();
      appended += 1;
    };
    let isOver = false;
    const tidy = store.runs.retention.tidy().then(() => {
      isOver = true;
    });
    while (!isOver) await append();
    await tidy;
    await journal.close();
    await lease.release();
    expect(await kept.left()).toEqual([runId]);
    // If an append had to wait for the whole removal, only one would have been made.
    expect(appended).toBeGreaterThan(20);
  });
});

describe("claims", () => {
  test("the caller with the fewest running projects comes first, then the oldest; one project of a caller after the other", async () => {
    const store = await storeKeeping({ days: 30, runs: 500 });
    const { left } = store.runs;
    if (left === undefined) throw new Error("the store is shared");
    let age = 100_000;
    const waiting = async (caller: string, project: string): Promise<string> => {
      age -= 1000;
      const header: RunHeader = {
        ...{ runId: ulidSource(() => Date.now() - age, Math.random)(), call: { tool: "some_tool" }, project, caller },
        ...{ kind: "changes", environment: "live", createdAt: 1, fingerprint: `${age}` },
      };
      await store.runs.create(header);
      await startRun(store.runs, header.runId);
      return `${caller} ${project}`;
    };
    // The first caller has running runs in two projects, and many waiting runs, which are older than those of all
    // others.
    const running = [await waiting("a", "p1"), await waiting("a", "p2")];
    for (const runId of await store.runs.list({ caller: "a" })) expect(await store.runs.lease(runId)).toBeDefined();
    expect(running).toHaveLength(2);
    for (const project of ["p3", "p4"]) await waiting("a", project);
    for (const project of ["p5", "p6", "p6"]) await waiting("b", project);
    await waiting("c", "p7");
    const all = Array.from({ length: 9 }, (_, n) => `p${n}`);
    const found = await left.found(all, 8);
    const callers = new Map<string, string>();
    for (const caller of ["a", "b", "c"]) for (const id of await store.runs.list({ caller })) callers.set(id, caller);
    expect(found.map(({ runId, project }) => `${callers.get(runId)} ${project}`)).toEqual([
      ...["b p5", "c p7"],
      ...["b p6", "b p6"],
      ...["a p3", "a p4"],
    ]);
    expect(await left.found(["p7"], 8)).toHaveLength(1);
  });

  test("a process has room for so many projects, and for every run of those", async () => {
    const { runs } = await storeKeeping({ days: 30, runs: 500 }, 2);
    const { left } = runs;
    if (left === undefined) throw new Error("the store is shared");
    await left.startClaiming(["p1", "p2", "p3"], () => {});
    const [first, second] = [left.drives("p1"), left.drives("p2")];
    const again = left.drives("p1");
    expect([first, second, again].map((one) => one !== undefined)).toEqual([true, true, true]);
    expect([left.drives("p3"), left.hasRoomFor("p3"), left.hasRoomFor("p2")]).toEqual([undefined, false, true]);
    // Only this process has the keys of that project, so it always executes the run.
    expect(left.drives("a caller's own")).toBeDefined();
    again?.();
    second?.();
    expect(left.hasRoomFor("p3")).toBe(false);
  });
});

describe("a process whose clock is wrong", () => {
  const aheadBy = (ms: number) => ({ ...systemClock, now: () => Date.now() + ms });

  function openedWith(url: string, clock: typeof systemClock) {
    const backend = postgresBackend({ url, connections: 2, clock, keep: { days: 30, runs: 3 } });
    cluster.closing.push(() => backend.close());
    const told: string[] = [];
    backend.runs.retention.onDoubt((doubt) => told.push(doubt));
    return { runs: backend.runs, told };
  }

  test("removes nothing while the database says another time, and others go on", async () => {
    const store = await storeKeeping({ days: 30, runs: 500 });
    const kept = keeper(store);
    const old = await kept.run(31 * DAY_MS);
    const recent = await kept.run(1000, { removed: true });
    const ahead = openedWith(store.url, aheadBy(40 * DAY_MS));
    await ahead.runs.retention.tidy();
    expect(await kept.left()).toEqual([old, recent]);
    expect(ahead.told).toEqual([expect.stringMatching(/the clock of this machine says .* until they agree/)]);
    await store.runs.retention.tidy();
    expect(await kept.left()).toEqual([recent]);
  });

  test("removes nothing after the clocks of both went ahead, until the next day at least", async () => {
    const store = await storeKeeping({ days: 30, runs: 500 });
    const kept = keeper(store);
    const old = await kept.run(31 * DAY_MS);
    // The clocks were last compared 40 days ago.
    const seen = JSON.stringify({ at: Date.now() - 40 * DAY_MS, agreed: true });
    await statement(store.url, `insert into targeting_mcp.setting values ('clock of retention', '${seen}')`);
    await store.runs.retention.tidy();
    expect(await kept.left()).toEqual([old]);
    expect(await store.runs.retention.peek()).toContain("no stored run is removed before");
  });
});
