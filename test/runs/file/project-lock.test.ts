import { mkdtemp, readdir, rm, symlink, utimes } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Clock } from "../../../src/platform/clock.ts";
import { isLeased, machineLock, type SharedLeases, sharedLock } from "../../../src/runs/files/lease.ts";
import type { Lease } from "../../../src/runs/turn.ts";

let folder = "";
beforeEach(async () => {
  // A lease is kept for the next request for a while. With fake timers, a test decides when that time ends.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  folder = await mkdtemp(join(tmpdir(), "lock-"));
});
afterEach(async () => {
  vi.useRealTimers();
  await rm(folder, { recursive: true, force: true });
});

const { signal } = new AbortController();
/** A clock whose sleeps end at once, after others could continue, and move its time forward. */
function ownClock(): Clock & { pass(ms: number): void } {
  let passedMs = 0;
  return {
    now: Date.now,
    monotonic: () => passedMs,
    async sleep(ms, stopped) {
      await setImmediate();
      stopped?.throwIfAborted();
      passedMs += ms;
      vi.advanceTimersByTime(ms);
    },
    pass(ms) {
      passedMs += ms;
    },
  };
}
/** Returns a new lock, as if another process had created it. */
const lockOfAProcess = (clock: Clock = ownClock()) => machineLock(() => folder, clock);
const isHeld = () => isLeased(folder, "write", Date.now);
const generation = async () => Math.max(...(await readdir(folder)).map((file) => Number(file.split(".").at(-1)) || 0));

/** Lets the time pass for which a lease is kept. Waits until the lease is released. */
async function expectGivenBack(): Promise<void> {
  await expect
    .poll(() => {
      vi.advanceTimersByTime(1000);
      return isHeld();
    })
    .toBe(false);
}

/** Creates a promise that the test resolves. */
function gate() {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}

test("a lease stays from one request to the next, and is given back soon after the last one", async () => {
  const lock = lockOfAProcess();
  for (let request = 0; request < 10; request += 1) {
    await lock.hold("p", async () => expect(await isHeld()).toBe(true), signal);
  }
  expect(await generation()).toBe(1);
  expect(await isHeld()).toBe(true);
  await expectGivenBack();
  await lock.hold("p", async () => expect(await isHeld()).toBe(true), signal);
  expect(await generation()).toBe(2);
  await expectGivenBack();
});

/** Leases in memory, so that several locks of this process can act as those of several processes. */
function leasesInMemory(): SharedLeases<Lease> {
  let asked = 0;
  let holder: Lease | undefined;
  return {
    async take() {
      if (holder !== undefined) return undefined;
      const lease: Lease = {
        ...{ epoch: 1n, isTakenOver: false, lost: new AbortController().signal },
        settled: async () => {},
        check: async () => {},
        stillHeld: async () => true,
        renew: async () => ({ wall: 0, monotonic: 0 }),
        mayLeave: () => {},
        async release() {
          holder = undefined;
        },
      };
      holder = lease;
      return lease;
    },
    async ask() {
      asked += 1;
    },
    asked: async () => asked,
  };
}

/**
 * A common time for this many tasks. As soon as all of them sleep, the time moves to the next end of a sleep, so that
 * the order of all events is fixed.
 */
function commonTime(awake: number) {
  let now = 0;
  let sleepers: readonly { readonly at: number; readonly wake: () => void }[] = [];
  const moveOn = (): void => {
    const [next, ...others] = sleepers.toSorted((one, other) => one.at - other.at);
    if (next === undefined || sleepers.length < awake) return;
    sleepers = others;
    vi.advanceTimersByTime(next.at - now);
    now = next.at;
    // What the timers have started runs first.
    void setImmediate().then(next.wake);
  };
  return {
    now: () => now,
    monotonic: () => now,
    sleep(ms: number) {
      return new Promise<void>((wake) => {
        sleepers = [...sleepers, { at: now + ms, wake }];
        moveOn();
      });
    },
    /** Called when one of the tasks has ended. */
    leave() {
      awake -= 1;
      moveOn();
    },
  };
}

test("whoever waits gets a turn after the request in flight, and no two hold it at once", async () => {
  const order: string[] = [];
  let writers = 0;
  const leases = leasesInMemory();
  const time = commonTime(2);
  const requests = async (name: string, count: number, { beginAt = 0, ms }: { beginAt?: number; ms: number }) => {
    const lock = sharedLock(leases, time, 20);
    if (beginAt > 0) await time.sleep(beginAt);
    for (let request = 0; request < count; request += 1) {
      await lock.hold(
        "p",
        async () => {
          writers += 1;
          expect(writers).toBe(1);
          order.push(name);
          await time.sleep(ms);
          writers -= 1;
        },
        signal,
      );
    }
    time.leave();
  };
  await Promise.all([requests("busy", 30, { ms: 30 }), requests("late", 3, { beginAt: 100, ms: 5 })]);
  // The other process asks for the lease during the fourth request. It then keeps the lease for all three of its
  // requests.
  expect(order.slice(0, 10).join(" ")).toBe("busy busy busy busy late late late busy busy busy");
  expect(order.slice(10)).toEqual(Array.from({ length: 23 }, () => "busy"));
});

test("what fails gives the lease back, too", async () => {
  const failing = lockOfAProcess().hold("p", () => Promise.reject(new Error("the request failed")), signal);
  await expect(failing).rejects.toThrow("the request failed");
  await expectGivenBack();
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
  const clock = ownClock();
  const still = lockOfAProcess(clock);
  const other = lockOfAProcess();
  const order: string[] = [];
  let holders = 0;
  const work = async (name: string, rest?: Promise<void>) => {
    holders += 1;
    expect(holders).toBe(1);
    order.push(name);
    await rest;
    holders -= 1;
  };
  await still.hold("p", () => work("still"), signal);
  const [file = ""] = (await readdir(folder)).filter((name) => name.startsWith("write.lease."));
  const before = new Date(Date.now() - 11_000);
  await utimes(join(folder, file), before, before);
  clock.pass(11_000);
  const { opened, open } = gate();
  const taken = other.hold("p", () => work("other", opened), signal);
  await expect.poll(generation).toBe(2);
  const anew = (async () => {
    for (let request = 0; request < 5; request += 1) await still.hold("p", () => work("still"), signal);
  })();
  // The first process has lost the lease, so it asks for it.
  await expect.poll(() => readdir(folder)).toContain("write.asked");
  await expect.poll(() => order).toEqual(["still", "other"]);
  open();
  await Promise.all([taken, anew]);
  expect(order).toEqual(["still", "other", ...Array.from({ length: 5 }, () => "still")]);
});

test("a clock that differs from that of the file system lets nobody starve, and nobody wait in vain", async () => {
  const waiting = ownClock();
  let isOver = false;
  const ahead = lockOfAProcess({
    ...ownClock(),
    now: () => Date.now() + 3000,
    // Sleeps long enough for those who wait to check twice.
    async sleep(ms) {
      const until = waiting.monotonic() + 40;
      while (!isOver && waiting.monotonic() < until) await setImmediate();
      if (isOver) vi.advanceTimersByTime(ms);
    },
  });
  await ahead.hold("p", async () => {}, signal);
  const late = lockOfAProcess(waiting).hold("p", async () => {}, signal);
  const busy = (async () => {
    while (!isOver) await ahead.hold("p", () => setImmediate(), signal);
  })();
  await late.finally(() => {
    isOver = true;
  });
  await busy;
  await expectGivenBack();
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
