import { describe, expect, test } from "vitest";
import { ServerClock } from "../../../src/changes/settle/evidence.ts";

const SENT = 1_800_000_000_000;
const wholeSecond = (time: number): number => Math.floor(time / 1000) * 1000;

/**
 * Returns a clock after one answered request. It took `there` ms until the service created the object, and `back` ms
 * until the answer.
 */
function clockAfter({ skew, there, back }: { readonly skew: number; readonly there: number; readonly back: number }) {
  const clock = new ServerClock();
  clock.observeMade([SENT + there + skew], SENT, SENT + there + back);
  return clock;
}

/** Reads the header `Date` when the clock wants it. Each way takes 1 ms. */
function read(clock: ServerClock, now: number, question: { readonly gap: number; readonly skew: number }): void {
  const wait = clock.nextReadingIn(now, question.gap);
  const from = wholeSecond(now + wait + 1 + question.skew);
  clock.observe({ from, to: from + 999, sentAt: now + wait, receivedAt: now + wait + 2 });
}

describe.each([0, 437, -86_400_123, 3_600_000])("a service whose clock is %d ms ahead", (skew) => {
  const first = SENT + 5000;

  test("a slow first request decides nothing about what came 3 ms after a later attempt; one reading does", () => {
    const clock = clockAfter({ skew, there: 700, back: 5 });
    expect(clock.order(first + 3 + skew, first)).toBe("unclear");
    expect(clock.isLikelyAfter(first + 3 + skew, first)).toBe(false);
    read(clock, first + 10, { gap: 4 + skew, skew });
    read(clock, first + 10, { gap: 4 + skew, skew });
    expect(clock.order(first + 3 + skew, first)).toBe("after");
  });

  test("nor about what came 100 ms before it, and readings only show that no further one would help", () => {
    const clock = clockAfter({ skew, there: 5, back: 700 });
    const older = first - 100 + skew;
    expect(clock.mayShowOrder(older, first)).toBe(true);
    for (let reading = 0; reading < 2; reading += 1) read(clock, first + 10, { gap: older - first + 1 + 2, skew });
    expect(clock.mayShowOrder(older, first)).toBe(false);
    expect(clock.order(older, first)).toBe("unclear");
    expect(clock.isLikelyAfter(older, first)).toBe(false);
  });

  test.each([500, 2000, 5000])("a header that is %d ms ahead makes nothing look older than it is", (ahead) => {
    const clock = clockAfter({ skew, there: 700, back: 5 });
    for (let reading = 0; reading < 3; reading += 1) read(clock, first + 10, { gap: skew + ahead, skew: skew + ahead });
    expect(clock.order(first + 3 + skew, first)).toBe("unclear");
    expect(clock.order(first + 700 + skew, first)).toBe("after");
  });

  test("every answer narrows what is known, not only the first", () => {
    const clock = clockAfter({ skew, there: 700, back: 700 });
    clock.observeMade([SENT + 2000 + 4 + skew, SENT + 2000 + 2 + skew], SENT + 2000, SENT + 2006);
    expect(clock.order(first + 2 + skew, first)).toBe("after");
    read(clock, first + 10, { gap: skew, skew });
    expect(clock.order(first - 3 + skew, first)).toBe("before");
  });

  test("a header of another clock than the IDs is left alone", () => {
    const clock = clockAfter({ skew, there: 300, back: 5 });
    read(clock, first, { gap: 0, skew: skew + 60_000 });
    expect(clock.mayShowOrder(first + 3 + skew, first)).toBe(false);
    expect(clock.order(first + 3 + skew, first)).toBe("unclear");
    // The header is right from now on, but a clock that was wrong once is never trusted.
    for (let reading = 0; reading < 2; reading += 1) read(clock, first + 10, { gap: 4 + skew, skew });
    expect(clock.order(first + 3 + skew, first)).toBe("unclear");
    expect(clock.order(first + 300 + skew, first)).toBe("after");
    expect(clock.mayBeBefore(first - 6 + skew, first)).toBe(true);
    expect(clock.order(first - 6 + skew, first)).toBe("unclear");
  });

  test("the clock may have been set back since the header was last read, so nothing is proven to be older", () => {
    const clock = clockAfter({ skew, there: 5, back: 5 });
    const older = first - 10 + skew;
    expect(clock.order(older, first)).toBe("unclear");
    read(clock, first - 2000, { gap: skew, skew });
    expect(clock.order(older, first)).toBe("unclear");
    expect(clock.mayShowOrder(older, first)).toBe(true);
    read(clock, first + 10, { gap: skew, skew });
    expect(clock.order(older, first)).toBe("before");
    expect(clock.mayShowOrder(older, first)).toBe(false);
  });

  test("nor does an answer prove it that was too slow to show whether the clock was set back", () => {
    const clock = clockAfter({ skew, there: 5, back: 5 });
    const from = wholeSecond(first + skew + 20);
    clock.observe({ from, to: from + 999, sentAt: first, receivedAt: first + 30_000 });
    expect(clock.order(first - 3000 + skew, first)).toBe("unclear");
    expect(clock.mayShowOrder(first - 3000 + skew, first)).toBe(true);
  });
});

test("readings of long ago are forgotten, since clocks drift apart", () => {
  const hour = 3_600_000;
  const clock = clockAfter({ skew: 0, there: 1, back: 1 });
  expect(clock.mayBeBefore(SENT + hour - 30, SENT + hour)).toBe(true);
  // By now the service's clock is 40 ms behind, so objects that are created after the attempt look older.
  clock.observeMade([SENT + hour - 40 + 2], SENT + hour, SENT + hour + 4);
  expect(clock.order(SENT + hour - 40 + 3, SENT + hour)).toBe("after");
});

describe("before anything of our own was compared with it, the header proves nothing", () => {
  test.each([-5000, -500, 0, 500, 5000])("%d ms ahead of the clock inside IDs", (ahead) => {
    const clock = new ServerClock();
    for (let reading = 0; reading < 3; reading += 1) read(clock, SENT + 10, { gap: ahead, skew: ahead });
    clock.observeSeen(SENT + 3, SENT + 100);
    expect(clock.order(SENT + 3, SENT)).toBe("unclear");
    expect(clock.isLikelyAfter(SENT + 3, SENT)).toBe(false);
    expect(clock.mayShowOrder(SENT + 3, SENT)).toBe(false);
    // An object that an answer names existed at that time. So another object with an older ID is older, unless the clock
    // was set back in between.
    expect(clock.mayBeBefore(SENT - 98, SENT)).toBe(ahead !== -5000);
    expect(clock.order(SENT - 98, SENT)).toBe("unclear");
  });
});

describe("what an earlier process knew about the service's clock", () => {
  const then = clockAfter({ skew: 437, there: 700, back: 5 }).ahead(SENT + 1000);
  const [first, now] = [SENT + 2000, SENT + 5000];
  const atAttempt = first + 437;

  test("lets a later process believe the header, which shows that an object is newer than the attempt", () => {
    const clock = new ServerClock();
    expect(then).toEqual({ lowest: 432, highest: 1137 });
    if (then !== undefined) clock.recall(then, first, now);
    expect(clock.order(atAttempt + 3, first)).toBe("unclear");
    for (let reading = 0; reading < 2; reading += 1) read(clock, now, { gap: 4 + 437, skew: 437 });
    expect(clock.order(atAttempt + 3, first)).toBe("after");
    expect(clock.order(atAttempt - 3, first)).toBe("unclear");
  });

  test("does not count after five minutes, or against what the later process knows", () => {
    const [late, other] = [new ServerClock(), clockAfter({ skew: 5000, there: 5, back: 5 })];
    if (then !== undefined) late.recall(then, first, first + 301_000);
    if (then !== undefined) other.recall(then, first, now);
    expect(late.ahead(first + 301_000)).toBeUndefined();
    expect(other.ahead(now)).toEqual({ lowest: 4995, highest: 5005 });
  });

  test("is not passed on if it is old, or if the header contradicts it", () => {
    const clock = clockAfter({ skew: 0, there: 300, back: 5 });
    expect(clock.ahead(SENT + 302_000)).toBeUndefined();
    read(clock, first, { gap: 0, skew: 60_000 });
    expect(clock.ahead(first)).toBeUndefined();
  });
});
