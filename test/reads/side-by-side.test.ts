import { describe, expect, test } from "vitest";
import { AmbiguousError, BusyError, RejectedError } from "../../src/api/errors.ts";
import { AdaptiveConcurrency } from "../../src/api/management.ts";
import { sideBySide } from "../../src/reads/side-by-side.ts";

/** Promises that the test resolves by number. Also counts how many were started, in total and at the same time. */
function byHand() {
  const open = new Map<number, { resolve: () => void; reject: (error: unknown) => void }>();
  const begun: number[] = [];
  return {
    open,
    begun,
    read: (number: number, signal: AbortSignal) =>
      new Promise<string>((resolve, reject) => {
        begun.push(number);
        const settle = (end: () => void) => () => {
          open.delete(number);
          end();
        };
        open.set(number, {
          resolve: settle(() => resolve(`value ${number}`)),
          reject: (error) => settle(() => reject(error))(),
        });
        signal.addEventListener("abort", () => settle(() => reject(signal.reason))(), { once: true });
      }),
  };
}

const numbers = (count: number) => () => Array.from({ length: count }, (_, number) => number);
/** Waits until everything that is ready has run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe("reading side by side", () => {
  test("keeps to the order of the source and to the width, and reads only so far ahead", async () => {
    const { open, begun, read } = byHand();
    const told: (string | undefined)[] = [];
    const all = (async () => {
      const job = { source: numbers(30), map: read, pace: { width: 4 } };
      for await (const { value } of sideBySide(job)) told.push(value);
    })();
    await settled();
    expect(begun).toEqual([0, 1, 2, 3]);
    // All except the first are ready. The results after it wait, and at most twice the width is read ahead.
    for (let round = 0; round < 20; round += 1) {
      for (const number of [...open.keys()].filter((one) => one > 0).reverse()) open.get(number)?.resolve();
      await settled();
      expect(open.size).toBeLessThanOrEqual(4);
    }
    expect(told).toEqual([]);
    expect(begun.length).toBe(8);
    while (begun.length < 30 || open.size > 0) {
      for (const { resolve } of [...open.values()]) resolve();
      await settled();
    }
    await all;
    expect(told).toEqual(numbers(30)().map((number) => `value ${number}`));
  });

  test("what needs no read holds nothing up, and is not kept", async () => {
    const { open, begun, read } = byHand();
    const job = {
      source: numbers(10_000),
      map: (number: number, signal: AbortSignal) => (number % 1000 === 0 ? read(number, signal) : undefined),
      pace: { width: 4 },
    };
    const found: string[] = [];
    let last = -1;
    const all = (async () => {
      for await (const { from, value } of sideBySide(job)) {
        expect(from).toBeGreaterThan(last);
        last = from;
        if (value !== undefined) found.push(value);
      }
    })();
    await expect.poll(() => begun.length).toBe(4);
    while (found.length < 10) {
      for (const { resolve } of [...open.values()]) resolve();
      await settled();
    }
    await all;
    expect(last).toBe(9999);
  });

  test("reads everything where reads have no result and end in any order, also once it reads less at a time", async () => {
    const { open, begun, read } = byHand();
    const pace = { width: 8 };
    const all = (async () => {
      const map = (number: number, signal: AbortSignal) => read(number, signal).then(() => undefined);
      const job = { source: numbers(300), map, unreadAhead: 10_000, pace };
      for await (const _ of sideBySide(job));
    })();
    await settled();
    for (let round = 0; round < 1000 && open.size > 0; round += 1) {
      // The last is resolved first, and the first one last.
      [...open.values()].at(-1)?.resolve();
      if (round === 100) pace.width = 1;
      await settled();
    }
    await all;
    expect(begun).toEqual(numbers(300)());
  });

  test("stops at once when enough was taken: nothing more begins, and what is under way is aborted", async () => {
    const { open, begun, read } = byHand();
    const job = { source: numbers(100), map: read, pace: { width: 4 } };
    for await (const { value } of (async function* () {
      const reading = sideBySide(job);
      setImmediate(() => open.get(0)?.resolve());
      yield* reading;
    })()) {
      expect(value).toBe("value 0");
      break;
    }
    await settled();
    expect(open.size).toBe(0);
    expect(begun).toEqual([0, 1, 2, 3]);
  });

  test.each([
    ["at once", (_number: number) => "no read"],
    [
      "after a look into what is kept",
      async (_number: number, withoutRead: () => void) => {
        await settled();
        withoutRead();
        return "no read";
      },
    ],
  ])(
    "all reads run although most need none (%s), and a slow one holds them up no more than before",
    async (_case, unread) => {
      const { open, begun, read } = byHand();
      const job = {
        source: numbers(5000),
        map: (number: number, signal: AbortSignal, withoutRead: () => void) =>
          number % 100 === 0 ? read(number, signal) : unread(number, withoutRead),
        pace: { width: 4 },
        unreadAhead: 1000,
      };
      const told: number[] = [];
      const all = (async () => {
        for await (const { from } of sideBySide(job)) told.push(from);
      })();
      await expect.poll(() => begun).toEqual([0, 100, 200, 300]);
      // The first read is slow. At most twice the width is read ahead, even if many objects need no read.
      for (let round = 0; round < 10_000 && begun.length < 8; round += 1) {
        for (const number of [...open.keys()].filter((one) => one > 0)) open.get(number)?.resolve();
        await settled();
      }
      for (let round = 0; round < 100; round += 1) await settled();
      expect(begun).toEqual([0, 100, 200, 300, 400, 500, 600, 700]);
      open.get(0)?.resolve();
      while (told.length < 5000) {
        for (const { resolve } of [...open.values()]) resolve();
        await settled();
      }
      await all;
      expect(told).toEqual(numbers(5000)());
    },
  );

  test("gives what came before an error, and aborts the rest", async () => {
    const { open, read } = byHand();
    const told: (string | undefined)[] = [];
    const all = (async () => {
      const job = { source: numbers(100), map: read, pace: { width: 4 } };
      for await (const { value } of sideBySide(job)) told.push(value);
    })();
    const failed = expect(all).rejects.toThrow("number 2");
    await settled();
    open.get(2)?.reject(new Error("number 2"));
    await settled();
    open.get(1)?.resolve();
    open.get(0)?.resolve();
    await failed;
    expect(told).toEqual(["value 0", "value 1"]);
    expect(open.size).toBe(0);
  });

  test("ends when the caller gives up", async () => {
    const { open, read } = byHand();
    const caller = new AbortController();
    const all = (async () => {
      const job = { source: numbers(100), map: read, signal: caller.signal, pace: { width: 4 } };
      for await (const _ of sideBySide(job)) throw new Error("nothing was read");
    })();
    const ended = expect(all).rejects.toThrow("given up");
    await settled();
    caller.abort(new Error("given up"));
    await ended;
    expect(open.size).toBe(0);
  });
});

describe("the width of reads", () => {
  function paceOf(most: number) {
    let now = 1_000_000;
    const clock = { now: () => now, monotonic: () => now, sleep: async () => {} };
    const pass = (ms: number) => {
      now += ms;
    };
    return { pace: new AdaptiveConcurrency(most, clock), pass };
  }
  const busy = new BusyError({ operation: "getOption", statusCode: 429, retryAfterMs: 0 });
  const down = new AmbiguousError({ operation: "getOption", reason: "status 503", statusCode: 503 });
  const rejected = new RejectedError({ kind: "business", statusCode: 404, operation: "getOption", route: "" });
  const failing = (pace: AdaptiveConcurrency, error: Error) =>
    expect(pace.run(() => Promise.reject(error))).rejects.toBe(error);

  test.each([
    ["a 429", busy],
    ["a 5xx", down],
  ] as const)("halves after %s, and comes back after a while", async (_, error) => {
    const { pace, pass } = paceOf(16);
    await failing(pace, error);
    expect(pace.width).toBe(8);
    pass(10);
    await failing(pace, error);
    expect(pace.width).toBe(4);
    pass(6000);
    expect(pace.width).toBe(8);
    pass(6000);
    expect(pace.width).toBe(16);
    pass(60_000);
    expect(pace.width).toBe(16);
  });

  test("halves once for reads that left together, and not for a rejection", async () => {
    const { pace, pass } = paceOf(16);
    await failing(pace, rejected);
    expect(pace.width).toBe(16);
    const { open, read } = byHand();
    const never = new AbortController().signal;
    const reads = [0, 1, 2, 3].map((number) => pace.run(() => read(number, never)));
    await settled();
    pass(30);
    for (const { reject } of [...open.values()]) reject(busy);
    await Promise.allSettled(reads);
    expect(pace.width).toBe(8);
  });

  test("lets no more run than that at the same time, tries again included, and none that was given up", async () => {
    const { pace } = paceOf(2);
    const { open, begun, read } = byHand();
    const caller = new AbortController();
    const never = new AbortController().signal;
    const reads = [0, 1, 2, 3].map((number) =>
      pace.run(() => read(number, never), number === 2 ? caller.signal : undefined),
    );
    await settled();
    expect(begun).toEqual([0, 1]);
    const third = expect(reads[2]).rejects.toThrow("given up");
    caller.abort(new Error("given up"));
    await third;
    open.get(0)?.resolve();
    await settled();
    expect(begun).toEqual([0, 1, 3]);
    for (const { resolve } of [...open.values()]) resolve();
    expect(await Promise.allSettled(reads)).toMatchObject([{ value: "value 0" }, {}, {}, { value: "value 3" }]);
  });
});
