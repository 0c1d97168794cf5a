import { describe, expect, inject, test } from "vitest";
import { checkOtherWriter } from "./second-writer.ts";
import { checkCallUndone, checkPlanUndone, sharedServices } from "./undone-properties.ts";

/** Which seeds to try. The long run, `npm run test:faults`, has several parts with 10,000 seeds together. */
const { from, count } = inject("faultSchedules") ?? { from: 1, count: 40 };

const CHECKS = [
  ["a plan is applied as the file means, and undone, and that undone", checkPlanUndone],
  ["what any call did is undone, and that undone", checkCallUndone],
  [
    "what another writer changed is not written over, and nothing is deleted that was not in the base",
    checkOtherWriter,
  ],
] as const;

describe.each(CHECKS)("%s", (_, check) => {
  test.each([
    ["calm", false],
    ["with faults and deaths", true],
  ] as const)(
    "%s",
    async (_, withTrouble) => {
      const services = sharedServices();
      let looked = 0;
      for (let seed = from; seed < from + count; seed += 1) {
        try {
          if (await check(seed, withTrouble, services)) looked += 1;
        } catch (thrown) {
          throw new Error(`seed ${seed}`, { cause: thrown });
        }
      }
      // If fewer seeds changed anything, the random edits test too little.
      expect(looked).toBeGreaterThan(count / 4);
    },
    3_600_000,
  );
});
