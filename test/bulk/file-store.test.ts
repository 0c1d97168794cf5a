import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { systemClock } from "../../src/api/clock.ts";
import { fileRunStore } from "../../src/bulk/file-store.ts";
import { runsIn } from "../../src/bulk/run-files.ts";
import { WRITE_FORM } from "../../src/bulk/run-form.ts";
import { ulidSource } from "../../src/spec/ulid.ts";

const NOW = 1_800_000_000_000;
const DAY_MS = 86_400_000;

test("a run that another process is just about to keep is not taken for an abandoned one", async () => {
  const folder = await mkdtemp(join(tmpdir(), "targeting-mcp-"));
  const idAt = (time: number): string =>
    ulidSource(
      () => time,
      () => 0.5,
    )();
  const [mine, theirs, abandoned] = [idAt(NOW), idAt(NOW - 5), idAt(NOW - 40 * DAY_MS)];
  // What another process leaves between making the folder and writing into it.
  for (const runId of [theirs, abandoned]) await mkdir(join(folder, runId), { recursive: true });
  await storeIn(folder).create({
    runId: mine,
    call: { tool: "delete_targeting", input: { ids: [] } },
    project: "project",
    caller: "local",
    environment: "sandbox",
    createdAt: NOW,
    fingerprint: "x",
  });
  await expect.poll(() => runsIn(folder)).toEqual([mine, theirs]);
});

const newRunId = ulidSource(
  () => NOW,
  () => 0.5,
);

async function newFolder(): Promise<string> {
  return mkdtemp(join(tmpdir(), "targeting-mcp-"));
}

function storeIn(folder: string, now = NOW) {
  return fileRunStore(folder, { ...systemClock, now: () => now }, WRITE_FORM);
}

/** Keeps a run; `status` is how it came to rest, where it did. */
async function keptRun(
  folder: string,
  { status, fingerprint = "same", createdAt = NOW }: { status?: string; fingerprint?: string; createdAt?: number },
): Promise<string> {
  const store = storeIn(folder);
  const runId = newRunId();
  await store.create({
    runId,
    call: { tool: "delete_targeting", input: { ids: [] } },
    project: "project",
    caller: "local",
    environment: "sandbox",
    createdAt,
    fingerprint,
  });
  await store.start(runId);
  if (status !== undefined) {
    const about = { tool: "delete_targeting", caller: "local", fingerprint, status, counts: {} };
    await store.summarise(runId, { ...about, startedAt: NOW, updatedAt: NOW, open: status === "cancelled" });
  }
  return runId;
}

describe("runs that may be unfinished are found", () => {
  test("those at rest and of other calls are left out", async () => {
    const folder = await newFolder();
    const driven = await keptRun(folder, {});
    const interrupted = await keptRun(folder, { status: "interrupted" });
    const cancelled = await keptRun(folder, { status: "cancelled" });
    await keptRun(folder, { status: "succeeded" });
    const other = await keptRun(folder, { fingerprint: "other" });
    expect(await storeIn(folder).unfinished("same")).toEqual([cancelled, interrupted, driven]);
    expect(await storeIn(folder).unfinished()).toEqual([other, cancelled, interrupted, driven]);
  });

  test("a run that is taken up again after it came to rest", async () => {
    const folder = await newFolder();
    const runId = await keptRun(folder, { status: "failed" });
    expect(await storeIn(folder).unfinished("same")).toEqual([]);
    const again = { tool: "t", caller: "local", fingerprint: "same", counts: {}, startedAt: NOW, updatedAt: NOW };
    await storeIn(folder).summarise(runId, { ...again, status: "interrupted", open: true });
    expect(await storeIn(folder).unfinished("same")).toEqual([runId]);
    await storeIn(folder).summarise(runId, { ...again, status: "succeeded", open: false });
    expect(await storeIn(folder).unfinished("same")).toEqual([]);
  });

  test.each([
    ["an earlier version kept them, without marks", (calls: string) => rm(calls, { recursive: true })],
    [
      "the marks cannot be kept",
      async (calls: string) => {
        await rm(calls, { recursive: true });
        await writeFile(calls, "a file, where a folder should be");
      },
    ],
    [
      "marks were left of runs that are gone, and of nothing at all",
      async (calls: string) => {
        await writeFile(join(calls, "01ARZ3NDEKTSV4RRFFQ69G5FAV.same"), "");
        await writeFile(join(calls, "nonsense"), "");
      },
    ],
  ])("where %s", async (_what, spoil) => {
    const folder = await newFolder();
    await keptRun(folder, { status: "succeeded" });
    const crashed = await keptRun(folder, {});
    await expect.poll(() => readFile(join(folder, "calls", "swept"), "utf8")).toBe(String(NOW));
    await spoil(join(folder, "calls"));
    expect(await storeIn(folder).unfinished("same")).toEqual([crashed]);
    const next = await keptRun(folder, {});
    expect(await storeIn(folder).unfinished("same")).toEqual([next, crashed]);
  });

  test("where the process died between the summary and the mark, it is looked at, and no more", async () => {
    const folder = await newFolder();
    const runId = await keptRun(folder, { status: "succeeded" });
    await writeFile(join(folder, "calls", `${runId}.same`), "");
    expect(await storeIn(folder).unfinished("same")).toEqual([runId]);
  });
});

describe("old runs", () => {
  test("are removed beyond 500, but no unfinished one, and not at every call", async () => {
    const folder = await newFolder();
    const unfinished = await keptRun(folder, {});
    const finished = await keptRun(folder, { status: "succeeded" });
    await expect.poll(() => readdir(join(folder, "calls"))).toContain("swept");
    for (let made = 0; made < 505; made += 1) await keptRun(folder, { status: "succeeded" });
    expect((await readdir(folder)).length).toBeGreaterThan(505);
    await storeIn(folder, NOW + 3_600_000).create({
      runId: newRunId(),
      call: { tool: "delete_targeting", input: { ids: [] } },
      project: "project",
      caller: "local",
      environment: "sandbox",
      createdAt: NOW,
      fingerprint: "x",
    });
    await expect.poll(async () => (await runsIn(folder)).length, { timeout: 10_000 }).toBe(501);
    const left = await runsIn(folder);
    expect(left).toContain(unfinished);
    expect(left).not.toContain(finished);
    await expect
      .poll(async () => (await readdir(join(folder, "calls"))).filter((name) => name.startsWith(finished)))
      .toEqual([]);
  });

  test("half removed ones go, too", async () => {
    const folder = await newFolder();
    const [old] = [
      ulidSource(
        () => NOW - 40 * DAY_MS,
        () => 0.5,
      )(),
    ];
    await mkdir(join(folder, old), { recursive: true });
    await writeFile(join(folder, old, "started"), "");
    const mine = await keptRun(folder, {});
    await expect.poll(() => runsIn(folder)).toEqual([mine]);
  });
});
