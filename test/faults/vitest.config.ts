import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** The long run: 10,000 schedules in four parts, side by side. The quick one is a part of all tests. */
const SCHEDULES = 10_000;
const PARTS = 4;

declare module "vitest" {
  export interface ProvidedContext {
    /** Which seeds to try; the quick ones where nothing is provided. */
    readonly faultSchedules?: { readonly from: number; readonly count: number };
  }
}

export default defineConfig({
  test: {
    // The schedules run in virtual time, and never wait.
    maxWorkers: availableParallelism(),
    projects: Array.from({ length: PARTS }, (_, part) => ({
      test: {
        name: `part ${part + 1}`,
        include: [
          "test/faults/faults.test.ts",
          "test/faults/following.test.ts",
          "test/plans/plan-meaning.test.ts",
          "test/plans/applying.test.ts",
          "test/plans/way-back-properties.test.ts",
          "test/plans/undone.test.ts",
        ],
        // Only for what hangs: a check of 2,500 schedules takes minutes, and longer beside other work.
        testTimeout: 1_800_000,
        provide: { faultSchedules: { from: 1 + (part * SCHEDULES) / PARTS, count: SCHEDULES / PARTS } },
      },
    })),
  },
});
