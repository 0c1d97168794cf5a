import { defineConfig } from "vitest/config";

/** `npm run test:programs`: what needs other programs, such as npm, curl, openssl, and vitest for generated tests. */
export default defineConfig({
  test: {
    globalSetup: ["test/support/setup.ts"],
    include: ["test/programs/*.test.ts"],
    testTimeout: 300_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 120_000 } },
  },
});
