import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { runWatcher } from "../../src/mcp/run-updates.ts";
import { virtualClock } from "../events/virtual-clock.ts";

test("a caller who watches very many runs keeps no other caller waiting", async () => {
  const clock = virtualClock();
  const watcher = runWatcher(clock);
  const over = new AbortController();
  const never = () => new Promise<boolean>(() => undefined);
  watcher.add("ann", Array(1000).fill(never), over.signal);
  expect(getEventListeners(over.signal, "abort")).toHaveLength(1);
  const looked: number[] = [];
  await new Promise<void>((resolve) => {
    const look = async (): Promise<boolean> => {
      looked.push(clock.monotonic());
      if (looked.length === 3) resolve();
      return looked.length < 3;
    };
    watcher.add("bob", [look], over.signal);
  });
  expect(looked.at(-1)).toBeLessThan(10_000);
  over.abort();
});

test("a caller whose last watched run has ended can watch others, and an earlier stream that ends does not end them", async () => {
  const watcher = runWatcher(virtualClock());
  const streams = [new AbortController(), new AbortController()];
  const looks = [0, 0];
  const watch = (at: number, times: number) =>
    new Promise<void>((resolve) => {
      const look = async (): Promise<boolean> => {
        looks[at] = (looks[at] ?? 0) + 1;
        if (looks[at] === times) resolve();
        return at === 1;
      };
      watcher.add("ann", [look], streams[at]?.signal ?? AbortSignal.abort());
    });
  await watch(0, 1);
  const second = watch(1, 5);
  streams[0]?.abort();
  await second;
  expect(looks[0]).toBe(1);
  streams[1]?.abort();
});
