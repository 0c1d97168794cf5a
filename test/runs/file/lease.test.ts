import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.ts";
import { isLeased, ownMark, tryLease } from "../../../src/runs/files/lease.ts";
import { LeaseLostError } from "../../../src/runs/turn.ts";

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

test("of a run that is removed meanwhile nobody gets it, and no folder stays", async () => {
  const tried = Array.from({ length: 200 }, async (_, round) => {
    const place = join(folder, `${round}`);
    await mkdir(place);
    await (await tryLease(place, "driver", systemClock))?.release();
    const removed = rm(place, { recursive: true, force: true, maxRetries: 3 });
    const lease = await tryLease(place, "driver", systemClock);
    await removed;
    await lease?.release();
    expect(await tryLease(place, "driver", systemClock)).toBeUndefined();
  });
  await Promise.all(tried);
  expect(await readdir(folder)).toEqual([]);
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

/** A clock that tests set. Its sleeps end at once. */
function handSet() {
  const hands = { monotonic: 0, slept: 0 };
  const clock = {
    now: Date.now,
    monotonic: () => hands.monotonic,
    sleep: async (ms: number) => {
      hands.slept += ms;
      hands.monotonic += ms;
    },
  };
  return { hands, clock };
}

/** Makes the holder of the newest lease look as if it has shown no sign of life for 11 seconds. */
async function fallSilent(): Promise<void> {
  const [newest = 0] = numbersOf(await readdir(folder)).sort((a, b) => b - a);
  const long = new Date(Date.now() - 11_000);
  await utimes(join(folder, `write.lease.${newest}`), long, long);
}

function numbersOf(files: readonly string[]): number[] {
  return files.map((file) => Number(file.split(".").at(-1))).filter(Number.isSafeInteger);
}

test("a lease that was given back, or whose holder is gone, lets requests leave at once", async () => {
  const { hands, clock } = handSet();
  await (await tryLease(folder, "write", clock))?.release();
  const second = await tryLease(folder, "write", clock);
  await second?.renew();
  expect(second?.epoch).toBe(2n);
  expect(second?.isTakenOver).toBe(false);
  await second?.release();
  const gone = { ...(await ownMark()), pid: 999_999_999, token: "t", released: false };
  await writeFile(join(folder, "write.lease.3"), JSON.stringify(gone));
  await (await tryLease(folder, "write", clock))?.renew();
  expect(hands.slept).toBe(0);
});

test.each([
  ["another container", { namespace: "pid:[1]" }],
  ["another boot of the machine", { boot: "another" }],
  ["a version that did not say when its process started", { startedAt: undefined }],
])("a holder of %s is never known to be gone", async (_, other) => {
  const mark = { ...(await ownMark()), pid: 999_999_999, ...other, token: "t", released: false };
  await writeFile(join(folder, "write.lease.3"), JSON.stringify(mark));
  expect(await tryLease(folder, "write", systemClock)).toBeUndefined();
});

test("a process of the same number that started at another time is another one", async () => {
  const mark = { ...(await ownMark()), startedAt: "1", token: "t", released: false };
  await writeFile(join(folder, "write.lease.3"), JSON.stringify(mark));
  const lease = await tryLease(folder, "write", systemClock);
  expect(lease?.isTakenOver).toBe(false);
  await lease?.release();
});

test("a process that takes over from a silent one waits before anything may leave, and the silent one has lost it", async () => {
  const { hands, clock } = handSet();
  const silent = await tryLease(folder, "write", systemClock);
  await fallSilent();
  const next = await tryLease(folder, "write", clock);
  expect(next?.isTakenOver).toBe(true);
  await expect(silent?.renew()).rejects.toBeInstanceOf(LeaseLostError);
  expect(silent?.lost.aborted).toBe(true);
  await expect(silent?.check()).rejects.toBeInstanceOf(LeaseLostError);
  const intent = await next?.renew();
  expect(hands.slept).toBe(2500);
  expect(intent?.monotonic).toBe(2500);
  await next?.renew();
  expect(hands.slept).toBe(2500);
  // A process that has lost its lease does not release the next one.
  await silent?.release();
  expect(await isLeased(folder, "write", Date.now)).toBe(true);
  await next?.release();
});

test("a holder that ends within that wait leaves it to the next one; after it, the next one need not wait", async () => {
  const { hands, clock } = handSet();
  const silent = await tryLease(folder, "write", systemClock);
  await fallSilent();
  await (await tryLease(folder, "write", clock))?.release();
  const third = await tryLease(folder, "write", clock);
  await third?.renew();
  expect(hands.slept).toBe(2500);
  await third?.release();
  const fourth = await tryLease(folder, "write", clock);
  await fourth?.renew();
  expect(hands.slept).toBe(2500);
  await fourth?.release();
  await silent?.release();
});

test("a lease of the same number that another process made anew is not this one's", async () => {
  const lost = await tryLease(folder, "write", systemClock);
  await rm(folder, { recursive: true });
  await mkdir(folder);
  const other = await tryLease(folder, "write", systemClock);
  expect([lost?.epoch, other?.epoch]).toEqual([1n, 1n]);
  await expect(lost?.renew()).rejects.toBeInstanceOf(LeaseLostError);
  await other?.renew();
  await other?.release();
});
