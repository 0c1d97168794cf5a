import { defineConfig } from "vitest/config";

/**
 * For tests that take long on purpose, one folder at a time: `vitest run --config test/long.config.ts --dir FOLDER`.
 */
export default defineConfig({
  test: {
    globalSetup: ["test/support/setup.ts"],
    include: ["**/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
  },
});
