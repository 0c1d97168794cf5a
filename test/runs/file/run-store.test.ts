import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.ts";
import { runsIn } from "../../../src/runs/files/run-folder.ts";
import { fileRunStore, type Retention } from "../../../src/runs/files/run-store.ts";
import { ulidSource } from "../../../src/spec/names-and-contexts.ts";
import { reopenRun, restRun, startRun, wasStarted } from "../../support/records.ts";

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;

const newRunId = ulidSource(
  () => NOW,
  () => 0.5,
);

async function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "targeting-mcp-"));
}

function storeIn(folder: string, now = NOW, keep?: Retention) {
  return fileRunStore(folder, { ...systemClock, now: () => now }, keep);
}

function headerOf(runId: string, fingerprint = "same", caller = "local") {
  return {
    runId,
    kind: "changes",
    call: { tool: "delete_targeting", input: { ids: [] } },
    project: "project",
    caller,
    environment: "sandbox",
    createdAt: NOW,
    fingerprint,
  } as const;
}

/** Stores a run. `status` is how it stopped; absent: it has not stopped. */
async function keptRun(
  folder: string,
  { status, fingerprint = "same", createdAt = NOW }: { status?: string; fingerprint?: string; createdAt?: number },
): Promise<string> {
  const store = storeIn(folder);
  const runId = newRunId();
  await store.create({ ...headerOf(runId, fingerprint), createdAt });
  await startRun(store, runId);
  if (status !== undefined) {
    const about = { tool: "delete_targeting", caller: "local", fingerprint, status, counts: {} };
    await restRun(store, runId, { ...about, startedAt: NOW, updatedAt: NOW, open: status === "cancelled" });
  }
  return runId;
}

describe("runs that may be unfinished are found", () => {
  test("a run that is taken up again after it came to rest", async () => {
    const folder = await newFolder();
    const runId = await keptRun(folder, { status: "failed" });
    expect(await storeIn(folder).list({ unfinished: { fingerprint: "same" } })).toEqual([]);
    await reopenRun(storeIn(folder), runId);
    const again = { tool: "t", caller: "local", fingerprint: "same", counts: {}, startedAt: NOW, updatedAt: NOW };
    await restRun(storeIn(folder), runId, { ...again, status: "interrupted", open: true });
    expect(await storeIn(folder).list({ unfinished: { fingerprint: "same" } })).toEqual([runId]);
    await reopenRun(storeIn(folder), runId);
    await restRun(storeIn(folder), runId, { ...again, status: "succeeded", open: false });
    expect(await storeIn(folder).list({ unfinished: { fingerprint: "same" } })).toEqual([]);
  });

  test("where they have no marks, once the server starts anew", async () => {
    const folder = await newFolder();
    await keptRun(folder, { status: "succeeded" });
    const crashed = await keptRun(folder, {});
    await rm(join(folder, "calls"), { recursive: true });
    expect(await storeIn(folder).list({ unfinished: { fingerprint: "same" } })).toEqual([crashed]);
    const next = await keptRun(folder, {});
    expect(await storeIn(folder).list({ unfinished: { fingerprint: "same" } })).toEqual([next, crashed]);
    expect(await storeIn(folder).list({ caller: "local" })).toHaveLength(3);
  });

  test("where marks were left of runs that are gone, and of nothing at all", async () => {
    const folder = await newFolder();
    const crashed = await keptRun(folder, {});
    const [mark = ""] = await readdir(join(folder, "calls", "open"));
    await writeFile(join(folder, "calls", "open", mark.replace(crashed, "01ARZ3NDEKTSV4RRFFQ69G5FAV")), "");
    await writeFile(join(folder, "calls", "open", "nonsense"), "");
    expect((await storeIn(folder).list({ unfinished: { fingerprint: "same" } }))[0]).toBe(crashed);
    expect(await storeIn(folder).list({ caller: "local" })).toEqual([crashed]);
  });

  test("where the index cannot be kept that is said, since a run without a mark would not be found", async () => {
    const folder = await newFolder();
    await writeFile(join(folder, "calls"), "a file, where a folder should be");
    await expect(storeIn(folder).create(headerOf(newRunId()))).rejects.toThrow(
      `runs cannot be stored or read in ${folder}`,
    );
  });

  test("where the process died between the summary and the mark, it is looked at, and no more", async () => {
    const folder = await newFolder();
    const runId = await keptRun(folder, { status: "succeeded" });
    await reopenRun(storeIn(folder), runId);
    expect(await storeIn(folder).list({ unfinished: { fingerprint: "same" } })).toEqual([runId]);
  });
});

test("a full disk says that nothing was sent, unless the part replaces one from before the requests", async () => {
  const folder = await newFolder();
  const runId = newRunId();
  const { create, parts } = storeIn(folder);
  await create(headerOf(runId));
  // biome-ignore lint/correctness/useYield: it fails before the first piece.
  const full = async function* (): AsyncGenerator<string> {
    throw Object.assign(new Error("no space left on device"), { code: "ENOSPC", syscall: "write" });
  };
  await expect(parts.keep(runId, "input", full())).rejects.toThrow(/no space left on device\); nothing was sent$/);
  await parts.keep(runId, "input", ["kept"]);
  await expect(parts.keep(runId, "input", full())).rejects.toThrow(/no space left on device\)$/);
});

describe("old runs", () => {
  /** Stores a finished run of a caller with this time of creation. `removed` says whether it deleted anything. */
  async function finished(
    folder: string,
    { caller = "local", at = NOW, removed = false, keep }: FinishedRun = {},
  ): Promise<string> {
    const store = storeIn(folder, NOW, keep);
    const runId = ulidSource(
      () => at,
      () => Math.random(),
    )();
    await store.create({ ...headerOf(runId, "same", caller), createdAt: at });
    await startRun(store, runId);
    if (removed) await store.parts.keep(runId, "removed", lines("{}\n"));
    await restRun(store, runId, {
      ...{ tool: "delete_targeting", caller, fingerprint: "same", status: "succeeded", counts: {} },
      ...{ startedAt: at, updatedAt: at, open: false },
    });
    return runId;
  }

  test("are removed beyond so many of their caller when a run ends, and no unfinished one", async () => {
    const folder = await newFolder();
    const keep = { days: 30, runs: 5 };
    const unfinished = await keptRun(folder, {});
    const first = await finished(folder, { at: NOW - 60_000, keep });
    const others = await finished(folder, { at: NOW - 60_000, caller: "another", keep });
    for (let made = 0; made < 5; made += 1) await finished(folder, { at: NOW - 1000 + made, keep });
    await expect.poll(() => runsIn(folder)).not.toContain(first);
    const left = await runsIn(folder);
    expect(left).toHaveLength(7);
    expect(left).toContain(unfinished);
    expect(left).toContain(others);
    await expect.poll(async () => (await storeIn(folder).list({ caller: "local" })).length).toBe(6);
  });

  test("that hold what was taken away go by their age alone", async () => {
    const folder = await newFolder();
    const keep = { days: 3, runs: 2 };
    const old = await finished(folder, { at: NOW - 3 * DAY_MS, removed: true, keep });
    const held = await finished(folder, { at: NOW - 2 * DAY_MS, removed: true, keep });
    for (let made = 0; made < 6; made += 1) await finished(folder, { at: NOW - 1000 + made, caller: "another", keep });
    for (let made = 0; made < 6; made += 1) await finished(folder, { at: NOW - 1000 + made, keep });
    await expect.poll(() => runsIn(folder)).toHaveLength(5);
    expect(await runsIn(folder)).toContain(held);
    expect(await runsIn(folder)).not.toContain(old);
  });

  test("are looked for at the start, also those that another version kept", async () => {
    const folder = await newFolder();
    const keep = { days: 30, runs: 2 };
    const all: string[] = [];
    // The old run is made first: when a run ends, old runs are searched in the background.
    const old = await finished(folder, { at: NOW - 31 * DAY_MS });
    for (let made = 0; made < 4; made += 1) all.push(await finished(folder, { at: NOW - 1000 + made }));
    const plan = ulidSource(
      () => NOW - 2 * DAY_MS,
      () => 0.5,
    )();
    await storeIn(folder).create({ ...headerOf(plan), createdAt: NOW - 2 * DAY_MS });
    await rm(join(folder, "calls"), { recursive: true });
    await storeIn(folder, NOW, keep).retention.tidy();
    expect(await runsIn(folder)).toEqual([all[3], all[2]]);
    expect(old).not.toBe(plan);
    expect(await readdir(join(folder, "calls", "open"))).toEqual([]);
  });

  test("of which only a folder was left go, too, but not one that is just being made", async () => {
    const folder = await newFolder();
    const idAt = (time: number): string =>
      ulidSource(
        () => time,
        () => 0.5,
      )();
    const [theirs, abandoned, half] = [idAt(NOW - 5), idAt(NOW - 40 * DAY_MS), idAt(NOW - 41 * DAY_MS)];
    for (const runId of [theirs, abandoned, half]) await mkdir(join(folder, runId), { recursive: true });
    await writeFile(join(folder, half, "record.1.json"), "{}");
    await storeIn(folder).retention.tidy();
    expect(await runsIn(folder)).toEqual([theirs]);
  });
});

interface FinishedRun {
  readonly caller?: string;
  readonly at?: number;
  readonly removed?: boolean;
  readonly keep?: Retention;
}

async function* lines(...texts: readonly string[]): AsyncGenerator<string> {
  yield* texts;
}

test("a run whose mark was lost is started all the same, as its journal says, and is not started twice", async () => {
  const folder = await newFolder();
  const store = storeIn(folder);
  const runId = newRunId();
  await store.create(headerOf(runId));
  expect(await startRun(store, runId)).toBe(true);
  const lease = await store.lease(runId);
  if (lease === undefined) throw new Error("the lease is free");
  const journal = await store.journal(runId, lease);
  journal.append(['{"t":"objects","objects":[]}']);
  await journal.close();
  await lease.release();
  await rm(join(folder, runId, "record.1.json"));
  expect(await wasStarted(storeIn(folder), runId)).toBe(true);
  expect(await startRun(storeIn(folder), runId)).toBe(false);
});

async function madeAt(folder: string, at: number, keep: Retention, removed = true): Promise<string> {
  const store = storeIn(folder, at, keep);
  const runId = ulidSource(() => at, Math.random)();
  await store.create({ ...headerOf(runId), createdAt: at });
  await startRun(store, runId);
  if (removed) await store.parts.keep(runId, "removed", lines("{}\n"));
  const about = { tool: "delete_targeting", caller: "local", fingerprint: "same", status: "succeeded", counts: {} };
  await restRun(store, runId, { ...about, startedAt: at, updatedAt: at, open: false });
  await store.retention.tidy();
  return runId;
}

test("a run that cannot be read keeps no other from being removed, whatever bytes are kept", async () => {
  const folder = await newFolder();
  const room = { days: 30, runs: 500 };
  const runs: string[] = [];
  for (let made = 0; made < 3; made += 1) runs.push(await madeAt(folder, NOW + made, room, false));
  const [unreadable = "", , newest] = runs;
  await rm(join(folder, unreadable, "record.2.json"));
  await symlink("record.2.json", join(folder, unreadable, "record.2.json"));
  await storeIn(folder, NOW + 3, { ...room, bytes: 0 }).retention.tidy();
  expect(await runsIn(folder)).not.toContain(newest);
});

describe("where the clock is wrong", () => {
  test("one start with it 40 days ahead removes nothing, nor does what is done then, nor its being right again", async () => {
    const folder = await newFolder();
    const keep = { days: 30, runs: 3 };
    const runs = [await madeAt(folder, NOW, keep)];
    const ahead = NOW + 40 * DAY_MS;
    const told: string[] = [];
    const store = storeIn(folder, ahead, keep);
    store.retention.onDoubt((doubt) => told.push(doubt));
    await store.retention.tidy();
    expect(told).toEqual([expect.stringContaining("the clock of this machine jumped from 2027-01-15 to 2027-02-24")]);
    for (let made = 0; made < 5; made += 1) runs.push(await madeAt(folder, ahead + made, keep, false));
    for (let made = 1; made < 6; made += 1) runs.push(await madeAt(folder, NOW + made, keep, false));
    expect(await runsIn(folder)).toEqual(runs.toSorted().reverse());
  });

  test("runs of the time ahead do not count as the newest", async () => {
    const folder = await newFolder();
    const keep = { days: 30, runs: 3 };
    const late = NOW + 400 * DAY_MS;
    const ahead = [await madeAt(folder, late, keep, false), await madeAt(folder, late + 1, keep, false)];
    await rm(join(folder, "calls", "clock.json"));
    const right: string[] = [];
    for (let made = 0; made < 5; made += 1) right.push(await madeAt(folder, NOW + made, keep, false));
    expect(await runsIn(folder)).toEqual([...ahead.toReversed(), ...right.slice(-3).reverse()]);
  });

  test("nor do they take the bytes of the newest, and none of them is removed", async () => {
    const folder = await newFolder();
    const late = NOW + 400 * DAY_MS;
    const room = { days: 30, runs: 500 };
    const ahead = [await madeAt(folder, late, room, false), await madeAt(folder, late + 1, room, false)];
    await rm(join(folder, "calls", "clock.json"));
    const right: string[] = [];
    for (let made = 0; made < 3; made += 1) right.push(await madeAt(folder, NOW + made, room, false));
    const bytesOf = async (runId: string) => {
      const files = (await readdir(join(folder, runId))).map((file) => stat(join(folder, runId, file)));
      return (await Promise.all(files)).reduce((sum, { size }) => sum + size, 0);
    };
    const bytes = (await bytesOf(right[1] ?? "")) + (await bytesOf(right[2] ?? ""));
    await storeIn(folder, NOW + 3, { ...room, bytes }).retention.tidy();
    expect(await runsIn(folder)).toEqual([...ahead.toReversed(), right[2], right[1]]);
  });

  test("an unconfirmed plan stays, too", async () => {
    const folder = await newFolder();
    const plan = newRunId();
    const store = storeIn(folder);
    await store.create(headerOf(plan));
    await store.retention.tidy();
    await storeIn(folder, NOW + 40 * DAY_MS).retention.tidy();
    expect(await runsIn(folder)).toEqual([plan]);
  });
});
