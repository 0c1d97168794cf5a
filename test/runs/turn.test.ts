import { expect, test } from "vitest";
import {
  checkFresh,
  HeldBackError,
  LeaseLostError,
  permitWithoutLease,
  readClocks,
  requestFence,
  type Turn,
} from "../../src/runs/turn.ts";

/** A clock whose two times (wall clock and monotonic) the test sets separately. */
function handSet() {
  const hands = { wall: 1_700_000_000_000, monotonic: 5 };
  return { hands, clock: { now: () => hands.wall, monotonic: () => hands.monotonic, sleep: async () => {} } };
}

test.each([
  ["at once", { wall: 0, monotonic: 0 }, true],
  ["two seconds later", { wall: 2000, monotonic: 2000 }, true],
  ["later than that", { wall: 2001, monotonic: 2001 }, false],
  ["after the machine was suspended, which one clock does not count", { wall: 60_000, monotonic: 10 }, false],
  ["after a standstill while the time was set back", { wall: -40_000, monotonic: 12_500 }, false],
  ["when only the time was set back, by how much ever", { wall: -3_600_000, monotonic: 10 }, false],
] as const)("a request may leave %s: %j", (_, passed, may) => {
  const { hands, clock } = handSet();
  const intent = readClocks(clock);
  hands.wall += passed.wall;
  hands.monotonic += passed.monotonic;
  const leave = () => checkFresh(intent, clock);
  if (may) expect(leave).not.toThrow();
  else expect(leave).toThrow(HeldBackError);
});

test("a request that left too late after all is told, and only that one", () => {
  const { hands, clock } = handSet();
  const late: string[] = [];
  const fence = (name: string) =>
    requestFence([permitWithoutLease(clock)], readClocks(clock), {
      renew: async () => readClocks(clock),
      onLate: () => late.push(name),
    });
  const [first, second] = [fence("first"), fence("second")];
  first.mayLeave();
  first.hasLeft();
  second.mayLeave();
  hands.monotonic += 2500;
  second.hasLeft();
  expect(late).toEqual(["second"]);
});

test("what is renewed before the last slice counts from then on", async () => {
  const { hands, clock } = handSet();
  const fence = requestFence([permitWithoutLease(clock)], readClocks(clock), {
    renew: async () => readClocks(clock),
    onLate: () => {},
  });
  hands.monotonic += 60_000;
  hands.wall += 60_000;
  expect(() => fence.mayLeave()).toThrow(HeldBackError);
  await fence.renew();
  expect(() => fence.mayLeave()).not.toThrow();
});

test("a request leaves only while all that it leaves by is held", () => {
  const { clock } = handSet();
  const lost: Turn = {
    ...permitWithoutLease(clock),
    mayLeave: () => {
      throw new LeaseLostError("lost");
    },
  };
  const more = { renew: async () => readClocks(clock), onLate: () => {} };
  expect(() => requestFence([permitWithoutLease(clock), lost], readClocks(clock), more).mayLeave()).toThrow(
    LeaseLostError,
  );
});
