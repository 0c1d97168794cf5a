import { copyFileSync, existsSync, readdirSync, renameSync, utimesSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.ts";
import { runsIn } from "../../../src/runs/files/run-folder.ts";
import { fileRunStore } from "../../../src/runs/files/run-store.ts";
import { moveRun } from "../../../src/runs/store.ts";
import { ulidSource } from "../../../src/spec/names-and-contexts.ts";
import { startRun } from "../../support/records.ts";

const DAY_MS = 86_400_000;

/**
 * Stores a plan that is too old, and removes old runs. When the clock is read for the `at`th time, another process starts
 * the run, unless the run or its lease is taken. Returns whether the run was started, and whether it is still stored.
 */
async function startedWhileRemoved(at: number) {
  const folder = await mkdtemp(join(tmpdir(), "removed-at-once-"));
  const runId = ulidSource(() => Date.now() - 2 * DAY_MS, Math.random)();
  const other = fileRunStore(folder, systemClock);
  await other.create({
    ...{ runId, kind: "changes", call: { tool: "delete_options" }, project: "p", caller: "me" },
    ...{ environment: "sandbox", createdAt: Date.now() - 2 * DAY_MS, fingerprint: "f" },
  });
  await moveRun(other, runId, () => ({ status: "planned" }));
  await (await other.lease(runId))?.release();
  const place = join(folder, runId);
  const files = ["driver.lease.2", "record.2.json"].map((name) => ({
    file: join(place, name),
    aside: join(folder, name),
  }));
  copyFileSync(join(place, "driver.lease.1"), join(folder, "released"));
  const lease = await other.lease(runId);
  await startRun(other, runId);
  for (const { file, aside } of files) renameSync(file, aside);
  renameSync(join(folder, "released"), join(place, "driver.lease.1"));

  let reads = 0;
  let wasStarted = false;
  const now = (): number => {
    reads += 1;
    if (reads === at && existsSync(place) && !readdirSync(place).includes("driver.lease.2")) {
      for (const { file, aside } of files) renameSync(aside, file);
      utimesSync(join(place, "driver.lease.2"), new Date(), new Date());
      wasStarted = true;
    }
    return Date.now();
  };
  await fileRunStore(folder, { ...systemClock, now }).retention.tidy();
  const isStored = (await runsIn(folder)).includes(runId);
  await lease?.release();
  return { reads, wasStarted, isStored };
}

test("a plan that is started while it is removed as too old stays stored", async () => {
  const { reads, isStored } = await startedWhileRemoved(0);
  expect(isStored).toBe(false);
  for (let at = 1; at <= reads; at += 1) {
    const found = await startedWhileRemoved(at);
    expect({ at, isLost: found.wasStarted && !found.isStored }).toEqual({ at, isLost: false });
  }
});
