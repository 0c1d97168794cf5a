import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { systemClock } from "../../../src/platform/clock.ts";
import { processLock } from "../../../src/runs/files/lease.ts";

const never = new AbortController().signal;

test("callers take turns, however many runs each has; the runs of one take turns among themselves", async () => {
  const lock = processLock(systemClock);
  const order: string[] = [];
  const run = async (caller: string, name: string, requests: number): Promise<void> => {
    for (let request = 0; request < requests; request += 1) {
      const work = async (): Promise<void> => {
        order.push(name);
        await setImmediate();
      };
      await lock.hold("shop", work, never, caller);
    }
  };
  await Promise.all([run("a", "a1", 4), run("a", "a2", 4), run("a", "a3", 4), run("b", "b1", 6), run("c", "c1", 1)]);
  const callers = order.map(([caller = ""]) => caller).join("");
  expect(callers).toMatch(/^abc(ab)+a*$/);
  expect(order.filter((name) => name.startsWith("a")).slice(0, 6)).toEqual(["a1", "a2", "a3", "a1", "a2", "a3"]);
});

test("one that is given up leaves the queue, and the next one begins", async () => {
  const lock = processLock(systemClock);
  const order: string[] = [];
  const giving = new AbortController();
  const held = lock.hold("shop", () => setImmediate(), never, "a");
  const givenUp = lock.hold("shop", async () => void order.push("given up"), giving.signal, "b");
  const next = lock.hold("shop", async () => void order.push("next"), never, "b");
  giving.abort(new Error("enough"));
  await expect(givenUp).rejects.toThrow("enough");
  await Promise.all([held, next]);
  expect(order).toEqual(["next"]);
  await expect(lock.hold("shop", async () => 1, AbortSignal.abort(new Error("before")), "a")).rejects.toThrow("before");
  expect(await lock.hold("shop", async () => 2, never)).toBe(2);
});

test("what a work throws is its own, and the next one begins", async () => {
  const lock = processLock(systemClock);
  const failing = lock.hold("shop", () => Promise.reject(new RangeError("mine")), never, "a");
  const next = lock.hold("shop", async () => 1, never, "b");
  await expect(failing).rejects.toThrow("mine");
  expect(await next).toBe(1);
});
