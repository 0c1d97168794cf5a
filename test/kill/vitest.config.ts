import { defineConfig } from "vitest/config";

declare module "vitest" {
  export interface ProvidedContext {
    /** Where processes are killed: at every step, or at some steps of every kind of call. */
    readonly deaths?: "every" | "some";
  }
}

export default defineConfig({
  test: {
    globalSetup: ["test/support/setup.ts"],
    include: ["test/kill/*.test.ts"],
    testTimeout: 600_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
    provide: { deaths: "every" },
  },
});
