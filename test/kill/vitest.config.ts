import { defineConfig } from "vitest/config";

declare module "vitest" {
  export interface ProvidedContext {
    /** Whether a process is to die at every step, not only here and there. */
    readonly everyDeath?: boolean;
  }
}

export default defineConfig({
  test: {
    include: [
      "test/kill/kill.test.ts",
      "test/kill/plan-kill.test.ts",
      "test/kill/undo-kill.test.ts",
      "test/kill/event-kill.test.ts",
      "test/kill/pauses.test.ts",
    ],
    testTimeout: 600_000,
    hookTimeout: 60_000,
    provide: { everyDeath: true },
  },
});
