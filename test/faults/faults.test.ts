import { describe, expect, inject, test } from "vitest";
import { scheduleOf } from "./schedule.ts";
import { shrink, violationsOf } from "./shrink.ts";

const { from, count } = inject("faultSchedules") ?? { from: 1, count: 400 };
const SEEDS_PER_TEST = 50;

describe("a run ends as its report says, under any schedule of faults", () => {
  const firsts = Array.from({ length: Math.ceil(count / SEEDS_PER_TEST) }, (_, test) => from + test * SEEDS_PER_TEST);
  test.each(firsts)("50 schedules from seed %i", async (first) => {
    for (let seed = first; seed < Math.min(first + SEEDS_PER_TEST, from + count); seed += 1) {
      const schedule = scheduleOf(seed);
      if ((await violationsOf(schedule)).length === 0) continue;
      const smallest = await shrink(schedule);
      expect.fail(
        [
          `seed ${seed} fails; what is needed for it:`,
          JSON.stringify(smallest, undefined, 1),
          ...(await violationsOf(smallest)),
        ].join("\n"),
      );
    }
  });
});
