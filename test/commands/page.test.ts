import { expect, test } from "vitest";
import { nobodyLooks } from "../../src/commands/page.ts";

const MINUTE_MS = 60_000;

test("the page of this machine ends ten minutes after the last page was closed", async () => {
  let now = 0;
  const clock = {
    now: () => now,
    async sleep(ms: number) {
      now += ms;
    },
  };
  // A page is open from minute 5 to minute 20.
  await nobodyLooks(() => (now >= 5 * MINUTE_MS && now < 20 * MINUTE_MS ? 1 : 0), clock);
  expect(now / MINUTE_MS).toBeCloseTo(30, 1);
});

test("nobody who never comes keeps it longer than ten minutes", async () => {
  let now = 0;
  const clock = {
    now: () => now,
    async sleep(ms: number) {
      now += ms;
    },
  };
  await nobodyLooks(() => 0, clock);
  expect(now / MINUTE_MS).toBeCloseTo(10, 1);
});
