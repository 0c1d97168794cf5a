import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/**
 * The long run: 10,000 schedules in four parts, which run at the same time. The ordinary tests run only a few
 * schedules.
 */
const SCHEDULES = 10_000;
const PARTS = 4;

declare module "vitest" {
  export interface ProvidedContext {
    /** Which seeds to try; absent: the few of the ordinary tests. */
    readonly faultSchedules?: { readonly from: number; readonly count: number };
  }
}

export default defineConfig({
  test: {
    // The schedules run in virtual time, so they use the processor all the time and never wait.
    maxWorkers: availableParallelism(),
    projects: Array.from({ length: PARTS }, (_, part) => ({
      test: {
        name: `part ${part + 1}`,
        include: [
          "test/faults/faults.test.ts",
          "test/plans/plan-meaning.test.ts",
          "test/plans/applying.test.ts",
          "test/plans/way-back-properties.test.ts",
          "test/plans/undone.test.ts",
        ],
        // Only for endless loops: 2,500 schedules take minutes, and longer on a busy machine.
        testTimeout: 1_800_000,
        provide: { faultSchedules: { from: 1 + (part * SCHEDULES) / PARTS, count: SCHEDULES / PARTS } },
      },
    })),
  },
});
