import { defineConfig } from "vitest/config";

// One after the other: Chromium takes the cores of a small machine by itself.
export default defineConfig({
  test: {
    include: ["test/browser/*.browser.ts"],
    fileParallelism: false,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
  },
});
