import { defineConfig } from "vitest/config";

declare module "vitest" {
  export interface ProvidedContext {
    /**
     * Where processes are to die: at every step, or here and there in every kind of call. Absent: here and there in the
     * first kind, which is a part of all tests.
     */
    readonly deaths?: "every" | "some";
  }
}

export default defineConfig({
  test: {
    include: [
      "test/kill/kill.test.ts",
      "test/kill/plan-kill.test.ts",
      "test/kill/decision-kill.test.ts",
      "test/kill/undo-kill.test.ts",
      "test/kill/event-kill.test.ts",
      "test/kill/pauses.test.ts",
    ],
    testTimeout: 600_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    provide: { deaths: "every" },
  },
});
