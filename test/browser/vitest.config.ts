import { defineConfig } from "vitest/config";

// Two files run at the same time. Each starts Chromium and servers, which wait for each other half of the time.
export default defineConfig({
  test: {
    include: ["test/browser/*.browser.ts"],
    maxWorkers: 2,
    testTimeout: 120_000,
    hookTimeout: 60_000,
    expect: { poll: { timeout: 15_000 } },
  },
});
