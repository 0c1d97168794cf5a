import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../src/api/clock.ts";
import { isLeased, tryLease } from "../../src/bulk/lease.ts";
import { ownMark } from "../../src/disk/process-mark.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lease-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("one holds it, and the next one can have it once it is given back", async () => {
  const first = await tryLease(folder, "write", systemClock);
  expect(first).toBeDefined();
  expect(await tryLease(folder, "write", systemClock)).toBeUndefined();
  expect(await isLeased(folder, "write", Date.now)).toBe(true);
  await first?.release();
  expect(await isLeased(folder, "write", Date.now)).toBe(false);
  const second = await tryLease(folder, "write", systemClock);
  expect(second).toBeDefined();
  await second?.release();
});

test("of many that try at once exactly one gets it, again and again", async () => {
  for (let round = 0; round < 20; round += 1) {
    const tries = await Promise.all(Array.from({ length: 8 }, () => tryLease(folder, "write", systemClock)));
    const held = tries.filter((lease) => lease !== undefined);
    expect(held).toHaveLength(1);
    await held[0]?.release();
  }
  expect((await readdir(folder)).length).toBeLessThan(4);
});

test.each([
  ["whose process is gone", { ...(await ownMark()), pid: 999_999_999 }, 0],
  ["on another host that has shown no life for long", { pid: 1, host: "elsewhere" }, 60_000],
])("a holder %s is followed by exactly one", async (_, holder, ageMs) => {
  const file = join(folder, "write.lease.7");
  await writeFile(file, JSON.stringify({ ...holder, token: "t", released: false }));
  const at = new Date(Date.now() - ageMs);
  await utimes(file, at, at);
  const tries = await Promise.all(Array.from({ length: 8 }, () => tryLease(folder, "write", systemClock)));
  expect(tries.filter((lease) => lease !== undefined)).toHaveLength(1);
  for (const lease of tries) await lease?.release();
});

test("a holder on another host that shows life keeps it", async () => {
  await writeFile(
    join(folder, "write.lease.3"),
    JSON.stringify({ pid: 1, host: "elsewhere", token: "t", released: false }),
  );
  expect(await tryLease(folder, "write", systemClock)).toBeUndefined();
});
