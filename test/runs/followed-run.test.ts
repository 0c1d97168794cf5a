import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { RunState } from "../../src/changes/change-state.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { followedRun } from "../../src/runs/kept-runs.ts";

const NOTHING = new RunState();

/** A clock that moves only when the test moves it. */
function handClock(): Clock & { advance(ms: number): Promise<void> } {
  let now = 0;
  let sleepers: readonly { readonly at: number; readonly wake: () => void }[] = [];
  return {
    now: () => now,
    monotonic: () => now,
    sleep: (ms) =>
      new Promise((wake) => {
        sleepers = [...sleepers, { at: now + ms, wake }];
      }),
    async advance(ms) {
      for (const until = now + ms; now < until; now += 10) {
        for (const { at, wake } of sleepers) if (at <= now) wake();
        sleepers = sleepers.filter(({ at }) => at > now);
        await setImmediate();
      }
    },
  };
}

/** Follows a run that another process executes. Returns the times at which the run was read. */
function start(isTold: boolean, readingMs = 0) {
  const clock = handClock();
  const reads: number[] = [];
  let tell = (): void => {};
  let driven = true;
  const run = followedRun<RunState>(NOTHING, {
    clock,
    signal: new AbortController().signal,
    isDriven: async () => driven,
    read: async () => {
      reads.push(clock.now());
      if (readingMs > 0) await clock.sleep(readingMs);
      return NOTHING;
    },
    whileFollowed: async () => {},
    ...(isTold && {
      changes: (listener: () => void) => {
        tell = listener;
        return () => {};
      },
    }),
  });
  const rest = run.rest();
  const end = (): void => {
    driven = false;
  };
  return { clock, reads, run, rest, tell: () => tell(), end };
}

test("a notice makes it read at once, and the next one a quarter of a second later", async () => {
  const { clock, reads, tell } = start(true);
  await clock.advance(900);
  const before = reads.length;
  tell();
  await clock.advance(30);
  expect(reads.length).toBe(before + 1);
  for (let at = 0; at < 20; at += 1) {
    tell();
    await clock.advance(50);
  }
  expect(reads.length - before).toBeGreaterThanOrEqual(4);
  expect(reads.length - before).toBeLessThanOrEqual(6);
});

test.each([true, false])("without notices it reads every two seconds at the latest (told: %s)", async (isTold) => {
  const { clock, reads } = start(isTold, 300);
  await clock.advance(20_000);
  const pauses = reads.slice(1).map((at, n) => at - (reads[n] ?? 0));
  expect(Math.max(...pauses)).toBeLessThanOrEqual(2600);
  expect(Math.min(...pauses)).toBeGreaterThanOrEqual(1000);
});

test("it rests once no process drives the run any more", async () => {
  const { clock, rest, tell, end } = start(true);
  await clock.advance(1000);
  end();
  tell();
  let isOver = false;
  void rest.then(() => {
    isOver = true;
  });
  await clock.advance(300);
  expect(isOver).toBe(true);
});

test("who looks is given what the store holds at that moment, whatever was read before", async () => {
  const clock = handClock();
  let stored = NOTHING;
  const run = followedRun<RunState>(NOTHING, {
    clock,
    signal: new AbortController().signal,
    isDriven: async () => true,
    read: async () => stored,
    whileFollowed: async () => {},
  });
  void run.rest();
  await clock.advance(2500);
  stored = new RunState();
  expect(run.state()).not.toBe(stored);
  expect(await run.look()).toBe(true);
  expect(run.state()).toBe(stored);
});

test("a look that is going on does not count for a caller who came later", async () => {
  const began: (() => void)[] = [];
  const run = followedRun<RunState>(NOTHING, {
    clock: handClock(),
    signal: new AbortController().signal,
    isDriven: async () => true,
    read: () => new Promise((resolve) => began.push(() => resolve(NOTHING))),
    whileFollowed: async () => {},
  });
  const first = run.look();
  await setImmediate();
  const later = [run.look(), run.look()];
  began[0]?.();
  await first;
  await setImmediate();
  expect(began).toHaveLength(2);
  began[1]?.();
  expect(await Promise.all(later)).toEqual([true, true]);
});

test("it counts as running until what its process wrote last was read", async () => {
  const { clock, run, rest, end } = start(true, 300);
  const seen: boolean[] = [];
  run.watch(() => seen.push(run.isDriven()));
  await clock.advance(2000);
  end();
  await clock.advance(600);
  expect(run.isDriven()).toBe(true);
  await clock.advance(400);
  await rest;
  expect(run.isDriven()).toBe(false);
  expect(seen.at(-1)).toBe(false);
});
