import { mkdtemp, readdir, rm, symlink, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.ts";
import { isLeased } from "../../../src/runs/file/locks/lease.ts";
import { machineLock } from "../../../src/runs/file/locks/project-lock.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "lock-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const { signal } = new AbortController();
/** The lock as a process of its own has it. */
const lockOfAProcess = () => machineLock(() => folder, systemClock);
const isHeld = () => isLeased(folder, "write", Date.now);
const generation = async () => Math.max(...(await readdir(folder)).map((file) => Number(file.split(".").at(-1)) || 0));

test("a lease stays from one request to the next, and is given back soon after the last one", async () => {
  const lock = lockOfAProcess();
  for (let request = 0; request < 10; request += 1) {
    await lock.hold("p", async () => expect(await isHeld()).toBe(true), signal);
  }
  expect(await generation()).toBe(1);
  await expect.poll(isHeld).toBe(false);
  await lock.hold("p", async () => expect(await isHeld()).toBe(true), signal);
  expect(await generation()).toBe(2);
  await expect.poll(isHeld).toBe(false);
});

test("whoever waits gets a turn after the request in flight, and no two hold it at once", async () => {
  const order: string[] = [];
  let writers = 0;
  const requests = async (name: string, count: number, ms: number) => {
    const lock = lockOfAProcess();
    for (let request = 0; request < count; request += 1) {
      await lock.hold(
        "p",
        async () => {
          writers += 1;
          expect(writers).toBe(1);
          order.push(name);
          await delay(ms);
          writers -= 1;
        },
        signal,
      );
    }
  };
  const busy = requests("busy", 30, 30);
  await delay(100);
  const before = order.length;
  await requests("late", 3, 5);
  // One may be in flight when it asks, another one may have just begun; each later turn is its own again.
  expect(order.slice(before).filter((name) => name === "busy").length).toBeLessThan(15);
  await busy;
  expect(order.filter((name) => name === "late")).toHaveLength(3);
  await expect.poll(isHeld).toBe(false);
});

test("what fails gives the lease back, too", async () => {
  const failing = lockOfAProcess().hold("p", () => Promise.reject(new Error("the request failed")), signal);
  await expect(failing).rejects.toThrow("the request failed");
  await expect.poll(isHeld).toBe(false);
});

test("whoever is stopped while it waits takes nothing", async () => {
  const stopping = new AbortController();
  let finish = (): void => {};
  const holding = lockOfAProcess().hold("p", () => new Promise<void>((resolve) => (finish = resolve)), signal);
  await expect.poll(isHeld).toBe(true);
  const waiting = lockOfAProcess().hold("p", async () => expect.unreachable(), stopping.signal);
  stopping.abort(new Error("stopped"));
  await expect(waiting).rejects.toThrow("stopped");
  finish();
  await holding;
});

test("a process that stood still, so that another took over, takes the lease anew", async () => {
  const [still, other] = [lockOfAProcess(), lockOfAProcess()];
  let holders = 0;
  const work = async (ms: number) => {
    holders += 1;
    expect(holders).toBe(1);
    await delay(ms);
    holders -= 1;
  };
  await still.hold("p", () => work(1), signal);
  const [file = ""] = (await readdir(folder)).filter((name) => name.startsWith("write.lease."));
  const before = new Date(Date.now() - 11_000);
  await utimes(join(folder, file), before, before);
  await delay(1);
  const taken = other.hold("p", () => work(300), signal);
  await expect.poll(generation).toBe(2);
  for (let request = 0; request < 5; request += 1) await still.hold("p", () => work(5), signal);
  await taken;
});

test("a clock that differs from that of the file system lets nobody starve, and nobody wait in vain", async () => {
  const ahead = machineLock(() => folder, { ...systemClock, now: () => Date.now() + 3000 });
  let isOver = false;
  await ahead.hold("p", async () => {}, signal);
  const late = lockOfAProcess().hold("p", async () => {}, signal);
  const busy = (async () => {
    while (!isOver) await ahead.hold("p", () => delay(10), signal);
  })();
  await late;
  isOver = true;
  await busy;
  const asked = new Date(Date.now() + 3_600_000);
  await utimes(join(folder, "write.asked"), asked, asked);
  const before = await generation();
  for (let request = 0; request < 5; request += 1) await ahead.hold("p", async () => {}, signal);
  expect(await generation()).toBeLessThan(before + 3);
});

test("where nobody can tell who asked, what was done counts, and the lease is given back", async () => {
  await symlink("write.asked", join(folder, "write.asked"));
  expect(await lockOfAProcess().hold("p", async () => "answered", signal)).toBe("answered");
  expect(await isHeld()).toBe(false);
});
