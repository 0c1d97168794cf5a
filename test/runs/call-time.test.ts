import { expect, test } from "vitest";
import { beyondCall, duringCall } from "../../src/platform/clock.ts";
import { callUntil, inCallTime } from "../../src/runs/postgres/database.ts";
import { StoreUnavailableError } from "../../src/runs/store.ts";
import { virtualClock } from "../events/virtual-clock.ts";

const NEVER = new Promise<never>(() => {});

test("what a call waits for is given up with the wait of the call", async () => {
  const clock = virtualClock();
  const until = clock.monotonic() + 1000;
  const waited = duringCall(until, () => inCallTime(NEVER, clock));
  await expect(waited).rejects.toThrow(StoreUnavailableError);
  expect(clock.monotonic()).toBe(until);
});

test("what is there before that is given, also where the wait of the call is over", async () => {
  const clock = virtualClock();
  await duringCall(clock.monotonic() - 1, async () => {
    expect(await inCallTime(Promise.resolve("there"), clock)).toBe("there");
  });
});

test("nothing is waited for once the wait of the call is over", async () => {
  const clock = virtualClock();
  const until = clock.monotonic();
  await expect(duringCall(until, () => inCallTime(NEVER, clock))).rejects.toThrow(StoreUnavailableError);
  expect(clock.monotonic()).toBe(until);
});

test("what a call began is bound by it only until it is answered, and not where it goes on by itself", async () => {
  let answer = (): void => {};
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  let later: Promise<number | undefined> | undefined;
  await duringCall(7, async () => {
    expect(callUntil()).toBe(7);
    expect(beyondCall(callUntil)).toBeUndefined();
    later = answered.then(callUntil);
  });
  answer();
  expect(await later).toBeUndefined();
  expect(callUntil()).toBeUndefined();
});
